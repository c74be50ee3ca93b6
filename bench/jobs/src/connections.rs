//! Connections, made before anything is measured.

use anyhow::Result;
use tokio::task::JoinSet;

use crate::Arguments;

/// How often a program asks before it is measured.
const WARM_UP: usize = 20;

/// Asks as many at a time as will be asked later, again and again.
pub async fn make_connections<F, T>(arguments: &Arguments, ask: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<T>> + Send + 'static,
    T: Send + 'static,
{
    for _ in 0..WARM_UP {
        let mut asking: JoinSet<_> = (0..arguments.concurrency).map(|_| ask()).collect();
        while let Some(asked) = asking.join_next().await {
            asked??;
        }
    }
    Ok(())
}

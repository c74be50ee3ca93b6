//! Connections, which are opened before anything is measured.

use anyhow::Result;
use tokio::task::JoinSet;

use crate::Arguments;

/// The number of requests per connection before the measurement.
const WARM_UP: usize = 20;

/// Sends requests with the concurrency of the measurement, so that all connections are open when it starts.
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

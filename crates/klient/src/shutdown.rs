//! When a program is asked to stop.

use std::{future::pending, io, pin::Pin};

/// Waits for SIGTERM or SIGINT, or Ctrl-C where there are no signals. A second one ends the process at once, with code 1.
///
/// The listening begins when this is first polled, and from then on no signal ends the process by itself.
///
/// ```no_run
/// # async fn run(controller: klient::controller::Controller<k8s_openapi::api::core::v1::Pod>) -> Result<(), klient::Error> {
/// controller.run_until(klient::shutdown::signal()).await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "SetupSignalHandler")]
pub async fn signal() {
    let mut asked = match listen() {
        Ok(asked) => asked,
        Err(error) => {
            tracing::error!(%error, "signals cannot be heard: only a kill ends this process");
            return pending().await;
        }
    };
    asked().await;
    tracing::info!("asked to stop; another signal ends the process at once");
    tokio::spawn(async move {
        asked().await;
        std::process::exit(1);
    });
}

/// Waits for one signal each time that it is called.
type Asked = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

#[cfg(unix)]
fn listen() -> io::Result<Asked> {
    use std::sync::Arc;

    use tokio::{
        signal::unix::{SignalKind, signal},
        sync::Mutex,
    };

    let signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let signals = Arc::new(Mutex::new(signals));
    Ok(Box::new(move || {
        let signals = Arc::clone(&signals);
        Box::pin(async move {
            let (terminate, interrupt) = &mut *signals.lock().await;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
    }))
}

#[cfg(not(unix))]
fn listen() -> io::Result<Asked> {
    Ok(Box::new(|| Box::pin(async { drop(tokio::signal::ctrl_c().await) })))
}

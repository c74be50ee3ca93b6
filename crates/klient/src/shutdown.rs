//! Shutdown signals of the process.

use std::{future::pending, io, pin::Pin};

/// Waits for SIGTERM or SIGINT, or for Ctrl-C on platforms without signals. A second signal ends the process at once, with
/// exit code 1.
///
/// The signal handler is installed when the future is first polled. From then on, these signals do not end the process by
/// themselves.
///
/// ```no_run
/// # async fn run(controller: klient::Controller<k8s_openapi::api::core::v1::Pod>) -> Result<(), klient::Error> {
/// controller.run_until(klient::shutdown::signal()).await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "SetupSignalHandler")]
pub async fn signal() {
    let mut next_signal = match listen() {
        Ok(next_signal) => next_signal,
        Err(error) => {
            tracing::error!(%error, "failed to install signal handler, only SIGKILL stops this process");
            return pending().await;
        }
    };
    next_signal().await;
    tracing::info!("shutdown signal received, send another to exit at once");
    tokio::spawn(async move {
        next_signal().await;
        std::process::exit(1);
    });
}

/// A function that waits for one signal each time it is called.
type NextSignal = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

#[cfg(unix)]
fn listen() -> io::Result<NextSignal> {
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
fn listen() -> io::Result<NextSignal> {
    Ok(Box::new(|| Box::pin(async { drop(tokio::signal::ctrl_c().await) })))
}

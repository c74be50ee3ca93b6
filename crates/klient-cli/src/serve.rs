//! `klient serve`: an API server on the loopback, for kubectl and anything else.

use std::{error::Error, path::PathBuf};

use clap::Args;
use klient_apiserver::ApiServer;

/// How to serve.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Port on 127.0.0.1; any that is free if not given
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Plain HTTP, without certificates
    #[arg(long)]
    http: bool,
    /// Folder to keep objects in; they are gone with the process otherwise
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Where to write the kubeconfig
    #[arg(long, value_name = "FILE", default_value = "klient.kubeconfig")]
    kubeconfig: PathBuf,
}

/// Serves until it is interrupted.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut builder = ApiServer::builder();
    if let Some(folder) = &arguments.data {
        builder = builder.folder(folder);
    }
    let server = builder.start().await?;
    let listening =
        if arguments.http { server.listen(arguments.port).await? } else { server.listen_tls(arguments.port).await? };
    let path = std::path::absolute(&arguments.kubeconfig)?;
    listening.write_kubeconfig(&path, None)?;
    // Before it is said where: whoever reads that may end it at once.
    let interrupted = interrupted()?;
    println!("serving on {}", listening.url());
    println!("export KUBECONFIG={}", path.display());
    println!("kubectl get namespaces");
    interrupted.await;
    println!("stopped");
    Ok(())
}

/// Ends when the process is asked to: by Ctrl-C, or by whoever started it.
#[cfg(unix)]
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Ends when the process is asked to.
#[cfg(not(unix))]
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}

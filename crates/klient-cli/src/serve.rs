//! `klient serve`: an API server on the loopback, for kubectl and anything else.

use std::{
    error::Error,
    io::{self, Write as _},
    path::PathBuf,
    pin::pin,
};

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
    let mut interrupted = pin!(klient::shutdown::signal());
    // Listened for before it is said where to look: whoever knows that may end it at once.
    let at_once = tokio::select! {
        biased;
        () = &mut interrupted => true,
        () = std::future::ready(()) => false,
    };
    listening.write_kubeconfig(&path, None)?;
    // In one piece; and whoever has read enough of it, or nothing, does not end the server.
    let said =
        format!("serving on {}\nexport KUBECONFIG={}\nkubectl get namespaces\n", listening.url(), path.display());
    let _ = io::stdout().write_all(said.as_bytes());
    if !at_once {
        interrupted.await;
    }
    let _ = io::stdout().write_all(b"stopped\n");
    Ok(())
}

//! `klient serve`: an API server on the loopback address, for kubectl and other programs.

use std::{
    error::Error,
    io::{self, Write as _},
    path::PathBuf,
    pin::pin,
};

use clap::Args;
use klient_apiserver::ApiServer;

/// The options of `klient serve`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The port on 127.0.0.1; 0 chooses a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Accept requests without credentials, from every user and program of this machine
    #[arg(long)]
    anonymous: bool,
    /// Serve plain HTTP, without certificates; clients send no credentials over it, so --anonymous is required
    #[arg(long, requires = "anonymous")]
    http: bool,
    /// Create no service account and no config map kube-root-ca.crt in namespaces, like an API server without controller manager
    #[arg(long)]
    bare: bool,
    /// The folder to store objects in [default: in memory]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// The kubeconfig file to write
    #[arg(long, value_name = "FILE", default_value = "klient.kubeconfig")]
    kubeconfig: PathBuf,
}

/// Serves until the command is interrupted.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut builder = ApiServer::builder();
    if !arguments.bare {
        builder = builder.namespace_objects();
    }
    if let Some(folder) = &arguments.data {
        builder = builder.folder(folder);
    }
    let server = builder.start().await?;
    let mut listen = server.listen(arguments.port);
    if arguments.http {
        listen = listen.http();
    }
    if arguments.anonymous {
        listen = listen.anonymous();
    }
    let listening = listen.await?;
    let path = std::path::absolute(&arguments.kubeconfig)?;
    let mut interrupted = pin!(klient::shutdown::signal());
    // Signals are handled before the address is printed: a program that reads the address may send a signal at once.
    let is_interrupted = tokio::select! {
        biased;
        () = &mut interrupted => true,
        () = std::future::ready(()) => false,
    };
    listening.write_kubeconfig(&path, None)?;
    // One write, so that readers see all lines. A closed pipe does not end the server.
    let lines =
        format!("serving on {}\nexport KUBECONFIG={}\nkubectl get namespaces\n", listening.url(), path.display());
    let _ = io::stdout().write_all(lines.as_bytes());
    if !is_interrupted {
        interrupted.await;
    }
    let _ = io::stdout().write_all(b"stopped\n");
    Ok(())
}

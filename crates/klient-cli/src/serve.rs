//! `klient serve`: an API server on the loopback address, for kubectl and other programs.

use std::{
    error::Error,
    io::{self, Write as _},
    path::{Path, PathBuf},
    pin::pin,
    sync::{Mutex, PoisonError},
};

use clap::Args;
use klient_apiserver::{ApiServer, AuditPolicy};

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
    /// Be like an API server without controller manager: create no service account and no config map kube-root-ca.crt in
    /// namespaces, and delete neither dependents nor the contents of namespaces
    #[arg(long)]
    bare: bool,
    /// Allow every user everything; by default roles and bindings decide, as in a cluster
    #[arg(long)]
    no_rbac: bool,
    /// The file to append the audit log to, as lines of JSON
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// The file with the policy of the audit log [default: the metadata of all requests]
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy: Option<PathBuf>,
    /// The file to write the smallest roles to that allow what clients did, when the server stops
    #[arg(long, value_name = "FILE")]
    record_rbac: Option<PathBuf>,
    /// The admission plugins to disable, by the real server's names
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
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
    builder = if arguments.bare { builder.without_garbage_collector() } else { builder.namespace_objects() };
    if let Some(folder) = &arguments.data {
        builder = builder.folder(folder);
    }
    if !arguments.no_rbac {
        builder = builder.rbac();
    }
    if arguments.record_rbac.is_some() {
        builder = builder.record_permissions();
    }
    if let Some(file) = &arguments.audit_log {
        builder = builder.audit(audit_policy(arguments.audit_policy.as_deref())?, audit_log(file)?);
    }
    for name in &arguments.disable_admission_plugins {
        builder = builder.disable_admission_plugin(name);
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
    if let Some(file) = &arguments.record_rbac {
        std::fs::write(file, server.used_permissions().to_yaml())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    let _ = io::stdout().write_all(b"stopped\n");
    Ok(())
}

fn audit_policy(file: Option<&Path>) -> Result<AuditPolicy, Box<dyn Error>> {
    let Some(file) = file else { return Ok(AuditPolicy::metadata()) };
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Ok(AuditPolicy::from_yaml(&text).map_err(|error| format!("{}: {error}", file.display()))?)
}

/// Returns a function that appends lines to a file.
fn audit_log(path: &Path) -> Result<impl Fn(&str) + Send + Sync + 'static, Box<dyn Error>> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    // The log may contain secrets.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    let file = Mutex::new(file);
    let path = path.to_owned();
    Ok(move |line: &str| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write, so that lines of several processes do not mix.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, path = %path.display(), "cannot write audit log");
        }
    })
}

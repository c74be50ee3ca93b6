//! End-to-end tests against the real kube-apiserver and etcd, built from their Go modules.

mod server;

use std::path::{Path, PathBuf};

use anyhow::Result;

pub(crate) use self::server::Server;
use crate::run::run;

/// Builds and starts both servers, for as long as what is returned lives.
pub(crate) fn start(root: &Path) -> Result<Server> {
    Server::start(&build(root)?)
}

/// Builds and starts both servers, runs the tests against them, and stops them.
pub(crate) fn test(root: &Path) -> Result<()> {
    let server = Server::start(&build(root)?)?;
    let kubeconfig = server.kubeconfig();
    let arguments = ["test", "--locked", "-p", "klient", "--test", "e2e"];
    run(root, "cargo", &arguments, &[("KLIENT_E2E_KUBECONFIG", &kubeconfig.to_string_lossy())])
}

/// Starts both servers and leaves them running until a line is read from standard input.
pub(crate) fn serve(root: &Path) -> Result<()> {
    let server = Server::start(&build(root)?)?;
    println!("export KUBECONFIG={}\npress enter to stop", server.kubeconfig().display());
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// Builds `etcd` and `kube-apiserver`; Go's build cache makes this quick the second time.
fn build(root: &Path) -> Result<PathBuf> {
    let programs = root.join("target/kube");
    let output = format!("{}/", programs.display());
    std::fs::create_dir_all(&programs)?;
    run(&root.join("xtask/apiserver"), "go", &["build", "-o", &output, "./etcd", "./kube-apiserver"], &[])?;
    Ok(programs)
}

//! End-to-end tests and examples against the real kube-apiserver and etcd, built from their Go modules.

use std::path::Path;

use anyhow::Result;
use klient_harness::{Programs, Server};

use crate::run::run;

/// Starts both servers, and builds them first if they are missing. They stop when the returned value is dropped.
pub(crate) fn start() -> Result<Server> {
    Server::start(&Programs::find_or_build()?)
}

/// Builds the servers if they are missing, and runs the tests and examples against them.
pub(crate) fn test(root: &Path) -> Result<()> {
    let programs = Programs::find_or_build()?;
    // The tests start their own servers. `KLIENT_E2E` turns a skipped test into a failure.
    // With `--workspace`, dependencies have the features of the step `test` and are not built again.
    run(root, "cargo", &["test", "--locked", "--workspace", "--test", "e2e"], &[("KLIENT_E2E", "required")])?;
    let sample = ["test", "--locked", "--workspace", "--test", "sample_controller"];
    run(root, "cargo", &sample, &[("KLIENT_E2E", "required")])?;
    // This test also starts its own server: it sends sequences that are not recorded to both servers.
    let both = ["test", "--locked", "--workspace", "--test", "differential", "unrecorded_sequences"];
    run(root, "cargo", &both, &[("KLIENT_E2E", "required")])?;
    let server = Server::start(&programs)?;
    let kubeconfig = server.kubeconfig();
    run(root, "cargo", &["build", "--locked", "--workspace", "--examples"], &[])?;
    for example in EXAMPLES {
        println!("\n-- {example}");
        let program = format!("target/debug/examples/{example}");
        run(root, &program, &[], &[("KUBECONFIG", &kubeconfig.to_string_lossy())])?;
    }
    Ok(())
}

/// Starts both servers and leaves them running until a line is read from standard input.
pub(crate) fn serve() -> Result<()> {
    let programs = Programs::find_or_build()?;
    let server = Server::start(&programs)?;
    println!("export KUBECONFIG={}", server.kubeconfig().display());
    println!("export PATH={}:$PATH", programs.folder().display());
    println!("Kubernetes {} runs until you press enter", programs.kubernetes_version()?);
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// Writes the embedded server's table of built-in kinds from the documents of the real server.
pub(crate) fn registry(root: &Path) -> Result<()> {
    ask(root, &["registry", "--", "crates/klient-apiserver/src/registry/kubernetes.json"])
}

/// Records the real server's responses to the scripts. The tests compare the embedded server with these responses.
pub(crate) fn record(root: &Path) -> Result<()> {
    ask(root, &["record"])
}

/// Runs an example of the embedded server against the real one.
fn ask(root: &Path, example: &[&str]) -> Result<()> {
    let server = Server::start(&Programs::find_or_build()?)?;
    let arguments = [&["run", "--locked", "-p", "klient-apiserver", "--example"], example].concat();
    run(root, "cargo", &arguments, &[("KUBECONFIG", &server.kubeconfig().to_string_lossy())])
}

/// The examples that need a server.
const EXAMPLES: &[&str] = &["discovery", "deployment_typed", "deployment_dynamic", "watch", "server_side_apply"];

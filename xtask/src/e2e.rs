//! End-to-end tests and examples against the real kube-apiserver and etcd, built from their Go modules.

use std::path::Path;

use anyhow::Result;
use klient_harness::{Folder, Programs, Server};

use crate::{built::Built, run::run};

/// Starts both servers, and builds them first if they are missing. They stop when the returned value is dropped.
pub(crate) fn start() -> Result<Server> {
    Server::start(&Programs::find_or_build()?)
}

/// Builds the servers if they are missing, and runs the tests and examples against them.
pub(crate) fn test(root: &Path) -> Result<()> {
    let programs = Programs::find_or_build()?;
    let built = Built::all(root)?;
    // The tests start their own servers. `KLIENT_E2E` turns a skipped test into a failure.
    let required = [("KLIENT_E2E", "required")];
    built.test("e2e", &[], &required)?;
    built.test("custom_types_e2e", &[], &required)?;
    built.test("sample_controller", &[], &required)?;
    built.test("replay_e2e", &[], &required)?;
    built.test("cli_e2e", &[], &required)?;
    built.test("telemetry", &["on_the_real_server"], &required)?;
    built.test("browser", &["on_the_real_server"], &required)?;
    // These tests also start their own servers: they compare what is not recorded.
    built.test("differential", &["match_real_server"], &required)?;
    let server = Server::start(&programs)?;
    let kubeconfig = server.kubeconfig();
    for example in EXAMPLES {
        println!("\n-- {example}");
        built.example(root, example, &[("KUBECONFIG", &kubeconfig.to_string_lossy())])?;
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

/// Writes the embedded server's table of built-in kinds and its OpenAPI documents from the documents of the real server.
pub(crate) fn registry(root: &Path) -> Result<()> {
    ask(root, &["registry", "--", "crates/klient-apiserver/src/registry/kubernetes.json"])?;
    ask(root, &["bootstrap", "--", "crates/klient-apiserver/src/bootstrap/objects.json"])?;
    ask(root, &["openapi", "--", "crates/klient-apiserver/src/openapi/documents.gz"])
}

/// Records the real server's responses to the scripts. The tests compare the embedded server with these responses.
pub(crate) fn record(root: &Path) -> Result<()> {
    let folder = Folder::new()?;
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    std::fs::copy(root.join("crates/klient-apiserver/tests/differential/audit/policy.yaml"), &policy)?;
    let (policy, log) = (policy.to_string_lossy(), log.to_string_lossy());
    let flags = [("audit-policy-file", &*policy), ("audit-log-path", &*log)];
    let server = Server::start_with(&Programs::find_or_build()?, &flags)?;
    let kubeconfig = server.kubeconfig();
    let kubeconfig = kubeconfig.to_string_lossy();
    let variables = [("KUBECONFIG", &*kubeconfig), ("KLIENT_AUDIT_LOG", &*log)];
    run(root, "cargo", &["run", "--locked", "-p", "klient-apiserver", "--example", "record"], &variables)
}

/// Sends random requests to both servers, and compares their responses.
pub(crate) fn compare(root: &Path, options: &[&str]) -> Result<()> {
    ask(root, &[&["compare", "--"], options].concat())
}

/// Runs an example of the embedded server against the real one.
fn ask(root: &Path, example: &[&str]) -> Result<()> {
    let server = Server::start(&Programs::find_or_build()?)?;
    let arguments = [&["run", "--locked", "-p", "klient-apiserver", "--example"], example].concat();
    run(root, "cargo", &arguments, &[("KUBECONFIG", &server.kubeconfig().to_string_lossy())])
}

/// The examples that need a server.
const EXAMPLES: &[&str] = &["discovery", "deployment_typed", "deployment_dynamic", "watch", "server_side_apply"];

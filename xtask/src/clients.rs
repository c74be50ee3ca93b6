//! Tests of other clients against the embedded server: kubectl, and programs that use client-go and kube-rs, built here.

mod apiextensions;
mod controller_runtime;
mod flux;
mod kube_rs;
mod module;
mod server;

use std::path::Path;

use anyhow::Result;
use klient_harness::Programs;

use crate::{built::Built, run::run};

/// Runs the tests of all clients, and then other projects' own suites, which take minutes. CI runs the former only.
pub(crate) fn all(root: &Path) -> Result<()> {
    test(root)?;
    suites(root)
}

/// Runs the own tests of apiextensions-apiserver, Flux's library for server-side apply, kube-rs and controller-runtime.
pub(crate) fn suites(root: &Path) -> Result<()> {
    let definitions = apiextensions::test(root);
    let apply = flux::test(root);
    let kube_rs = kube_rs::test(root);
    let controllers = controller_runtime::test(root);
    definitions.and(apply).and(kube_rs).and(controllers)
}

/// Builds the clients and runs the tests that start them. A skipped test is a failure.
pub(crate) fn test(root: &Path) -> Result<()> {
    let kubectl = Programs::find_or_build()?;
    println!("kubectl is in {}", kubectl.folder().display());
    let target = root.join("bench/target");
    let client_go = target.join("client-go");
    run(&root.join("xtask/clients"), "go", &["build", "-o", &client_go.to_string_lossy(), "."], &[])?;
    let arguments = ["build", "--locked", "--package", "kube-rs-client", "--target-dir", &target.to_string_lossy()];
    // This process has the main workspace's Kubernetes version in its environment.
    run(&root.join("bench"), "cargo", &arguments, &[("K8S_OPENAPI_ENABLED_VERSION", "1.36")])?;
    let kube_rs = target.join("debug/kube-rs-client");
    let environment = [
        ("KLIENT_E2E", "required"),
        ("KLIENT_CLIENT_GO", &*client_go.to_string_lossy()),
        ("KLIENT_CLIENT_KUBE_RS", &*kube_rs.to_string_lossy()),
    ];
    Built::all(root)?.test("clients", &[], &environment)
}

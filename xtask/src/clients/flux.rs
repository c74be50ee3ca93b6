//! The own tests of Flux's library for server-side apply against `klient serve`.
//!
//! The tests come from the Go module proxy, unmodified, and use the server as an existing cluster. All of them pass.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::{module, server::Server};
use crate::run::run;

/// Runs the tests.
pub(crate) fn test(root: &Path) -> Result<()> {
    let folder = module::checkout(root, "github.com/fluxcd/pkg/ssa", VERSION)?;
    run(root, "cargo", &["build", "--locked", "--package", "klient-cli"], &[])?;
    let mut results = BTreeMap::new();
    for package in [".", "jsondiff"] {
        println!("building {package}");
        let program = folder.join(format!("{}.test", package.replace('.', "ssa")));
        let text = program.to_string_lossy();
        run(&folder, "go", &["test", "-c", "-o", &text, &format!("./{package}")], &[])?;
        let server = Server::start(root, &root.join("bench/target/flux-run"))?;
        let output = Command::new(&program)
            .args(["-test.v", "-test.timeout=300s"])
            .current_dir(folder.join(package))
            .env("KUBECONFIG", server.kubeconfig())
            .env("USE_EXISTING_CLUSTER", "true")
            .stderr(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {text}"))?;
        let outcomes = module::outcomes(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() && outcomes.iter().all(|(_, passed)| *passed) {
            bail!("{package} stopped before its end: {}", output.status);
        }
        results.extend(outcomes);
    }
    module::judge("Flux's server-side apply", "tests", &results, &BTreeMap::new(), false)
}

/// The version of the tests.
const VERSION: &str = "v0.78.0";

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
        let outcomes = outcomes(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() && outcomes.iter().all(|(_, passed)| *passed) {
            bail!("{package} stopped before its end: {}", output.status);
        }
        results.extend(outcomes);
    }
    module::judge("Flux's server-side apply", "tests", &results, &BTreeMap::new(), false)
}

/// Returns the tests in the output of a Go test, and whether each passed.
fn outcomes(output: &str) -> Vec<(String, bool)> {
    let outcome = |line: &str| {
        let (rest, passed) = match line.strip_prefix("--- PASS: ") {
            Some(rest) => (rest, true),
            None => (line.strip_prefix("--- FAIL: ")?, false),
        };
        Some((rest.split(' ').next()?.to_owned(), passed))
    };
    output.lines().filter_map(outcome).collect()
}

/// The version of the tests.
const VERSION: &str = "v0.78.0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_those_of_tests_and_not_of_their_parts() {
        let output = "=== RUN   TestA\n--- PASS: TestA (0.01s)\n    --- PASS: TestA/part (0.00s)\n--- FAIL: TestB (1.00s)\nFAIL\n";
        assert_eq!(outcomes(output), [("TestA".to_owned(), true), ("TestB".to_owned(), false)]);
    }
}

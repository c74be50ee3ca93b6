//! apiextensions-apiserver's own integration tests against `klient serve`.
//!
//! The tests come from the Go module proxy. One file of theirs, which starts an API server in the test's own process, is replaced by
//! `xtask/clients/testdata/apiextensions_server.go`, which starts `klient serve`. Tests that need etcd or flags of the real server
//! cannot run; `xtask/clients/apiextensions.txt` lists them. Each test has a process of its own, because some of these panic.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::module;
use crate::run::{output, run};

/// Runs the tests.
pub(crate) fn test(root: &Path) -> Result<()> {
    let folder = module::checkout(root, "k8s.io/apiextensions-apiserver", VERSION)?;
    run(root, "cargo", &["build", "--locked", "--package", "klient-cli"], &[])?;
    let listed = module::listed(&root.join("xtask/clients/apiextensions.txt"))?;
    let overlay = folder.join("overlay.json");
    let replaced = folder.join("test/integration/fixtures/server.go");
    let ours = root.join("xtask/clients/testdata/apiextensions_server.go");
    fs::write(&overlay, json!({"Replace": {replaced.to_string_lossy(): ours.to_string_lossy()}}).to_string())?;
    let mut tests = Vec::new();
    for package in ["test/integration", "test/integration/conversion"] {
        println!("building {package}");
        // The tests expect a field manager of this name.
        let program = folder.join(format!("{}.test", package.rsplit('/').next().unwrap_or_default()));
        let (overlay, text) = (overlay.to_string_lossy(), program.to_string_lossy());
        run(&folder, "go", &["test", "-c", "-overlay", &overlay, "-o", &text, &format!("./{package}")], &[])?;
        let names = output(&folder, &text, &["-test.list", "."])?;
        let names = names.lines().filter(|line| line.starts_with("Test"));
        tests.extend(names.map(|name| (folder.join(package), program.clone(), name.to_owned())));
    }
    let results = results(root, &tests)?;
    module::judge("apiextensions-apiserver", "tests", &results, &listed, false)
}

/// Runs tests, several at a time, and returns whether each passed. Those that fail run once more, because some expect a faster machine.
fn results(root: &Path, tests: &[(PathBuf, PathBuf, String)]) -> Result<BTreeMap<String, bool>> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let klient = target.join("debug/klient");
    let logs = root.join("bench/target/apiextensions-run");
    fs::create_dir_all(&logs)?;
    println!("what the tests print is in {}", logs.display());
    let results = module::run_each(tests, AT_ONCE, |(folder, program, name)| {
        let passes = || -> Result<bool> {
            let log = fs::File::create(logs.join(format!("{name}.log")))?;
            let status = Command::new(program)
                .args(["-test.timeout=120s", &format!("-test.run=^{name}$")])
                .current_dir(folder)
                .env("KLIENT", &klient)
                .stdout(log.try_clone()?)
                .stderr(log)
                .status()
                .with_context(|| format!("cannot start {}", program.display()))?;
            Ok(status.success())
        };
        Ok((name.clone(), passes()? || passes()?))
    });
    results.into_iter().collect()
}

/// The version of the tests.
const VERSION: &str = "v0.36.0";
/// The number of tests that run at the same time.
const AT_ONCE: usize = 4;

//! kube-rs's own integration tests against `klient serve`.
//!
//! The tests are those of the package `kube` in the version that `bench/Cargo.lock` names, unmodified. Each has a process of its own and
//! a limited time, because some of them wait without a limit. Those that need a kubelet cannot pass; `xtask/clients/kube-rs.txt` lists them.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{
    module::{self, copy},
    server::Server,
};
use crate::run::{output, run};

/// Runs the tests.
pub(crate) fn test(root: &Path) -> Result<()> {
    run(root, "cargo", &["build", "--locked", "--package", "klient-cli"], &[])?;
    let listed = module::listed(&root.join("xtask/clients/kube-rs.txt"))?;
    let run_folder = root.join("bench/target/kube-rs-run");
    let server = Server::start(root, &run_folder)?;
    println!("building {PACKAGE}");
    let program = build(root, &checkout(root)?)?;
    let names = output(root, &program.to_string_lossy(), &["--ignored", "--list"])?;
    let names: Vec<&str> = names.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let results = module::run_each(&names, AT_ONCE, |name| {
        let mut child = Command::new(&program)
            .args(["--ignored", "--exact", name])
            .env("KUBECONFIG", server.kubeconfig())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(((*name).to_owned(), finish(&mut child)?.is_some_and(|status| status.success())))
    });
    let results: BTreeMap<String, bool> = results.into_iter().collect::<Result<_>>()?;
    module::judge("kube-rs", "tests", &results, &listed, false)
}

/// Waits for a program. Returns `None` if its time was over, and ends it then.
fn finish(child: &mut Child) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Copies the sources of a package to a folder in which they are a workspace of their own.
fn checkout(root: &Path) -> Result<PathBuf> {
    let manifest = root.join("bench/Cargo.toml").display().to_string();
    let arguments = ["metadata", "--locked", "--format-version", "1", "--manifest-path", &manifest];
    let metadata: Value = serde_json::from_str(&output(root, "cargo", &arguments)?)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages
        .find(|found| found["name"] == PACKAGE)
        .with_context(|| format!("the benchmarks do not use {PACKAGE}"))?;
    let manifest = found["manifest_path"].as_str().context("cargo did not name the manifest")?;
    let folder = root.join("bench/target").join(format!("{PACKAGE}-{}", found["version"].as_str().unwrap_or_default()));
    if !folder.join("Cargo.toml").is_file() {
        let unfinished = folder.with_extension("unfinished");
        copy(Path::new(manifest).parent().context("the manifest has no folder")?, &unfinished)?;
        writeln!(OpenOptions::new().append(true).open(unfinished.join("Cargo.toml"))?, "\n[workspace]")?;
        // Its lock file can name versions that the registry no longer has.
        fs::remove_file(unfinished.join("Cargo.lock"))?;
        fs::rename(&unfinished, &folder)?;
    }
    Ok(folder)
}

/// Builds the tests of a package, and returns their program.
fn build(root: &Path, folder: &Path) -> Result<PathBuf> {
    let target = root.join("bench/target/kube-rs-tests");
    let output = Command::new("cargo")
        .args(["test", "--lib", "--no-run", "--message-format", "json", "--features", FEATURES, "--target-dir"])
        .arg(target)
        .current_dir(folder)
        // The package chooses a Kubernetes version itself, and the main workspace's is in the environment.
        .env("K8S_OPENAPI_ENABLED_VERSION", "")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message["profile"]["test"] == true);
    let program = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.with_context(|| format!("cargo built no tests in {}: {}", folder.display(), output.status))
}

/// The package whose tests run. Those of `kube-client` and `kube-runtime` need `kube` itself, which their published manifests do not name.
const PACKAGE: &str = "kube";
/// The features that the tests need.
const FEATURES: &str = "runtime,derive,ws";
/// The number of tests that run at the same time.
const AT_ONCE: usize = 4;
/// The time of one test.
const LIMIT: Duration = Duration::from_secs(60);

//! kube-rs's own integration tests against `klient serve`.
//!
//! The tests are those of the packages `kube`, `kube-client` and `kube-runtime` in the version that `bench/Cargo.lock` names, unmodified. Each
//! has a process of its own and a limited time, because some of them wait without a limit. Those that need a kubelet cannot pass;
//! `xtask/clients/kube-rs.txt` lists them.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
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
    println!("building {}", PACKAGES.join(", "));
    let mut tests = Vec::new();
    for (package, program) in build(root, &checkout(root)?)? {
        let names = output(root, &program.to_string_lossy(), &["--ignored", "--list"])?;
        let names = names.lines().filter_map(|line| line.strip_suffix(": test"));
        tests.extend(names.map(|name| (package.clone(), program.clone(), name.to_owned())));
    }
    let results = module::run_each(&tests, AT_ONCE, |(package, program, name)| {
        let mut child = Command::new(program)
            .args(["--ignored", "--exact", name])
            .env("KUBECONFIG", server.kubeconfig())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok((format!("{package}: {name}"), finish(&mut child)?.is_some_and(|status| status.success())))
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

/// Copies the sources of the packages to a folder in which they are a workspace of their own, and returns it.
fn checkout(root: &Path) -> Result<PathBuf> {
    let manifest = root.join("bench/Cargo.toml").display().to_string();
    let arguments = ["metadata", "--locked", "--format-version", "1", "--manifest-path", &manifest];
    let metadata: Value = serde_json::from_str(&output(root, "cargo", &arguments)?)?;
    let found = |name: &str| {
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        packages.find(|found| found["name"] == name).with_context(|| format!("the benchmarks do not use {name}"))
    };
    let version = found("kube")?["version"].as_str().unwrap_or_default().to_owned();
    let folder = root.join("bench/target").join(format!("kube-rs-{version}"));
    if folder.join("Cargo.toml").is_file() {
        return Ok(folder);
    }
    let unfinished = folder.with_extension("unfinished");
    let mut workspace = format!("[workspace]\nresolver = \"2\"\nmembers = {PACKAGES:?}\n\n[patch.crates-io]\n");
    for name in PACKAGES {
        let manifest = found(name)?["manifest_path"].as_str().context("cargo did not name the manifest")?;
        copy(Path::new(manifest).parent().context("the manifest has no folder")?, &unfinished.join(name))?;
        workspace += &format!("{name} = {{ path = \"{name}\" }}\n");
        // Published manifests do not name it, because it depends on the others itself.
        if name != "kube" {
            let features = ["derive", "client", "ws", "runtime", "unstable-client"];
            let lines = format!("\n[dev-dependencies.kube]\nversion = \"={version}\"\nfeatures = {features:?}\n");
            let manifest = unfinished.join(name).join("Cargo.toml");
            write!(OpenOptions::new().append(true).open(manifest)?, "{lines}")?;
        }
    }
    fs::write(unfinished.join("Cargo.toml"), workspace)?;
    fs::rename(&unfinished, &folder)?;
    Ok(folder)
}

/// Builds the tests of the packages, and returns their programs.
fn build(root: &Path, folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let target = root.join("bench/target/kube-rs-tests");
    let output = Command::new("cargo")
        .args(["test", "--workspace", "--lib", "--no-run", "--message-format", "json", "--features", FEATURES])
        .arg("--target-dir")
        .arg(target)
        .current_dir(folder)
        // The packages choose a Kubernetes version themselves, and the main workspace's is in the environment.
        .env("K8S_OPENAPI_ENABLED_VERSION", "")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let programs = messages.filter(|message| message["profile"]["test"] == true).filter_map(|message| {
        let program = message["executable"].as_str().map(PathBuf::from)?;
        // Crates are named as in Rust.
        Some((message["target"]["name"].as_str()?.replace('_', "-"), program))
    });
    let programs: Vec<(String, PathBuf)> = programs.collect();
    if programs.len() != PACKAGES.len() {
        bail!("cargo built the tests of {} packages in {}: {}", programs.len(), folder.display(), output.status);
    }
    Ok(programs)
}

/// The packages whose tests run.
const PACKAGES: [&str; 3] = ["kube", "kube-client", "kube-runtime"];
/// The features that the tests need.
const FEATURES: &str = "kube/runtime,kube/derive,kube/ws,kube-client/rustls-tls,kube-client/ws,kube-client/jsonpatch";
/// The number of tests that run at the same time.
const AT_ONCE: usize = 4;
/// The time of one test.
const LIMIT: Duration = Duration::from_secs(60);

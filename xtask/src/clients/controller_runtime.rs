//! controller-runtime's own test suites against `klient serve`: the specs, and the tests of the same packages that are no specs.
//!
//! The suites come from the Go module proxy, unmodified, and use the server as an existing cluster. Each package gets a new server and
//! a limited time. All suites are built before the first one runs, so that building takes no time of theirs. Several run at
//! once, because they wait most of the time. Some specs wait for one second only, or expect that each spec has a server of its own: those
//! that fail run again on another new server.
//! `xtask/clients/controller-runtime.txt` lists the specs that cannot pass, with reasons.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{module, server::Server};
use crate::run::{output, run};

/// Runs the suites. A spec that fails without being listed is a failure, and so is a listed spec that passes.
pub(crate) fn test(root: &Path) -> Result<()> {
    let folder = module::checkout(root, "sigs.k8s.io/controller-runtime", VERSION)?;
    run(root, "cargo", &["build", "--locked", "--package", "klient-cli"], &[])?;
    let listed = module::listed(&root.join("xtask/clients/controller-runtime.txt"))?;
    let packages = packages(&folder)?;
    let programs = folder.join("suites");
    for (index, package) in packages.iter().enumerate() {
        let program = programs.join(program_name(package));
        // The sources of a version do not change.
        if !program.is_file() {
            println!("building {package} ({} of {})", index + 1, packages.len());
            let program = program.display().to_string();
            run(&folder, "go", &["test", "-c", "-o", &program, &format!("./{package}")], &[])?;
        }
    }
    let mut results = BTreeMap::new();
    let mut unfinished = Vec::new();
    for (package, outcome) in suites(root, &folder, &packages)? {
        if !outcome.is_finished {
            unfinished.push(package.clone());
        }
        for (spec, passed) in outcome.specs {
            results.insert(format!("{package}: {spec}"), passed);
        }
    }
    for package in &unfinished {
        println!("not finished after {} s: {package}", LIMIT.as_secs());
    }
    let is_unfinished = !unfinished.is_empty();
    module::judge("controller-runtime", "specs", &results, &listed, is_unfinished)
}

/// Returns the packages with a suite of specs.
fn packages(folder: &Path) -> Result<Vec<String>> {
    let format = "{{if .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{else if .TestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}";
    let found = output(folder, "go", &["list", "-f", format, "./pkg/..."])?;
    let has_specs = |folder: &str| {
        fs::read_dir(folder).is_ok_and(|mut entries| {
            entries.any(|entry| {
                entry.is_ok_and(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("RunSpecs(")))
            })
        })
    };
    let lines = found.lines().filter_map(|line| line.split_once(' '));
    // The packages below this one start the programs of a control plane, which is what the embedded server replaces.
    let packages = lines.filter(|(package, folder)| !package.contains("/internal/testing/") && has_specs(folder));
    Ok(packages.map(|(package, _)| package.replace("sigs.k8s.io/controller-runtime/", "")).collect())
}

/// The outcome of a suite.
struct Outcome {
    /// The specs that were run, and whether each passed.
    specs: Vec<(String, bool)>,
    /// Whether the suite ended within its time.
    is_finished: bool,
}

/// Runs the suites of all packages, and prints a line after each.
fn suites(root: &Path, folder: &Path, packages: &[String]) -> Result<Vec<(String, Outcome)>> {
    let count = AtomicUsize::new(0);
    let outcomes = module::run_each(packages, AT_ONCE, |package| {
        let start = Instant::now();
        let outcome = attempts(root, folder, package)?;
        let (passed, all) = (outcome.specs.iter().filter(|(_, passed)| *passed).count(), outcome.specs.len());
        let (seconds, count) = (start.elapsed().as_secs(), count.fetch_add(1, Ordering::Relaxed) + 1);
        println!("{package}: {passed} of {all} specs passed in {seconds} s ({count} of {})", packages.len());
        Ok((package.clone(), outcome))
    });
    outcomes.into_iter().collect()
}

/// Returns the file name of a package's suite.
fn program_name(package: &str) -> String {
    format!("{}.test", package.replace('/', "-"))
}

/// Runs the suite of a package, and its failed specs again.
fn attempts(root: &Path, folder: &Path, package: &str) -> Result<Outcome> {
    let mut outcome = suite(root, folder, package, &[])?;
    for _ in 1..ATTEMPTS {
        let failed: Vec<String> =
            outcome.specs.iter().filter(|(_, passed)| !passed).map(|(spec, _)| spec.clone()).collect();
        if failed.is_empty() {
            break;
        }
        println!("{package}: {} specs run again: {}", failed.len(), failed.join(", "));
        let again = suite(root, folder, package, &failed)?;
        for (spec, passed) in &mut outcome.specs {
            *passed |= again.specs.iter().any(|(other, passed)| *passed && other == spec);
        }
    }
    Ok(outcome)
}

/// Runs the suite of a package, or only some of its specs, and its tests that are no specs. Those that it skips are left out.
fn suite(root: &Path, folder: &Path, package: &str, only: &[String]) -> Result<Outcome> {
    let run = root.join("bench/target/controller-runtime-run").join(package.replace('/', "-"));
    let server = Server::start(root, &run)?;
    let report = run.join("report.json");
    let _ = fs::remove_file(&report);
    let log = fs::File::create(run.join("log"))?;
    // A suite fails if a spec fails, which the report says in more detail. The second limit ends a suite that does not stop by itself.
    Command::new(folder.join("suites").join(program_name(package)))
        .arg(format!("-test.timeout={}s", 2 * LIMIT.as_secs()))
        .arg(format!("-ginkgo.timeout={}s", LIMIT.as_secs()))
        .arg(format!("-ginkgo.json-report={}", report.display()))
        // The report has what a person needs to know.
        .arg("-ginkgo.succinct")
        .arg("-test.v")
        .args(only.iter().map(|spec| format!(r"-ginkgo.focus=\Q{spec}\E$")))
        .current_dir(folder.join(package))
        .env("KUBECONFIG", server.kubeconfig())
        .env("USE_EXISTING_CLUSTER", "true")
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()?;
    let Ok(text) = fs::read_to_string(&report) else {
        bail!("{package} has no report:\n{}", fs::read_to_string(run.join("log"))?);
    };
    let report: Value = serde_json::from_str(&text)?;
    let nodes = || report[0]["SpecReports"].as_array().into_iter().flatten();
    if let Some(node) = nodes().find(|node| node["LeafNodeType"] != "It" && is_failed(node)) {
        bail!("{package}: {} failed, see {}", node["LeafNodeType"], run.join("log").display());
    }
    let mut specs = Vec::new();
    for spec in nodes().filter(|node| node["LeafNodeType"] == "It") {
        let texts = spec["ContainerHierarchyTexts"].as_array().into_iter().flatten().chain([&spec["LeafNodeText"]]);
        let name: Vec<&str> = texts.filter_map(Value::as_str).collect();
        match spec["State"].as_str() {
            Some("passed") => specs.push((name.join(" "), true)),
            Some("skipped" | "pending") => {}
            _ => specs.push((name.join(" "), false)),
        }
    }
    let output = fs::read_to_string(run.join("log"))?;
    let wrapper = wrapper(&folder.join(package))?;
    specs.extend(module::outcomes(&output).into_iter().filter(|(test, _)| Some(test) != wrapper.as_ref()));
    if specs.is_empty() {
        bail!("{package} ran no specs, see {}", run.join("log").display());
    }
    let reasons = report[0]["SpecialSuiteFailureReasons"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_finished = !reasons.into_iter().any(|reason| reason.contains("Timeout"));
    Ok(Outcome { specs, is_finished })
}

/// Returns the name of the test that runs the specs of a package.
fn wrapper(folder: &Path) -> Result<Option<String>> {
    for entry in fs::read_dir(folder)? {
        let text = fs::read_to_string(entry?.path()).unwrap_or_default();
        if let Some((before, _)) = text.split_once("RunSpecs(")
            && let Some((_, test)) = before.rsplit_once("func Test")
        {
            return Ok(test.split('(').next().map(|name| format!("Test{name}")));
        }
    }
    Ok(None)
}

/// Returns whether a node of a report, such as one that runs before all specs, ended in another state than it should.
fn is_failed(node: &Value) -> bool {
    !matches!(node["State"].as_str(), Some("passed" | "skipped" | "pending"))
}

/// The version of the suites.
const VERSION: &str = "v0.24.1";
/// The number of suites that run at the same time.
const AT_ONCE: usize = 6;
/// The number of times that a spec that fails runs.
const ATTEMPTS: usize = 3;
/// The time of one run.
const LIMIT: Duration = Duration::from_secs(300);

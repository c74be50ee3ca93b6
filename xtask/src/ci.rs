//! The steps of CI. `.ci/run` calls these and nothing else, so that `cargo xtask ci` does what CI does.

use std::{path::Path, time::Instant};

use anyhow::{Context, Result};
use klient_harness::Programs;

use crate::{api, bench, chaos, clients, codegen, e2e, fuzz, guide, linked, publish, run::run, supply};

struct Step {
    name: &'static str,
    does: &'static str,
    run: fn(&Path) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", does: "formatting", run: |root| cargo(root, &["fmt", "--all", "--check"]) },
    Step {
        name: "clippy",
        does: "lints on all targets",
        run: |root| cargo(root, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    },
    Step {
        name: "doc",
        does: "documentation without warnings",
        run: |root| {
            let arguments = ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"];
            run(root, "cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])
        },
    },
    Step {
        name: "test",
        does: "README's test command, tidy checks included",
        run: |root| test(root, &["--workspace"]),
    },
    Step {
        name: "runtime-half",
        does: "klient without its HTTP half",
        run: |root| {
            let arguments = ["clippy", "-p", "klient", "--no-default-features", "--all-targets", "--locked"];
            cargo(root, &[&arguments[..], &["--", "-D", "warnings"]].concat())?;
            // Examples in the documentation are of the whole: the step before ran them.
            test(root, &["-p", "klient", "--no-default-features", "--lib", "--tests"])
        },
    },
    Step { name: "supply", does: "licences, versions and sources of dependencies", run: supply::check },
    Step { name: "api", does: "the lists of public items are up to date", run: |root| api::run_api(root, true) },
    Step { name: "codegen", does: "generated code is up to date", run: |root| codegen::run(root, true) },
    Step { name: "oldest", does: "the oldest Kubernetes version", run: oldest },
    Step { name: "fuzz", does: "each fuzz target, briefly", run: |root| fuzz::run(root, 10, Some(1)) },
    Step { name: "e2e", does: "the client against the real kube-apiserver", run: e2e::test },
    Step { name: "clients", does: "other people's clients against the embedded server", run: clients::test },
    Step { name: "chaos", does: "a few worlds with faults, on both servers", run: chaos::fixed },
    Step { name: "bench-smoke", does: "klient, client-go and kube-rs get the same answers", run: bench::smoke },
    Step { name: "guide", does: "the guide is a book", run: guide::build },
    Step {
        name: "publish",
        does: "packages, documents and README's program outside the workspace",
        run: publish::check,
    },
    Step { name: "linked", does: "binaries hold only the codecs they use", run: linked::check },
    Step { name: "examples", does: "README's first command, and examples on the embedded server", run: examples },
];

/// The steps that run the real kube-apiserver.
const WITH_SERVERS: &[&str] = &["e2e", "clients", "chaos", "bench-smoke"];

/// Runs every step, and prints how long each took.
///
/// The real kube-apiserver is built meanwhile, where it is not there: Rust builds do not use all processors all the time.
pub(crate) fn all(root: &Path) -> Result<()> {
    let start = Instant::now();
    let mut times = Vec::new();
    let mut servers = Some(std::thread::spawn(Programs::find_or_build));
    for step in STEPS {
        let begun = Instant::now();
        if WITH_SERVERS.contains(&step.name)
            && let Some(building) = servers.take()
        {
            building.join().map_err(|_| anyhow::anyhow!("the build of kube-apiserver panicked"))??;
            times.push(("(kube-apiserver)", begun.elapsed().as_secs()));
        }
        let begun = Instant::now();
        perform(root, step)?;
        times.push((step.name, begun.elapsed().as_secs()));
    }
    println!();
    for (name, seconds) in times {
        println!("{name:14}{seconds:>5} s");
    }
    println!("all {} steps passed in {} s", STEPS.len(), start.elapsed().as_secs());
    Ok(())
}

/// Runs one step.
pub(crate) fn one(root: &Path, name: &str) -> Result<()> {
    let step = STEPS.iter().find(|step| step.name == name).with_context(|| format!("no step is called {name}"))?;
    perform(root, step)
}

/// Names the steps.
pub(crate) fn list() {
    for step in STEPS {
        println!("{:14}{}", step.name, step.does);
    }
}

fn perform(root: &Path, step: &Step) -> Result<()> {
    println!("\n== {}: {}", step.name, step.does);
    let start = Instant::now();
    (step.run)(root).with_context(|| format!("step {}", step.name))?;
    println!("== {} passed in {} s", step.name, start.elapsed().as_secs());
    Ok(())
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    run(root, "cargo", arguments, &[])
}

/// Runs tests. Random inputs and schedules are the same each time, so that CI fails only for a change. Tests that are run by
/// hand try others.
fn test(root: &Path, which: &[&str]) -> Result<()> {
    run(root, "cargo", &[&["test", "--locked"], which].concat(), &SEEDS)
}

const SEEDS: [(&str, &str); 2] = [("PROPTEST_RNG_SEED", "1"), ("SHUTTLE_RANDOM_SEED", "1")];

/// The newest version is what every other step uses; another one needs a target folder of its own.
fn oldest(root: &Path) -> Result<()> {
    let arguments = ["test", "-p", "klient-core", "-p", "klient-proto", "--locked"];
    let target = root.join("target/k8s-1.33");
    let target = target.to_string_lossy();
    run(root, "cargo", &arguments, &[SEEDS[0], ("K8S_OPENAPI_ENABLED_VERSION", "1.33"), ("CARGO_TARGET_DIR", &target)])
}

/// Runs README's first command as it stands there. The examples are those that the step `test` has built.
fn examples(root: &Path) -> Result<()> {
    cargo(root, &["run", "--release", "--locked", "-p", "klient-cli", "--", "demo"])?;
    let installed = ["install", "--locked", "--path", "crates/klient-cli", "--root", "target/installed"];
    cargo(root, &installed)?;
    run(root, "target/installed/bin/klient", &["--help"], &[])?;
    cargo(root, &["build", "--locked", "--workspace", "--examples", "--bins"])?;
    for example in EXAMPLES {
        println!("\n-- {example}");
        run(root, &format!("target/debug/examples/{example}"), &[], &[])?;
    }
    run(root, "target/debug/sample-controller", &[], &[])
}

/// The examples that bring their own server.
const EXAMPLES: [&str; 9] = [
    "embedded",
    "informer",
    "process_item_loop",
    "wire_objects",
    "ported_configmapgen_controller",
    "ported_secret_syncer",
    "ported_shared_stream_controllers",
    "ported_workqueue",
    "ported_leader_election",
];

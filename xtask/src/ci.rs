//! The steps of CI. `.ci/run` calls these and nothing else, so that `cargo xtask ci` does what CI does.

use std::{
    path::Path,
    sync::mpsc::{Receiver, channel},
    time::Instant,
};

use anyhow::{Context, Result};
use klient_harness::Programs;

use crate::{api, bench, built::Built, chaos, clients, codegen, e2e, fuzz, guide, linked, publish, run::run, supply};

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
        does: "README's test command, tidy checks included, without the real kube-apiserver",
        run: |root| {
            let environment = [&SEEDS[..], &[("KLIENT_E2E", "skip")]].concat();
            run(root, "cargo", &["test", "--locked", "--workspace"], &environment)
        },
    },
    Step {
        name: "runtime-half",
        does: "klient without its HTTP half",
        run: |root| {
            // The same code as in the whole, whose tests have run: it must compile, tests included.
            let arguments = ["clippy", "-p", "klient", "--no-default-features", "--all-targets", "--locked"];
            cargo(root, &[&arguments[..], &["--", "-D", "warnings"]].concat())
        },
    },
    Step { name: "supply", does: "licences, versions and sources of dependencies", run: supply::check },
    Step { name: "api", does: "the lists of public items are up to date", run: |root| api::run_api(root, true) },
    Step { name: "codegen", does: "generated code is up to date", run: |root| codegen::run(root, true) },
    Step { name: "oldest", does: "the oldest Kubernetes version", run: oldest },
    Step { name: "fuzz", does: "each fuzz target, briefly", run: |root| fuzz::run(root, 5, Some(1)) },
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

/// A build that runs beside the first steps: Rust builds do not use all processors all the time.
struct Background {
    name: &'static str,
    build: fn(&Path) -> Result<()>,
    /// The steps that need it.
    steps: &'static [&'static str],
}

/// The builds in the background, one after the other. Each has a target folder of its own, so that it waits for no step.
const BACKGROUND: &[Background] = &[
    Background {
        name: "(kube-apiserver)",
        build: |_| Programs::find_or_build().map(drop),
        steps: &["e2e", "clients", "chaos", "bench-smoke"],
    },
    Background { name: "(fuzz targets)", build: fuzz::build, steps: &["fuzz"] },
    Background { name: "(bench)", build: bench::build, steps: &["clients", "bench-smoke"] },
];

/// Runs every step, and prints how long each took.
pub(crate) fn all(root: &Path) -> Result<()> {
    let start = Instant::now();
    let mut times = Vec::new();
    let mut waiting = in_background(root);
    for step in STEPS {
        for (background, done) in waiting.extract_if(.., |(background, _)| background.steps.contains(&step.name)) {
            let begun = Instant::now();
            done.recv().with_context(|| format!("{} was not built", background.name))??;
            times.push((background.name, begun.elapsed().as_secs()));
        }
        let begun = Instant::now();
        perform(root, step)?;
        times.push((step.name, begun.elapsed().as_secs()));
    }
    println!();
    for (name, seconds) in times {
        println!("{name:16}{seconds:>5} s");
    }
    println!("all {} steps passed in {} s", STEPS.len(), start.elapsed().as_secs());
    Ok(())
}

/// Starts the builds in the background. Returns each with the channel that receives its result.
fn in_background(root: &Path) -> Vec<(&'static Background, Receiver<Result<()>>)> {
    let (senders, waiting): (Vec<_>, Vec<_>) = BACKGROUND
        .iter()
        .map(|background| {
            let (sender, receiver) = channel();
            ((background, sender), (background, receiver))
        })
        .unzip();
    let root = root.to_owned();
    std::thread::spawn(move || {
        for (background, done) in senders {
            let result = (background.build)(&root).with_context(|| format!("building {}", background.name));
            let failed = result.is_err();
            // The receiver is gone if a step has failed.
            if done.send(result).is_err() || failed {
                return;
            }
        }
    });
    waiting
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

/// Random inputs and schedules are the same each time, so that CI fails only for a change. Tests that are run by hand try others.
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
    cargo(root, &["run", "--locked", "-p", "klient-cli", "--", "demo"])?;
    // Unoptimised, which takes what the demo has built.
    let installed = ["install", "--locked", "--debug", "--path", "crates/klient-cli", "--root", "target/installed"];
    cargo(root, &installed)?;
    run(root, "target/installed/bin/klient", &["--help"], &[])?;
    let built = Built::all(root)?;
    for example in EXAMPLES {
        println!("\n-- {example}");
        built.example(root, example, &[])?;
    }
    built.binary(root, "sample-controller", &[])
}

/// The examples that bring their own server.
const EXAMPLES: [&str; 15] = [
    "embedded",
    "informer",
    "multi_cluster",
    "multi_namespace",
    "pods",
    "process_item_loop",
    "sharded",
    "traces",
    "webhook",
    "wire_objects",
    "ported_configmapgen_controller",
    "ported_secret_syncer",
    "ported_shared_stream_controllers",
    "ported_workqueue",
    "ported_leader_election",
];

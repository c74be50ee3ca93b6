//! The tasks of this repository: code generation, checks, benchmarks and the steps of CI.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod api;
mod bench;
mod built;
mod chaos;
mod ci;
mod clients;
mod codegen;
mod e2e;
mod fuzz;
mod guide;
mod linked;
mod publish;
mod run;
mod shards;
mod supply;
#[cfg(test)]
mod tidy;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  ci                   every check, as CI runs them
  ci STEP              one check; `cargo xtask ci --list` lists all
  codegen [--check]    write the generated code, or fail if it is out of date (needs Go)
  fuzz [SECONDS]       run each fuzz target for SECONDS (default 10)
  e2e                  tests and examples against the real kube-apiserver, built if it is missing (needs Go)
  clients [suites]     kubectl, client-go, controller-runtime and kube-rs against the embedded server (needs Go), then
                       the own tests of apiextensions-apiserver, Flux, kube-rs and controller-runtime; `suites` runs only these
  apiserver            run the real kube-apiserver and etcd, and print the KUBECONFIG and PATH for kubectl
  registry             write the embedded server's table of kinds from the real server's documents
  record               record the real server's responses, which the embedded server is compared with
  compare [OPTIONS]    compare the embedded server with the real one over random requests; options are --requests N and --seed N;
                       --invalid N compares mutated objects, to find rules of validation that differ; --managers N compares writes of
                       several managers to objects of all kinds; --kind NAME limits their kinds
  field-sets           record what Go's structured-merge-diff does in its tests, for those of klient-core (needs Go)
  cel-tables           record what Kubernetes' CEL rules and libraries do in their tests, for those of klient-apiserver,
                       klient-cel and klient-core (needs Go)
  rbac-tables          record what Kubernetes' RBAC does in its tests, for those of klient-apiserver (needs Go)
  chaos [OPTIONS]      run worlds with random faults and check each at its end; options are --worlds N, --real N (needs Go, once),
                       --seed N, --replay N, --threaded, --verbose and --log
  shards [OPTIONS]     prove that replicas share keys without overlap: --worlds N simulated worlds (default 2000), then processes on the
                       real server that are killed and stopped (needs Go, once), then the throughput of 1, 2 and 4 replicas and
                       the cost of a reconcile; options are --seconds N, --objects N, --replicas N, --rate N, --seed N, and
                       --simulation, --real, --throughput or --cost for one part
  guide                build the guide into target/guide
  publish              check the packages, their documents and README's program outside the workspace
  api [--check]        write the lists of public items in docs/api, or fail if they are out of date
  supply               check licences, versions and sources of dependencies, and the lock files
  linked               check that a binary holds only the codecs that it uses
  bench [OPTIONS]      compare klient with client-go and kube-rs on the real server and a replay server (needs Go); options are
                       --job NAME, --size N, --sizes N,N..., --count N, --repetitions N, --json FILE, --report FILE,
                       --beside FILE, --plots FOLDER, --no-allocations, --build-times, --replay-port N and --slow-klient PERCENT
  bench-server         compare the embedded server with the real one (needs Go)
  bench-wire           benchmark the wire forms and print the ratios";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[&str]) -> Result<()> {
    let root = root();
    match arguments {
        ["ci"] => ci::all(&root),
        ["ci", "--list"] => {
            ci::list();
            Ok(())
        }
        ["ci", step] => ci::one(&root, step),
        ["codegen"] => codegen::run(&root, false),
        ["codegen", "--check"] => codegen::run(&root, true),
        ["fuzz"] => fuzz::run(&root, 10, None),
        ["fuzz", seconds] => fuzz::run(&root, seconds.parse()?, None),
        ["e2e"] => e2e::test(&root),
        ["clients"] => clients::all(&root),
        ["clients", "suites"] => clients::suites(&root),
        ["apiserver"] => e2e::serve(),
        ["registry"] => e2e::registry(&root),
        ["record"] => e2e::record(&root),
        ["compare", options @ ..] => e2e::compare(&root, options),
        ["field-sets"] => {
            let corpus = root.join("crates/klient-core/testdata/field-sets.jsonl.gz");
            run::run(&root.join("xtask/field-sets"), "go", &["run", ".", &corpus.to_string_lossy()], &[])
        }
        ["rbac-tables"] => {
            let corpus = root.join("crates/klient-apiserver/tests/rbac.jsonl.gz");
            let arguments = ["run", ".", "rbac", "../apiserver", &corpus.to_string_lossy()];
            run::run(&root.join("xtask/test-tables"), "go", &arguments, &[])
        }
        ["cel-tables"] => {
            for (set, corpus) in [
                ("cel", "crates/klient-apiserver/tests/cel.jsonl.gz"),
                ("cel-estimates", "crates/klient-core/testdata/rule-costs.jsonl.gz"),
                ("cel-libraries", "crates/klient-cel/tests/libraries.jsonl.gz"),
            ] {
                let corpus = root.join(corpus);
                let arguments = ["run", ".", set, "../apiserver", &corpus.to_string_lossy()];
                run::run(&root.join("xtask/test-tables"), "go", &arguments, &[])?;
            }
            Ok(())
        }
        ["chaos", options @ ..] => chaos::run(&root, options),
        ["shards", options @ ..] => shards::run(&root, options),
        ["guide"] => guide::build(&root),
        ["publish"] => publish::check(&root),
        ["api"] => api::run_api(&root, false),
        ["api", "--check"] => api::run_api(&root, true),
        ["supply"] => supply::check(&root),
        ["linked"] => linked::check(&root),
        ["bench", options @ ..] => bench::compare(&root, options),
        ["bench-server"] => bench::servers(&root),
        ["bench-wire"] => bench::wire(&root),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("unknown command\n{USAGE}"),
    }
}

/// Returns the root folder of the workspace.
fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or(manifest.clone(), PathBuf::from)
}

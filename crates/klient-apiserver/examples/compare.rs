//! Compares the embedded server with a real one over random sequences of requests: `cargo xtask compare` runs this.
//!
//! Prints each difference, a line of progress, and the number of requests and differences by verb and kind.

#![allow(dead_code, clippy::print_stdout, clippy::unwrap_used, missing_docs, unreachable_pub)]

#[path = "../tests/differential/embedded.rs"]
mod embedded;
#[path = "../tests/differential/layout.rs"]
mod layout;
#[path = "../tests/differential/objects.rs"]
mod objects;
#[path = "../tests/differential/random.rs"]
mod random;
#[path = "../tests/differential/real.rs"]
mod real;
#[path = "../tests/differential/reasons.rs"]
mod reasons;
#[path = "../tests/differential/script.rs"]
mod script;

use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::Arc,
    time::{Instant, SystemTime},
};

use klient::client::config::Config;

use self::{
    real::{Failure, Real},
    script::Step,
};

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (mut requests, mut seed) = (10_000, SystemTime::UNIX_EPOCH.elapsed()?.as_secs() * 1000);
    while let Some(name) = arguments.next() {
        let value: u64 = arguments.next().ok_or("an option has no value")?.parse()?;
        match name.as_str() {
            "--requests" => requests = value,
            "--seed" => seed = value,
            other => return Err(format!("unknown option {other}: there are --requests N and --seed N").into()),
        }
    }
    println!("comparing {requests} requests, seed {seed}");
    let start = Instant::now();
    let config = Config::infer()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let real = Arc::new(runtime.block_on(Real::connect(&config))?);
    let setup = random::setup();
    runtime.block_on(real.responses("d-setup", &setup))?;
    // The embedded server runs on a paused clock.
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let mut counts: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    let (mut compared, mut different, mut explained, mut broken) = (0, 0, 0, 0);
    while compared < requests {
        let seeds: Vec<u64> = (seed..seed + BATCH).collect();
        seed += BATCH;
        // A busy real server resets connections. Its responses to these sequences are not known.
        let recorded = match runtime.block_on(random::record(&real, &seeds, random::sequence_with_layouts)) {
            Ok(recorded) => recorded,
            Err(error) if broken < MAX_BROKEN => {
                println!("\nno responses to seeds {} to {seed}: {error}", seed - BATCH);
                broken += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        for (seed, theirs) in recorded {
            let steps = random::sequence_with_layouts(seed);
            let ours = paused.block_on(embedded::responses(&setup, &steps));
            for ((step, real), ours) in steps.iter().zip(&theirs).zip(&ours) {
                let count = counts.entry(subject(step)).or_default();
                count.0 += 1;
                compared += 1;
                if real != ours && reasons::is_explained(real, ours) {
                    explained += 1;
                } else if real != ours {
                    count.1 += 1;
                    different += 1;
                    let body = step.body.as_ref().map(ToString::to_string).unwrap_or_default();
                    let text = |response| serde_json::to_string(response).unwrap_or_default();
                    println!("{} {} {body}\n  real {}\n  ours {}", step.method, step.path, text(real), text(ours));
                }
            }
        }
        print!("\r{compared} requests, {different} differences, {} s ", start.elapsed().as_secs());
        std::io::stdout().flush()?;
    }
    println!("\n\n{:8}{:28}{:>10}{:>13}", "verb", "kind", "requests", "differences");
    for ((verb, kind), (requests, differences)) in counts {
        println!("{verb:8}{kind:28}{requests:>10}{differences:>13}");
    }
    println!("{explained} responses differ for the reasons in tests/differential/reasons.rs");
    println!("{different} of {compared} responses differ otherwise, after {} s", start.elapsed().as_secs());
    if different == 0 { Ok(()) } else { Err("the servers respond differently".into()) }
}

/// Returns the verb and the kind of a step.
fn subject(step: &Step) -> (String, String) {
    let path = step.path.split('?').next().unwrap_or_default();
    let is_apply = step.headers.values().any(|value| value.contains("apply-patch"));
    let is_watch = step.path.contains("watch=");
    let verb = if is_apply { "APPLY" } else { &step.method };
    let mut segments = path.split('/').skip_while(|segment| !segment.contains("${ns}")).skip(1);
    let kind = segments.next().unwrap_or("namespaces").to_owned();
    let subresource = segments.nth(1).map(|name| format!("/{name}")).unwrap_or_default();
    (if is_watch { "WATCH".to_owned() } else { verb.to_owned() }, kind + &subresource)
}

/// The number of sequences that are sent to the real server before they are compared.
const BATCH: u64 = 32;
/// The number of batches that may fail.
const MAX_BROKEN: u32 = 20;

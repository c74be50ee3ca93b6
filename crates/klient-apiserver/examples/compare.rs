//! Compares the embedded server with a real one over random sequences of requests: `cargo xtask compare` runs this.
//!
//! Prints each difference, a line of progress, and the number of requests and differences by verb and kind.

#![allow(dead_code, clippy::print_stdout, clippy::unwrap_used, missing_docs, unreachable_pub)]

#[path = "../tests/differential/audit.rs"]
mod audit;
#[path = "../tests/differential/cues.rs"]
mod cues;
#[path = "../tests/differential/embedded.rs"]
mod embedded;
#[path = "../tests/differential/invalid.rs"]
mod invalid;
#[path = "../tests/differential/layout.rs"]
mod layout;
#[path = "../tests/differential/managers.rs"]
mod managers;
#[path = "../tests/differential/mutations.rs"]
mod mutations;
#[path = "../tests/differential/objects.rs"]
mod objects;
#[path = "../tests/differential/random.rs"]
mod random;
#[path = "../tests/differential/real.rs"]
mod real;
#[path = "../tests/differential/reasons.rs"]
mod reasons;
#[path = "../tests/differential/refused.rs"]
mod refused;
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
    let mut rules = Rules::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or("an option has no value")?;
        match name.as_str() {
            "--requests" => requests = value.parse()?,
            "--seed" => seed = value.parse()?,
            "--invalid" => rules.requests = value.parse()?,
            "--managers" => (rules.requests, rules.is_stored) = (value.parse()?, true),
            "--kind" => rules.kind = Some(value),
            "--write" => rules.script = Some(value),
            other => return Err(format!("unknown option {other}: {OPTIONS}").into()),
        }
    }
    if rules.requests > 0 {
        return compare_rules(&rules, seed);
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

/// A comparison of mutated objects: of the rules of validation, or of writes by several managers.
#[derive(Default)]
struct Rules {
    requests: u64,
    /// Whether each write depends on those before it.
    is_stored: bool,
    /// The kinds that are compared, by a part of their name.
    kind: Option<String>,
    /// The file that gets a script of requests which the servers refuse, one for each rule.
    script: Option<String>,
}

/// The numbers of one kind: requests, refused ones, and differences.
#[derive(Default)]
struct Counts([u64; 3]);

/// Compares the responses to mutated objects.
fn compare_rules(rules: &Rules, first: u64) -> Result<(), Failure> {
    println!("comparing {} requests with mutated objects, seed {first}", rules.requests);
    let start = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let real = Arc::new(runtime.block_on(Real::connect(&Config::infer()?))?);
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    let mut found: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut refused = refused::Refused::default();
    let (mut seed, mut compared, mut different, mut explained, mut panics) = (first, 0, 0, 0, 0);
    while compared < rules.requests {
        let sequence = if rules.is_stored { managers::sequence } else { invalid::sequence };
        let sequences: Vec<invalid::Sequence> =
            (seed..seed + BATCH).map(|seed| sequence(seed, rules.kind.as_deref())).collect();
        let theirs = runtime.block_on(ask_all(&real, seed, &sequences))?;
        seed += BATCH;
        for (sequence, theirs) in sequences.iter().zip(theirs) {
            let ours = paused.block_on(embedded::responses(&[], &sequence.steps));
            let count = &mut counts.entry(sequence.kind.clone()).or_default().0;
            for (index, (real, ours)) in theirs.iter().zip(&ours).enumerate() {
                let (real, ours) = (&without_numbers(real), &without_numbers(ours));
                count[0] += 1;
                compared += 1;
                count[1] += u64::from(real.code >= 400);
                if real.code == 0 {
                    panics += 1;
                } else if real == ours {
                    refused.note(sequence, index, real);
                } else if reasons::is_explained(real, ours) {
                    explained += 1;
                    if rules.is_stored {
                        // From here on, the objects may differ.
                        break;
                    }
                } else {
                    count[2] += 1;
                    different += 1;
                    let told = format!("{} {}", sequence.kind, difference(real, ours));
                    let entry = found.entry(told).or_insert((0, example(sequence, index)));
                    entry.0 += 1;
                    if rules.is_stored {
                        // From here on, the objects differ.
                        break;
                    }
                }
            }
        }
        print!("\r{compared} requests, {different} differences, {} s ", start.elapsed().as_secs());
        std::io::stdout().flush()?;
    }
    println!();
    for (told, (times, example)) in &found {
        println!("{times} x {told}\n  {example}");
    }
    println!("\n{:24}{:>10}{:>10}{:>13}", "kind", "requests", "refused", "differences");
    for (kind, Counts([requests, refused, differences])) in counts {
        println!("{kind:24}{requests:>10}{refused:>10}{differences:>13}");
    }
    println!("{explained} responses differ for the reasons in tests/differential/reasons.rs");
    println!("{panics} requests made the real server panic, so that there was no response");
    println!("{different} of {compared} responses differ otherwise, after {} s", start.elapsed().as_secs());
    if let Some(path) = &rules.script {
        std::fs::write(path, refused.script())?;
    }
    if different == 0 { Ok(()) } else { Err("the servers respond differently".into()) }
}

/// Returns the real server's responses to several sequences.
async fn ask_all(
    real: &Arc<Real>,
    first: u64,
    sequences: &[invalid::Sequence],
) -> Result<Vec<Vec<script::Comparable>>, Failure> {
    let mut responses = Vec::new();
    for (at, some) in sequences.chunks(8).enumerate() {
        let asked: Vec<_> = some
            .iter()
            .enumerate()
            .map(|(index, sequence)| {
                let (real, steps) = (Arc::clone(real), sequence.steps.clone());
                let namespace = format!("i-{}-{}", std::process::id(), first + (at * 8 + index) as u64);
                tokio::spawn(async move { real.responses_or_panics(&namespace, &steps).await })
            })
            .collect();
        for one in asked {
            responses.push(one.await?);
        }
    }
    Ok(responses)
}

/// Returns a response without the numbers of identifiers: one that only one server accepts shifts the numbers of all that follow.
fn without_numbers(response: &script::Comparable) -> script::Comparable {
    fn walk(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => fields.values_mut().for_each(walk),
            serde_json::Value::Array(items) => items.iter_mut().for_each(walk),
            serde_json::Value::String(text) if text.contains("UID-") => {
                let mut parts = text.split("UID-");
                let mut plain = parts.next().unwrap_or_default().to_owned();
                for part in parts {
                    plain.push_str("UID");
                    plain.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
                }
                *text = plain;
            }
            serde_json::Value::String(text) if text.starts_with("RV-") => "RV".clone_into(text),
            _ => {}
        }
    }
    let mut response = response.clone();
    walk(&mut response.body);
    response
}

/// Returns the request of a difference.
fn example(sequence: &invalid::Sequence, index: usize) -> String {
    let step = &sequence.steps[index];
    let changed: String = sequence.changed[index].chars().take(2000).collect();
    format!("{} {changed} ({})", step.method, step.id)
}

/// Returns a description of two different responses to a mutated object.
fn difference(real: &script::Comparable, ours: &script::Comparable) -> String {
    let causes = |response: &script::Comparable| -> Vec<String> {
        let list = response.body["details"]["causes"].as_array().into_iter().flatten();
        list.map(|cause| {
            format!("{}: {}", cause["field"].as_str().unwrap_or("?"), cause["message"].as_str().unwrap_or("?"))
        })
        .collect()
    };
    let (their_causes, our_causes) = (causes(real), causes(ours));
    if (real.code, &real.body) == (ours.code, &ours.body) {
        let [missing, added] = [(real, ours), (ours, real)].map(|(one, other)| only_in(&one.warnings, &other.warnings));
        return format!("\n  real warns {missing}\n  ours warns {added}");
    }
    let text =
        |response: &script::Comparable, own: &[String], others: &[String], other: &script::Comparable| match response
            .body["message"]
            .as_str()
        {
            Some(_) if own.iter().any(|cause| !others.contains(cause)) => only_in(own, others),
            Some(_) if !own.is_empty() && response.code == other.code => "same causes or fewer".to_owned(),
            Some(message) => shortened(message),
            None => format!("accepted{}", differing(&response.body, &other.body, "")),
        };
    format!(
        "\n  real {} {}\n  ours {} {}",
        real.code,
        text(real, &their_causes, &our_causes, ours),
        ours.code,
        text(ours, &our_causes, &their_causes, real)
    )
}

/// Returns the texts that only the first list has.
fn only_in(some: &[String], others: &[String]) -> String {
    let only: Vec<String> = some.iter().filter(|text| !others.contains(text)).map(|text| shortened(text)).collect();
    only.join(" | ")
}

/// Returns the fields in which two values differ, with those of the first.
fn differing(one: &serde_json::Value, other: &serde_json::Value, at: &str) -> String {
    use serde_json::Value;
    match (one, other) {
        _ if one == other => String::new(),
        (Value::Object(fields), Value::Object(others)) => {
            let names: std::collections::BTreeSet<&String> = fields.keys().chain(others.keys()).collect();
            names.into_iter().map(|name| differing(&one[name], &other[name], &format!("{at}.{name}"))).collect()
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let pairs = items.iter().zip(others).enumerate();
            pairs.map(|(index, (one, other))| differing(one, other, &format!("{at}[{index}]"))).collect()
        }
        _ => format!(" {at}={}", shortened(&one.to_string())),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(300).collect()
}

const OPTIONS: &str = "there are --requests N, --seed N, --invalid N, --managers N, --kind NAME and --write FILE";
/// The number of sequences that are sent to the real server before they are compared.
const BATCH: u64 = 32;
/// The number of batches that may fail.
const MAX_BROKEN: u32 = 20;

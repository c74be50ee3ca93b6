//! Compares the responses of the real kube-apiserver and of the embedded server to the same scripts of requests.
//!
//! The real responses are recorded in `recorded/` by `cargo xtask record`, so that this runs without Go. `random` generates
//! further scripts. If a real server is available, seeds that are not recorded are compared, too.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod audit;
mod cues;
mod embedded;
mod invalid;
mod layout;
mod mutations;
mod objects;
mod openapi;
mod random;
mod real;
mod reasons;
mod script;

use std::{
    collections::HashSet,
    fmt,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use klient::client::config::{Config, KubeconfigFiles, Overrides};
use klient_harness::{Programs, Server};
use serde_json::Value;

use self::{
    embedded::{audit_events, responses, responses_by, responses_with_roles},
    real::Real,
    script::{Comparable, Step},
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential").join(name)
}

/// Two different responses to one request.
struct Difference<'a> {
    step: &'a Step,
    real: &'a Comparable,
    ours: &'a Comparable,
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { method, path, headers, body, .. } = self.step;
        let body = body.as_ref().map(Value::to_string).unwrap_or_default();
        let told = |response: &Comparable| serde_json::to_string(response).unwrap();
        write!(f, "{method} {path} {headers:?} {body}\n  real {}\n  ours {}", told(self.real), told(self.ours))
    }
}

/// Returns the responses that differ.
fn differences<'a>(steps: &'a [Step], real: &'a [Comparable], ours: &'a [Comparable]) -> Vec<Difference<'a>> {
    let lengths = (real.len(), ours.len());
    assert_eq!(lengths, (steps.len(), steps.len()), "recorded before it was changed: run `cargo xtask record`");
    let all = steps.iter().zip(real).zip(ours);
    all.filter(|((_, real), ours)| real != ours).map(|((step, real), ours)| Difference { step, real, ours }).collect()
}

fn scripts() -> Vec<(String, Vec<Step>)> {
    let mut found: Vec<_> = std::fs::read_dir(folder("scripts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    found.sort_by(|a: &(String, Vec<Step>), b| a.0.cmp(&b.0));
    found
}

#[tokio::test(start_paused = true)]
async fn responses_match_recorded_real_server() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, steps) in scripts() {
        let recorded = folder("recorded").join(format!("{name}.json"));
        let recorded: Vec<Comparable> = match std::fs::read_to_string(&recorded) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => panic!("{} is not there: run `cargo xtask record`", recorded.display()),
        };
        compared += recorded.len();
        let ours = match name.starts_with("access-") {
            true => responses_with_roles(&steps).await,
            false => responses(&[], &steps).await,
        };
        let found = differences(&steps, &recorded, &ours);
        wrong.extend(found.into_iter().map(|difference| format!("{name}: {difference}")));
    }
    assert!(compared > 500, "only {compared} responses");
    assert!(wrong.is_empty(), "{} of {compared} responses differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns a script, and the real server's responses to it.
fn recorded(name: &str) -> (Vec<Step>, Vec<Comparable>) {
    let steps = scripts().into_iter().find(|(found, _)| found == name).unwrap().1;
    let text = std::fs::read_to_string(folder("recorded").join(format!("{name}.json"))).unwrap();
    (steps, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn webhooks_by_tls_match_recorded_real_server() {
    let peer = cues::serve().await.unwrap();
    for name in ["webhooks", "conversion"] {
        let (steps, recorded) = recorded(name);
        let ours = responses_by(peer.clone(), &steps).await;
        let wrong: Vec<String> = differences(&steps, &recorded, &ours).iter().map(ToString::to_string).collect();
        assert!(wrong.is_empty(), "{} responses differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn audit_log_matches_recorded_real_server() {
    let recorded = std::fs::read_to_string(folder("audit").join("recorded.json")).unwrap();
    let recorded: Vec<Value> = serde_json::from_str(&recorded).unwrap();
    let ours = audit_events(&audit::steps()).await;
    assert!(recorded.len() > 40, "only {} events", recorded.len());
    let ids = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event["auditID"], event["stage"])).collect()
    };
    assert_eq!(ids(&ours), ids(&recorded));
    let differs: Vec<String> = recorded
        .iter()
        .zip(&ours)
        .filter(|(real, ours)| real != ours)
        .map(|(real, ours)| format!("  real {real}\n  ours {ours}"))
        .collect();
    assert!(differs.is_empty(), "{} of {} events differ:\n{}", differs.len(), recorded.len(), differs.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn random_sequences_match_recorded_real_server() {
    let text = std::fs::read_to_string(folder("random.json")).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let seeds: HashSet<u64> = random::RECORDED.iter().cloned().flatten().collect();
    let found = recorded.as_object().unwrap().keys().map(|seed| seed.parse().unwrap());
    assert_eq!(found.collect::<HashSet<u64>>(), seeds, "run `cargo xtask record`");
    let setup = random::setup();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (seed, recorded) in recorded.as_object().unwrap() {
        let steps = random::sequence(seed.parse().unwrap());
        let recorded = recorded.as_array().unwrap();
        let recorded: Vec<Comparable> =
            steps.iter().zip(recorded).map(|(step, short)| Comparable::from_short(&step.id, short)).collect();
        compared += recorded.len();
        let ours = responses(&setup, &steps).await;
        wrong.extend(differences(&steps, &recorded, &ours).iter().map(ToString::to_string));
    }
    assert!(compared > 1000, "only {compared} responses");
    assert!(wrong.is_empty(), "{} of {compared} responses differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn mutated_objects_match_real_server() {
    let Some(programs) = Programs::for_tests().unwrap() else {
        return std::io::stderr().write_all(b"skipped: mutated objects, since there is no kube-apiserver\n").unwrap();
    };
    let server = Server::start(&programs).unwrap();
    let files = KubeconfigFiles::explicit(server.kubeconfig());
    let config = Config::load(&files, &Overrides::default().context("token")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let real = runtime.block_on(Real::connect(&config)).unwrap();
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for seed in invalid::FIXED {
        let sequence = invalid::sequence(seed, None);
        let theirs = runtime.block_on(real.responses_or_panics(&format!("i-{seed}"), &sequence.steps));
        let ours = paused.block_on(responses(&[], &sequence.steps));
        for difference in differences(&sequence.steps, &theirs, &ours) {
            if difference.real.code != 0 && !reasons::is_explained(difference.real, difference.ours) {
                let at = sequence.steps.iter().position(|step| step.id == difference.step.id).unwrap();
                wrong.push(format!("{}: {}: {difference}", sequence.kind, sequence.changed[at]));
            }
        }
        refused += theirs.iter().filter(|response| response.code == 422).count();
    }
    assert!(refused > 100, "only {refused} requests were refused");
    assert!(wrong.is_empty(), "{} responses differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the seeds for both servers. They are fixed, so that runs are reproducible.
/// `KLIENT_SEED` and `KLIENT_SEEDS` set the first seed and their number. With only the latter, the first seed is random.
fn seeds() -> Vec<u64> {
    let given = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() * 1000;
    match (given("KLIENT_SEED"), given("KLIENT_SEEDS")) {
        (None, None) => random::FIXED.collect(),
        (first, count) => (first.unwrap_or_else(now)..).take(usize::try_from(count.unwrap_or(16)).unwrap()).collect(),
    }
}

#[test]
fn unrecorded_sequences_match_real_server() {
    let Some(programs) = Programs::for_tests().unwrap() else {
        // The output of `eprintln!` is shown only if the test fails.
        return std::io::stderr()
            .write_all(b"skipped: sequences that are not recorded, since there is no kube-apiserver\n")
            .unwrap();
    };
    let seeds = seeds();

    let server = Server::start(&programs).unwrap();
    let files = KubeconfigFiles::explicit(server.kubeconfig());
    let config = Config::load(&files, &Overrides::default().context("token")).unwrap();
    let setup = random::setup();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let recorded = runtime.block_on(async {
        let real = Arc::new(Real::connect(&config).await.unwrap());
        real.responses("d-setup", &setup).await.unwrap();
        random::record(&real, &seeds, random::sequence_with_layouts).await.unwrap()
    });
    // The embedded server runs on a paused clock.
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (mut wrong, mut explained) = (Vec::new(), 0);
    for (seed, real) in &recorded {
        let steps = random::sequence_with_layouts(*seed);
        let ours = paused.block_on(responses(&setup, &steps));
        for difference in differences(&steps, real, &ours) {
            if reasons::is_explained(difference.real, difference.ours) {
                explained += 1;
            } else {
                wrong.push(difference.to_string());
            }
        }
        for response in real {
            assert_eq!(
                Comparable::from_short(&response.id, &response.to_short()),
                Comparable { layout: None, ..response.clone() },
                "it would be recorded as another one"
            );
        }
    }
    // That is rare: a higher share could hide wrong versions.
    let compared = seeds.len() * random::LENGTH;
    assert!(explained * 100 < compared, "{explained} of {compared} differences are explained");
    let seed = format!("KLIENT_SEED={} KLIENT_SEEDS={}", seeds[0], seeds.len());
    assert!(wrong.is_empty(), "{seed}: {} responses differ:\n{}", wrong.len(), wrong.join("\n"));
}

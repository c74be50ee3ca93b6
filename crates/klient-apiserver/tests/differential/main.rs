//! Compares the responses of the real kube-apiserver and of the embedded server to the same scripts of requests.
//!
//! The real responses are recorded in `recorded/` by `cargo xtask record`, so that this runs without Go. `random` generates
//! further scripts. If a real server is available, seeds that are not recorded are compared, too.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod objects;
mod random;
mod real;
mod script;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use klient::client::config::{Config, KubeconfigFiles, Overrides};
use klient_apiserver::ApiServer;
use klient_harness::{Programs, Server};
use serde_json::Value;

use self::{
    real::Real,
    script::{Comparable, Raw, Run, Step},
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential").join(name)
}

async fn ask(server: &ApiServer, run: &Run, step: &Step) -> Raw {
    let request = run.request(step).body(Bytes::from(run.body(step))).unwrap();
    let (parts, body) = server.handle(request).await.into_parts();
    Raw::new(&parts, body.collect().await.unwrap().to_bytes().to_vec())
}

/// Returns the embedded server's responses to a script, after the steps of `setup`.
async fn responses(setup: &[Step], steps: &[Step]) -> Vec<Comparable> {
    // Like a new real server: the scripts use 999999999 as a version that does not exist yet.
    let server = ApiServer::builder().revision(1).start().await.unwrap();
    let mut run = Run::new("d-ours-1");
    for step in setup {
        ask(&server, &run, step).await;
    }
    let mut responses = Vec::new();
    for step in steps {
        let mut raw = ask(&server, &run, step).await;
        for _ in 0..1000 {
            if step.until.is_none_or(|code| code == raw.code) {
                break;
            }
            tokio::task::yield_now().await;
            raw = ask(&server, &run, step).await;
        }
        responses.push(run.note(step, &raw));
    }
    responses
}

/// Two different responses to one request.
struct Difference<'a> {
    step: &'a Step,
    real: &'a Comparable,
    ours: &'a Comparable,
}

impl Difference<'_> {
    /// Returns whether the real server wrote only managed fields, which the embedded server does not have: then
    /// versions differ, and watches have one more event without other changes.
    fn is_of_managed_fields(&self) -> bool {
        let plain = |response: &Comparable| {
            let mut body = response.body.clone();
            without_versions(&mut body);
            if let Value::Array(events) = &mut body {
                let mut last: HashMap<String, Value> = HashMap::new();
                events.retain(|event| {
                    let object = &event["object"];
                    last.insert(object["metadata"]["uid"].to_string(), object.clone()).as_ref() != Some(object)
                });
            }
            body
        };
        self.real.code == self.ours.code && plain(self.real) == plain(self.ours)
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { method, path, headers, body, .. } = self.step;
        let body = body.as_ref().map(Value::to_string).unwrap_or_default();
        let told = |response: &Comparable| serde_json::to_string(response).unwrap();
        write!(f, "{method} {path} {headers:?} {body}\n  real {}\n  ours {}", told(self.real), told(self.ours))
    }
}

fn without_versions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("resourceVersion");
            fields.values_mut().for_each(without_versions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_versions),
        _ => {}
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
        let ours = responses(&[], &steps).await;
        let found = differences(&steps, &recorded, &ours);
        wrong.extend(found.into_iter().map(|difference| format!("{name}: {difference}")));
    }
    assert!(compared > 500, "only {compared} responses");
    assert!(wrong.is_empty(), "{} of {compared} responses differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn random_sequences_match_recorded_real_server() {
    let text = std::fs::read_to_string(folder("random.json")).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let seeds: HashSet<u64> = random::RECORDED.iter().cloned().flatten().collect();
    let found = recorded.as_object().unwrap().keys().map(|seed| seed.parse().unwrap());
    assert_eq!(found.collect::<HashSet<u64>>(), seeds, "run `cargo xtask record`");
    let setup = random::setup();
    let (mut wrong, mut compared, mut explained) = (Vec::new(), 0, 0);
    for (seed, recorded) in recorded.as_object().unwrap() {
        let steps = random::sequence(seed.parse().unwrap(), random::LENGTH);
        let recorded = recorded.as_array().unwrap();
        let recorded: Vec<Comparable> =
            steps.iter().zip(recorded).map(|(step, short)| Comparable::from_short(&step.id, short)).collect();
        compared += recorded.len();
        let ours = responses(&setup, &steps).await;
        explained += sort_out(differences(&steps, &recorded, &ours), &mut wrong);
    }
    assert!(compared > 1000, "only {compared} responses");
    check_explained(explained, compared);
    assert!(wrong.is_empty(), "{} of {compared} responses differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Adds unexplained differences, and returns the number of differences that managed fields explain.
fn sort_out(differences: Vec<Difference<'_>>, wrong: &mut Vec<String>) -> usize {
    let (explained, unexplained): (Vec<_>, Vec<_>) =
        differences.into_iter().partition(Difference::is_of_managed_fields);
    wrong.extend(unexplained.iter().map(ToString::to_string));
    explained.len()
}

/// The embedded server has no managed fields, and does not write if only these change: versions then differ.
/// That is rare. A higher share could hide wrong versions.
fn check_explained(explained: usize, compared: usize) {
    assert!(explained * 20 < compared, "{explained} of {compared} responses are explained by managed fields");
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
    let Some(programs) = Programs::find().unwrap() else {
        assert!(std::env::var_os("KLIENT_E2E").is_none(), "there is no kube-apiserver");
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
        random::record(&real, &seeds).await.unwrap()
    });
    // The embedded server runs on a paused clock.
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let mut wrong = Vec::new();
    let mut explained = 0;
    for (seed, real) in &recorded {
        let steps = random::sequence(*seed, random::LENGTH);
        let ours = paused.block_on(responses(&setup, &steps));
        explained += sort_out(differences(&steps, real, &ours), &mut wrong);
        for response in real {
            assert_eq!(
                Comparable::from_short(&response.id, &response.to_short()),
                *response,
                "it would be recorded as another one"
            );
        }
    }
    check_explained(explained, seeds.len() * random::LENGTH);
    let seed = format!("KLIENT_SEED={} KLIENT_SEEDS={}", seeds[0], seeds.len());
    assert!(wrong.is_empty(), "{seed}: {} responses differ:\n{}", wrong.len(), wrong.join("\n"));
}

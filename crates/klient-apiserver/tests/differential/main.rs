//! The same scripts of requests, answered by the real kube-apiserver and by ours, compared.
//!
//! The real answers are recorded in `recorded/` by `cargo xtask record`, so that this runs without Go. `random` makes up
//! further scripts; where there is a real server, it is also asked with seeds that are not recorded.

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
    script::{Answer, Raw, Run, Step},
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential").join(name)
}

async fn ask(server: &ApiServer, run: &Run, step: &Step) -> Raw {
    let request = run.request(step).body(Bytes::from(run.body(step))).unwrap();
    let (parts, body) = server.handle(request).await.into_parts();
    Raw::new(&parts, body.collect().await.unwrap().to_bytes().to_vec())
}

/// What ours answers to a script, after some preparation.
async fn answers(setup: &[Step], steps: &[Step]) -> Vec<Answer> {
    // Like a new real server: the scripts use 999999999 as a version that does not exist yet.
    let server = ApiServer::builder().revision(1).start().await.unwrap();
    let mut run = Run::new("d-ours-1");
    for step in setup {
        ask(&server, &run, step).await;
    }
    let mut answers = Vec::new();
    for step in steps {
        let mut raw = ask(&server, &run, step).await;
        for _ in 0..1000 {
            if step.until.is_none_or(|code| code == raw.code) {
                break;
            }
            tokio::task::yield_now().await;
            raw = ask(&server, &run, step).await;
        }
        answers.push(run.note(step, &raw));
    }
    answers
}

/// Two answers to one request.
struct Difference<'a> {
    step: &'a Step,
    real: &'a Answer,
    ours: &'a Answer,
}

impl Difference<'_> {
    /// Whether the real server only wrote where nothing but managed fields changed, of which ours knows nothing: then
    /// versions are others, and watches have an event more that tells nothing new.
    fn is_of_managed_fields(&self) -> bool {
        let plain = |answer: &Answer| {
            let mut body = answer.body.clone();
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
        let told = |answer: &Answer| serde_json::to_string(answer).unwrap();
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

/// Where answers differ.
fn differences<'a>(steps: &'a [Step], real: &'a [Answer], ours: &'a [Answer]) -> Vec<Difference<'a>> {
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
async fn ours_answers_as_the_real_one_did() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, steps) in scripts() {
        let recorded = folder("recorded").join(format!("{name}.json"));
        let recorded: Vec<Answer> = match std::fs::read_to_string(&recorded) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => panic!("{} is not there: run `cargo xtask record`", recorded.display()),
        };
        compared += recorded.len();
        let ours = answers(&[], &steps).await;
        let found = differences(&steps, &recorded, &ours);
        wrong.extend(found.into_iter().map(|difference| format!("{name}: {difference}")));
    }
    assert!(compared > 500, "only {compared} answers");
    assert!(wrong.is_empty(), "{} of {compared} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn ours_answers_random_sequences_as_the_real_one_did() {
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
        let recorded: Vec<Answer> =
            steps.iter().zip(recorded).map(|(step, short)| Answer::from_short(&step.id, short)).collect();
        compared += recorded.len();
        let ours = answers(&setup, &steps).await;
        explained += sort_out(differences(&steps, &recorded, &ours), &mut wrong);
    }
    assert!(compared > 1000, "only {compared} answers");
    check_explained(explained, compared);
    assert!(wrong.is_empty(), "{} of {compared} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Adds what is wrong; returns how many differences managed fields explain.
fn sort_out(differences: Vec<Difference<'_>>, wrong: &mut Vec<String>) -> usize {
    let (explained, unexplained): (Vec<_>, Vec<_>) =
        differences.into_iter().partition(Difference::is_of_managed_fields);
    wrong.extend(unexplained.iter().map(ToString::to_string));
    explained.len()
}

/// Ours keeps no managed fields, so that it does not write where the real one changed only these: versions then differ.
/// That is rare. Were it not, the excuse would hide a server that counts its versions wrongly.
fn check_explained(explained: usize, compared: usize) {
    assert!(explained * 20 < compared, "{explained} of {compared} answers are explained by managed fields");
}

/// The seeds to ask both servers with: always the same ones, so that a run says something of the code and not of luck.
/// `KLIENT_SEED` and `KLIENT_SEEDS` choose the first and how many; with only the latter, they are new ones each time.
fn seeds() -> Vec<u64> {
    let given = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() * 1000;
    match (given("KLIENT_SEED"), given("KLIENT_SEEDS")) {
        (None, None) => random::FIXED.collect(),
        (first, count) => (first.unwrap_or_else(now)..).take(usize::try_from(count.unwrap_or(16)).unwrap()).collect(),
    }
}

#[test]
fn both_answer_sequences_that_are_not_recorded() {
    let Some(programs) = Programs::find().unwrap() else {
        assert!(std::env::var_os("KLIENT_E2E").is_none(), "there is no kube-apiserver");
        // Not with `eprintln!`, which tests show only if they fail.
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
        real.answers("d-setup", &setup).await.unwrap();
        random::record(&real, &seeds).await.unwrap()
    });
    // Ours does not need the time to pass.
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let mut wrong = Vec::new();
    let mut explained = 0;
    for (seed, real) in &recorded {
        let steps = random::sequence(*seed, random::LENGTH);
        let ours = paused.block_on(answers(&setup, &steps));
        explained += sort_out(differences(&steps, real, &ours), &mut wrong);
        for answer in real {
            assert_eq!(
                Answer::from_short(&answer.id, &answer.to_short()),
                *answer,
                "it would be recorded as another one"
            );
        }
    }
    check_explained(explained, seeds.len() * random::LENGTH);
    let seed = format!("KLIENT_SEED={} KLIENT_SEEDS={}", seeds[0], seeds.len());
    assert!(wrong.is_empty(), "{seed}: {} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

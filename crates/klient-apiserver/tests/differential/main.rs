//! The same scripts of requests, answered by the real kube-apiserver and by ours, compared.
//!
//! The real answers are recorded in `recorded/` by `cargo xtask record`, so that this runs without Go.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod script;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;

use self::script::{Answer, Raw, Run, Step};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential").join(name)
}

async fn ask(server: &ApiServer, run: &Run, step: &Step) -> Raw {
    let mut request = http::Request::builder().method(step.method.as_str()).uri(run.fill(&step.path));
    for (name, value) in &step.headers {
        request = request.header(name, run.fill(value));
    }
    if step.body.is_some() && !step.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
        request = request.header("content-type", "application/json");
    }
    let response = server.handle(request.body(Bytes::from(run.body(step))).unwrap()).await;
    let (parts, body) = response.into_parts();
    let text =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let warnings = parts.headers.get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect();
    let (code, content_type) = (parts.status.as_u16(), text("content-type"));
    Raw { code, content_type, warnings, body: body.collect().await.unwrap().to_bytes().to_vec() }
}

/// What ours answers to a script.
async fn answers(steps: &[Step]) -> Vec<Answer> {
    let server = ApiServer::start().await.unwrap();
    let mut run = Run::new("d-ours-1");
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
        assert_eq!(recorded.len(), steps.len(), "{name} was recorded before it was changed: run `cargo xtask record`");
        for (real, ours) in recorded.iter().zip(answers(&steps).await) {
            compared += 1;
            if *real != ours {
                let (real, ours) = (serde_json::to_string(real).unwrap(), serde_json::to_string(&ours).unwrap());
                wrong.push(format!("{name}\n  real {real}\n  ours {ours}"));
            }
        }
    }
    assert!(compared > 500, "only {compared} answers");
    assert!(wrong.is_empty(), "{} of {compared} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

//! The embedded server, called directly.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;

use crate::script::{Comparable, Raw, Run, Step};

async fn ask(server: &ApiServer, run: &Run, step: &Step) -> Raw {
    let request = run.request(step).body(Bytes::from(run.body(step))).unwrap();
    let (parts, body) = server.handle(request).await.into_parts();
    Raw::new(&parts, body.collect().await.unwrap().to_bytes().to_vec())
}

/// Returns the embedded server's responses to a script, after the steps of `setup`.
pub async fn responses(setup: &[Step], steps: &[Step]) -> Vec<Comparable> {
    // Like a new real server: the scripts use 999999999 as a version that does not exist yet.
    // On a slow machine, a second could pass between two writes, which changes the order of managed fields.
    let clock = klient_apiserver::ManualClock::new(jiff::Timestamp::now());
    let server = ApiServer::builder().clock(clock).revision(1).start().await.unwrap();
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

//! The embedded server, called directly.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use klient_apiserver::{ApiServer, ApiServerBuilder, AuditPolicy, User};
use serde_json::Value;

use crate::{
    audit, cues,
    script::{Comparable, Peer, Raw, Run, Step},
};

async fn ask(server: &ApiServer, run: &Run, step: &Step) -> Raw {
    let mut request = run.request(step);
    if !Run::has_credentials(step) {
        request = request.header("authorization", format!("Bearer {}", klient_harness::TOKEN));
    }
    let request = request.body(Bytes::from(run.body(step))).unwrap();
    let (parts, body) = server.handle(request).await.into_parts();
    Raw::new(&parts, body.collect().await.unwrap().to_bytes().to_vec())
}

/// Returns the embedded server's responses to a script, after the steps of `setup`.
pub async fn responses(setup: &[Step], steps: &[Step]) -> Vec<Comparable> {
    responses_of(ApiServer::builder(), setup, steps, None).await
}

/// Returns the responses to a script whose webhooks are served by a socket.
pub async fn responses_by(peer: Peer, steps: &[Step]) -> Vec<Comparable> {
    responses_of(ApiServer::builder(), &[], steps, Some(peer)).await
}

/// Returns the responses of a server with roles, whose users are those of the real one in `klient-harness`.
pub async fn responses_with_roles(steps: &[Step]) -> Vec<Comparable> {
    responses_of(with_roles(), &[], steps, None).await
}

/// Returns the events of the audit log.
pub async fn audit_events(steps: &[Step]) -> Vec<Value> {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&lines);
    let policy = AuditPolicy::from_yaml(audit::POLICY).unwrap();
    let builder = with_roles().audit(policy, move |line| sink.lock().unwrap().push(line.to_owned()));
    let mut run = Run::new("d-ours-1");
    run_on(builder, &mut run, &[], steps).await;
    let lines = std::mem::take(&mut *lines.lock().unwrap());
    audit::events(&mut run, "d-ours-1", &lines)
}

/// Returns the settings of the server in `klient-harness`.
fn with_roles() -> ApiServerBuilder {
    let user = |name: &str, uid: &str| User::new(name).uid(uid).group("system:masters");
    ApiServer::builder()
        .rbac()
        .token_issuer("https://klient.invalid")
        .token(klient_harness::TOKEN, user("e2e-token-user", "1"))
        .token(klient_harness::SECOND_TOKEN, user("e2e-second-user", "2"))
}

async fn responses_of(
    builder: ApiServerBuilder,
    setup: &[Step],
    steps: &[Step],
    peer: Option<Peer>,
) -> Vec<Comparable> {
    let peer = peer.unwrap_or_else(|| Peer { url: cues::URL.to_owned(), authority: cues::AUTHORITY.clone() });
    run_on(builder, &mut Run::new("d-ours-1").with_peer(Some(peer)), setup, steps).await
}

async fn run_on(builder: ApiServerBuilder, run: &mut Run, setup: &[Step], steps: &[Step]) -> Vec<Comparable> {
    // Like a new real server: the scripts use 999999999 as a version that does not exist yet.
    // On a slow machine, a second could pass between two writes, which changes the order of managed fields.
    let clock = klient_apiserver::ManualClock::new(jiff::Timestamp::now());
    let server = builder.clock(clock).revision(1).start().await.unwrap();
    server.webhook_service(cues::URL, |request: http::Request<Bytes>| async move { cues::respond(&request).await });
    for step in setup {
        ask(&server, run, step).await;
    }
    let mut responses = Vec::new();
    for step in steps {
        let mut raw = ask(&server, run, step).await;
        for _ in 0..1000 {
            if step.until.is_none_or(|code| code == raw.code) {
                break;
            }
            tokio::task::yield_now().await;
            raw = ask(&server, run, step).await;
        }
        responses.push(run.note(step, &raw));
    }
    responses
}

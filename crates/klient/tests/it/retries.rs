//! The conditions and delays of retries. Time is paused, and no sockets are used.

use std::{fs, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Error, ErrorKind, Patch, SharedInformer,
    client::{auth::TokenFileAuth, http::Body},
    request::media_type,
    retry::MAX_RETRY_AFTER,
    status::Status,
};
use klient_apiserver::{ApiServer, Fault};
use serde_json::json;

use crate::support::embedded;
use crate::support::scripted::{
    Script, Seen, Step, fed, json_response, map, map_json, map_response, response, streamed, with,
};

fn busy(code: u16, retry_after: Option<&str>) -> http::Response<Body> {
    let response = response(code, "text/plain", "busy");
    match retry_after {
        Some(value) => with(response, "retry-after", value),
        None => response,
    }
}

fn waits(seen: &[Seen]) -> Vec<u64> {
    seen.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn rejected_request_is_retried_after_the_servers_delay() {
    let script = Script::new([busy(429, Some("2")), busy(503, Some("5")), map_response("web")]);
    assert_eq!(script.maps().get("web").await.unwrap(), map("web"));
    assert_eq!(waits(&script.played()), [2, 5]);
}

#[tokio::test(start_paused = true)]
async fn rejected_write_is_retried_with_the_same_body() {
    let script = Script::new([busy(429, Some("1")), map_response("web")]);
    script.maps().create(&map("web")).await.unwrap();
    let seen = script.played();
    assert_eq!(waits(&seen), [1]);
    assert_eq!(seen[0].request.body(), seen[1].request.body());
    assert_eq!(seen[0].request.headers(), seen[1].request.headers());
    assert_eq!(seen[0].request.uri(), seen[1].request.uri());
}

#[tokio::test(start_paused = true)]
async fn rejection_without_a_delay_is_not_retried() {
    for code in [429, 500, 503] {
        let script = Script::new([busy(code, None)]);
        script.maps().create(&map("web")).await.unwrap_err();
        assert_eq!(script.played().len(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn request_is_sent_at_most_ten_times() {
    let script = Script::new((0..10).map(|_| busy(429, Some("1"))));
    let error = script.maps().get("web").await.unwrap_err();
    assert!(error.is_too_many_requests(), "{error:?}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(script.played().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn informer_does_not_sleep_for_a_retry_after_of_a_day() {
    let server = ApiServer::start().await.unwrap();
    // More than the attempts of one request, so that the informer itself waits, too.
    server.inject(Fault::too_many_requests(86_400).times(12));
    let maps: Api<ConfigMap> = Api::namespaced(embedded::client(&server), "default");
    let informer = SharedInformer::new(maps);
    informer.start();
    let synced = tokio::time::timeout(Duration::from_secs(60 * 14), informer.wait_for_sync()).await;
    synced.expect("the informer waits for as long as the server requests").unwrap();
}

#[test]
fn error_limits_the_delay_that_a_server_requests() {
    let status = Error::from(Status::too_many_requests("maintenance", 86_400));
    assert_eq!(status.retry_after(), Some(MAX_RETRY_AFTER));
    assert_eq!(status.context("cannot list").retry_after(), Some(MAX_RETRY_AFTER));
    let header = Error::new(ErrorKind::Unavailable, "maintenance").with_retry_after(Duration::MAX);
    assert_eq!(header.retry_after(), Some(MAX_RETRY_AFTER));
}

#[tokio::test(start_paused = true)]
async fn read_is_retried_after_a_broken_connection() {
    let script = Script::new([Step::Broken, Step::Broken, map_response("web").into()]);
    script.maps().get("web").await.unwrap();
    script.played();

    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": []});
    let script = Script::new([Step::Broken, json_response(200, &list).into()]);
    script.maps().list().await.unwrap();
    script.played();

    let script = Script::new([Step::Broken, Step::Broken, Step::Broken]);
    let error = script.maps().get("web").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    script.played();
}

#[tokio::test(start_paused = true)]
async fn write_or_watch_is_not_retried_after_a_broken_connection() {
    async fn check<T>(call: impl AsyncFnOnce(Api<ConfigMap>) -> Result<T, Error>) {
        let script = Script::new([Step::Broken]);
        assert_eq!(call(script.maps()).await.err().unwrap().kind(), ErrorKind::Transport);
        script.played();
    }
    check(async |maps| maps.create(&map("web")).await).await;
    check(async |maps| maps.update(&map("web")).await).await;
    check(async |maps| maps.update_status(&map("web")).await).await;
    check(async |maps| maps.patch("web", Patch::merge(json!({}))).await).await;
    check(async |maps| maps.delete("web").await).await;
    check(async |maps| maps.delete_collection().await).await;
    check(async |maps| maps.watch().await).await;
}

#[tokio::test(start_paused = true)]
async fn write_is_not_retried_after_503() {
    async fn check<T>(call: impl AsyncFnOnce(Api<ConfigMap>) -> Result<T, Error>) {
        // A proxy that lost the connection to the server responds like this, too.
        let script = Script::new([busy(503, Some("1"))]);
        assert!(call(script.maps()).await.err().unwrap().is_unavailable());
        assert_eq!(script.played().len(), 1);
    }
    check(async |maps| maps.create(&map("web")).await).await;
    check(async |maps| maps.update(&map("web")).await).await;
    check(async |maps| maps.patch("web", Patch::merge(json!({}))).await).await;
    check(async |maps| maps.delete("web").await).await;
    check(async |maps| maps.delete_collection().await).await;
    let post = http::Request::post("/api/v1/namespaces").body(Vec::new()).unwrap();
    check(async move |maps| maps.client().send(post).await).await;
}

#[tokio::test(start_paused = true)]
async fn read_or_watch_is_retried_after_503() {
    let events = json!({"type": "ADDED", "object": map_json("web")}).to_string();
    let script = Script::new([busy(503, Some("1")), response(200, media_type::JSON, events)]);
    script.maps().watch().await.unwrap();
    script.played();
    let script = Script::new([busy(503, Some("1")), response(200, "text/plain", "ok")]);
    script.client().send(http::Request::get("/readyz").body(Vec::new()).unwrap()).await.unwrap();
    script.played();
}

#[tokio::test(start_paused = true)]
async fn last_error_names_the_earlier_ones() {
    let gone = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "no web"});
    let script = Script::new([busy(503, Some("1")).into(), Step::Broken, json_response(404, &gone).into()]);
    let error = script.maps().get("web").await.unwrap_err();
    assert!(error.is_not_found() && error.status().is_some());
    let expected = "no web (attempt 3; before: 503 Service Unavailable, the scripted connection broke)";
    assert_eq!(error.to_string(), expected);
    script.played();

    let script = Script::new([Step::Broken, Step::Broken, Step::Broken]);
    let error = script.maps().get("web").await.unwrap_err();
    let expected = "the scripted connection broke (attempt 3; before: the scripted connection broke, 2 times)";
    assert_eq!(error.to_string(), expected);
    script.played();

    let script = Script::new([json_response(404, &gone)]);
    assert_eq!(script.maps().get("web").await.unwrap_err().to_string(), "no web");
    script.played();
}

#[tokio::test(start_paused = true)]
async fn rejected_token_is_reread_and_retried_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "one").unwrap();
    let script = Script::new([response(200, "text/plain", ""), busy(401, None), map_response("web")]);
    let client = script.builder().auth(TokenFileAuth::new(&path, None).unwrap()).build();
    client.send(http::Request::get("/readyz").body(Vec::new()).unwrap()).await.unwrap();
    fs::write(&path, "two").unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&map("web")).await.unwrap();
    let seen = script.played();
    let tokens: Vec<_> = seen.iter().map(|seen| seen.request.headers()["authorization"].to_str().unwrap()).collect();
    assert_eq!(tokens, ["Bearer one", "Bearer one", "Bearer two"]);
    assert_eq!(seen[1].request.body(), seen[2].request.body());
}

#[tokio::test(start_paused = true)]
async fn unchanged_rejected_token_is_not_retried() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "one").unwrap();
    let script = Script::new([busy(401, None)]);
    let client = script.builder().auth(TokenFileAuth::new(&path, None).unwrap()).build();
    let error = client.send(http::Request::get("/api").body(Vec::new()).unwrap()).await.unwrap_err();
    assert!(error.is_unauthorized(), "{error:?}");
    assert_eq!(script.played().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn second_rejected_token_is_final() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "one").unwrap();
    let auth = TokenFileAuth::new(&path, None).unwrap();
    let script = Script::new([response(200, "text/plain", ""), busy(401, None), busy(401, None)]);
    let client = script.builder().auth(auth).build();
    let request = || http::Request::get("/api").body(Vec::new()).unwrap();
    client.send(request()).await.unwrap();
    fs::write(&path, "two").unwrap();
    assert!(client.send(request()).await.unwrap_err().is_unauthorized());
    assert_eq!(script.played().len(), 3);
}

#[tokio::test]
async fn write_is_retried_as_json_after_415() {
    let refused = response(415, "text/plain", "no protobuf here");
    let script = Script::new([refused, json_response(201, &map_json("web")), json_response(200, &map_json("web"))]);
    let maps = script.maps();
    maps.create(&map("web")).await.unwrap();
    // The next write uses JSON at once.
    maps.update(&map("web")).await.unwrap();
    let seen = script.played();
    let sent: Vec<_> = seen
        .iter()
        .map(|seen| (seen.request.method().as_str(), seen.request.headers()["content-type"].to_str().unwrap()))
        .collect();
    assert_eq!(sent, [("POST", media_type::PROTOBUF), ("POST", media_type::JSON), ("PUT", media_type::JSON)]);
    let protobuf: ConfigMap = klient::wire::decode_body(seen[0].request.body()).unwrap();
    assert_eq!(protobuf, map("web"));
    for seen in &seen[1..] {
        let json: ConfigMap = serde_json::from_slice(seen.request.body()).unwrap();
        assert_eq!(json, map("web"));
    }
}

#[tokio::test]
async fn rejected_json_write_is_not_retried() {
    let script = Script::new([response(415, "text/plain", "")]);
    let maps: Api<ConfigMap> = Api::namespaced(script.builder().json_only().build(), "default");
    assert!(maps.create(&map("web")).await.unwrap_err().is_invalid());
    assert_eq!(script.played()[0].request.headers()["accept"], media_type::JSON);
}

#[tokio::test(start_paused = true)]
async fn every_verb_times_out_without_a_response() {
    for step in [Step::Silence, Step::Respond(streamed(200, media_type::JSON, fed_forever()))] {
        let script = Script::new([step]);
        let client = script.builder().timeout(Duration::from_secs(3)).build();
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let started = tokio::time::Instant::now();
        let error = maps.get("web").await.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert_eq!(started.elapsed().as_secs(), 3);
        script.played();
    }
    let script = Script::new([streamed(200, media_type::JSON, fed_forever())]);
    let error = script.maps().list().for_each_raw(Default::default(), |_| {}).await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    let script = Script::new([Step::Silence]);
    assert!(script.maps().watch().await.unwrap_err().is_timeout());
    let script = Script::new([Step::Silence]);
    assert!(script.maps().create(&map("web")).await.unwrap_err().is_timeout());
    script.played();
}

/// Returns a body that never sends data.
fn fed_forever() -> Body {
    let (sender, body) = fed();
    std::mem::forget(sender);
    body
}

#[tokio::test(start_paused = true)]
async fn idle_watch_does_not_time_out() {
    let (sender, body) = fed();
    let script = Script::new([streamed(200, media_type::JSON, body)]);
    let mut watch = script.maps().watch().await.unwrap();
    let silence = tokio::time::timeout(Duration::from_secs(3600), watch.next()).await;
    assert!(silence.is_err());
    let event = json!({"type": "ADDED", "object": map_json("web")}).to_string();
    sender.send(Ok(event.into())).unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().object(), Some(&map("web")));
}

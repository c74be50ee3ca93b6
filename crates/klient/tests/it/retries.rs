//! What is sent again, when, and what never is. Time is paused: nothing here touches a socket.

use std::{fs, time::Duration};

use klient::{
    Api, Error, ErrorKind, Patch,
    client::{auth::TokenFileAuth, http::Body},
    request::media_type,
};
use serde_json::json;

use crate::support::scripted::{
    Script, Seen, Step, answer, fed, json_answer, map, map_answer, map_json, streamed, with,
};

fn busy(code: u16, retry_after: Option<&str>) -> http::Response<Body> {
    let response = answer(code, "text/plain", "busy");
    match retry_after {
        Some(value) => with(response, "retry-after", value),
        None => response,
    }
}

fn waits(seen: &[Seen]) -> Vec<u64> {
    seen.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_sent_again_when_the_server_said() {
    let script = Script::new([busy(429, Some("2")), busy(503, Some("5")), map_answer("web")]);
    assert_eq!(script.maps().get("web").await.unwrap(), map("web"));
    assert_eq!(waits(&script.played()), [2, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_sent_again_with_the_same_body() {
    let script = Script::new([busy(429, Some("1")), map_answer("web")]);
    script.maps().create(&map("web")).await.unwrap();
    let seen = script.played();
    assert_eq!(waits(&seen), [1]);
    assert_eq!(seen[0].request.body(), seen[1].request.body());
    assert_eq!(seen[0].request.headers(), seen[1].request.headers());
    assert_eq!(seen[0].request.uri(), seen[1].request.uri());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_time_is_final() {
    for code in [429, 500, 503] {
        let script = Script::new([busy(code, None)]);
        script.maps().create(&map("web")).await.unwrap_err();
        assert_eq!(script.played().len(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_ten_times_at_most() {
    let script = Script::new((0..10).map(|_| busy(429, Some("1"))));
    let error = script.maps().get("web").await.unwrap_err();
    assert!(error.is_too_many_requests(), "{error:?}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(script.played().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_read_is_sent_again_when_its_connection_broke() {
    let script = Script::new([Step::Broken, Step::Broken, map_answer("web").into()]);
    script.maps().get("web").await.unwrap();
    script.played();

    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": []});
    let script = Script::new([Step::Broken, json_answer(200, &list).into()]);
    script.maps().list().await.unwrap();
    script.played();

    let script = Script::new([Step::Broken, Step::Broken, Step::Broken]);
    let error = script.maps().get("web").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    script.played();
}

#[tokio::test(start_paused = true)]
async fn a_write_or_watch_is_never_sent_again_when_its_connection_broke() {
    async fn check<T>(call: impl AsyncFnOnce(Api<k8s_openapi::api::core::v1::ConfigMap>) -> Result<T, Error>) {
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
async fn a_rejected_token_is_read_anew_and_tried_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "one").unwrap();
    let script = Script::new([answer(200, "text/plain", ""), busy(401, None), map_answer("web")]);
    let client = script.builder().auth(TokenFileAuth::new(&path, None).unwrap()).build();
    client.send(http::Request::get("/readyz").body(Vec::new()).unwrap()).await.unwrap();
    fs::write(&path, "two").unwrap();
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client, "default");
    maps.create(&map("web")).await.unwrap();
    let seen = script.played();
    let tokens: Vec<_> = seen.iter().map(|seen| seen.request.headers()["authorization"].to_str().unwrap()).collect();
    assert_eq!(tokens, ["Bearer one", "Bearer one", "Bearer two"]);
    assert_eq!(seen[1].request.body(), seen[2].request.body());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_token_that_did_not_change_is_not_tried_again() {
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
async fn a_second_rejected_token_is_final() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "one").unwrap();
    let auth = TokenFileAuth::new(&path, None).unwrap();
    let script = Script::new([answer(200, "text/plain", ""), busy(401, None), busy(401, None)]);
    let client = script.builder().auth(auth).build();
    let request = || http::Request::get("/api").body(Vec::new()).unwrap();
    client.send(request()).await.unwrap();
    fs::write(&path, "two").unwrap();
    assert!(client.send(request()).await.unwrap_err().is_unauthorized());
    assert_eq!(script.played().len(), 3);
}

#[tokio::test]
async fn a_write_that_the_server_does_not_take_as_protobuf_goes_as_json() {
    let refused = answer(415, "text/plain", "no protobuf here");
    let script = Script::new([refused, json_answer(201, &map_json("web")), json_answer(200, &map_json("web"))]);
    let maps = script.maps();
    maps.create(&map("web")).await.unwrap();
    // The refusal is remembered: the next write does not try again.
    maps.update(&map("web")).await.unwrap();
    let seen = script.played();
    let sent: Vec<_> = seen
        .iter()
        .map(|seen| (seen.request.method().as_str(), seen.request.headers()["content-type"].to_str().unwrap()))
        .collect();
    assert_eq!(sent, [("POST", media_type::PROTOBUF), ("POST", media_type::JSON), ("PUT", media_type::JSON)]);
    let protobuf: k8s_openapi::api::core::v1::ConfigMap = klient::wire::decode_body(seen[0].request.body()).unwrap();
    assert_eq!(protobuf, map("web"));
    for seen in &seen[1..] {
        let json: k8s_openapi::api::core::v1::ConfigMap = serde_json::from_slice(seen.request.body()).unwrap();
        assert_eq!(json, map("web"));
    }
}

#[tokio::test]
async fn a_json_write_that_is_not_taken_is_not_sent_twice() {
    let script = Script::new([answer(415, "text/plain", "")]);
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> =
        Api::namespaced(script.builder().json_only().build(), "default");
    assert!(maps.create(&map("web")).await.unwrap_err().is_invalid());
    assert_eq!(script.played()[0].request.headers()["accept"], media_type::JSON);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_a_timeout_for_every_verb() {
    for step in [Step::Silence, Step::Answer(streamed(200, media_type::JSON, fed_forever()))] {
        let script = Script::new([step]);
        let client = script.builder().timeout(Duration::from_secs(3)).build();
        let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client, "default");
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

/// A body of which nothing ever comes.
fn fed_forever() -> Body {
    let (sender, body) = fed();
    std::mem::forget(sender);
    body
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_be_silent_for_longer_than_the_timeout() {
    let (sender, body) = fed();
    let script = Script::new([streamed(200, media_type::JSON, body)]);
    let mut watch = script.maps().watch().await.unwrap();
    let silence = tokio::time::timeout(Duration::from_secs(3600), watch.next()).await;
    assert!(silence.is_err());
    let event = json!({"type": "ADDED", "object": map_json("web")}).to_string();
    sender.send(Ok(event.into())).unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().object(), Some(&map("web")));
}

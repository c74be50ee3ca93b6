//! A watch that resumes by itself. Time is paused, and no sockets are used.

use std::{pin::Pin, time::Duration};

use futures_core::Stream as _;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Error, ErrorKind, WatchEvent,
    client::{RetryWatch, http::Body},
    object::VersionMatch,
    options::WatchOptions,
    request::media_type,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::support::scripted::{Script, Seen, Step, fed, json_response, response, streamed, with};

fn event(kind: &str, name: &str, version: &str) -> String {
    let metadata = json!({"name": name, "resourceVersion": version});
    json!({"type": kind, "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}}).to_string() + "\n"
}

fn added(name: &str, version: &str) -> String {
    event("ADDED", name, version)
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason})
}

fn error_event(code: u16, reason: &str) -> String {
    json!({"type": "ERROR", "object": status(code, reason)}).to_string() + "\n"
}

fn stream(events: impl AsRef<[String]>) -> http::Response<Body> {
    response(200, media_type::JSON, events.as_ref().concat())
}

fn watch(script: &std::sync::Arc<Script>) -> RetryWatch<ConfigMap> {
    RetryWatch::new(script.maps(), WatchOptions::after("5")).unwrap()
}

fn show(event: Option<Result<WatchEvent<ConfigMap>, Error>>) -> String {
    match event {
        None => "end".to_owned(),
        Some(Err(error)) => format!("{:?}", error.kind()),
        Some(Ok(WatchEvent::Bookmark(bookmark))) => format!("BOOKMARK {}", bookmark.resource_version),
        Some(Ok(event)) => {
            format!("{} {}", event.type_name(), event.object().unwrap().metadata.name.as_deref().unwrap())
        }
    }
}

async fn next(watch: &mut RetryWatch<ConfigMap>) -> String {
    show(watch.next().await)
}

#[tokio::test(start_paused = true)]
async fn retry_watch_is_a_stream_of_events() {
    let script = Script::new([stream([added("a", "6")]), stream([added("b", "7")])]);
    let mut events = script.maps().watch().after("5").retrying().unwrap();
    for name in ["ADDED a", "ADDED b"] {
        let event = std::future::poll_fn(|context| Pin::new(&mut events).poll_next(context)).await;
        assert_eq!(show(event), name);
    }
    assert_eq!(versions(&script.played()), ["5", "6"]);
}

/// Returns the versions from which watches were started.
fn versions(seen: &[Seen]) -> Vec<String> {
    let version = |seen: &Seen| {
        let query = seen.request.uri().query().unwrap();
        let version = query.split('&').find_map(|part| part.strip_prefix("resourceVersion=")).unwrap();
        version.to_owned()
    };
    seen.iter().map(version).collect()
}

fn apart(seen: &[Seen]) -> Vec<f64> {
    seen.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect()
}

#[tokio::test(start_paused = true)]
async fn retry_watch_resumes_after_the_last_event() {
    let script = Script::new([
        stream([added("a", "6"), added("b", "8")]),
        stream([]),
        stream([event("DELETED", "a", "9")]),
        stream([error_event(410, "Expired")]),
    ]);
    let mut watch = watch(&script);
    assert_eq!(watch.resource_version().as_str(), "5");
    assert_eq!(next(&mut watch).await, "ADDED a");
    assert_eq!(watch.resource_version().as_str(), "6");
    for expected in ["ADDED b", "DELETED a", "Gone", "end", "end"] {
        assert_eq!(next(&mut watch).await, expected);
    }
    assert_eq!(versions(&script.played()), ["5", "8", "8", "9"]);
}

#[tokio::test(start_paused = true)]
async fn retry_watch_resumes_after_a_bookmark() {
    let bookmark = event("BOOKMARK", "", "90");
    for wanted in [false, true] {
        let script = Script::new([stream([added("a", "6"), bookmark.clone()]), stream([added("b", "91")])]);
        let mut options = WatchOptions::after("5").labels("a=b");
        options.allow_bookmarks = wanted;
        let mut watch = RetryWatch::new(script.maps(), options).unwrap();
        assert_eq!(next(&mut watch).await, "ADDED a");
        if wanted {
            assert_eq!(next(&mut watch).await, "BOOKMARK 90");
        }
        assert_eq!(next(&mut watch).await, "ADDED b");
        let seen = script.played();
        assert_eq!(versions(&seen), ["5", "90"]);
        let query = |seen: &Seen| seen.request.uri().query().unwrap().to_owned();
        assert!(seen.iter().all(|seen| query(seen).contains("allowWatchBookmarks=true")));
        assert!(seen.iter().all(|seen| query(seen).contains("labelSelector=a%3Db")));
    }
}

#[tokio::test(start_paused = true)]
async fn broken_connection_neither_loses_nor_repeats_events() {
    let (sender, body) = fed();
    let half = added("b", "7");
    sender.send(Ok(added("a", "6").into())).unwrap();
    sender.send(Ok(half[..half.len() / 2].to_owned().into())).unwrap();
    sender.send(Err("reset".into())).unwrap();
    let cut = added("c", "8");
    let script = Script::new([
        streamed(200, media_type::JSON, body),
        // The connection is closed inside an event, without an error.
        stream([half, cut[..cut.len() / 2].to_owned()]),
        stream([cut]),
    ]);
    let mut watch = watch(&script);
    for expected in ["ADDED a", "ADDED b", "ADDED c"] {
        assert_eq!(next(&mut watch).await, expected);
    }
    assert_eq!(versions(&script.played()), ["5", "6", "7"]);
}

#[tokio::test(start_paused = true)]
async fn retry_watch_retries_transient_errors() {
    let script = Script::new([
        Step::Broken,
        response(500, "text/plain", "down").into(),
        response(503, "text/html", "<html>").into(),
        json_response(504, &status(504, "Timeout")).into(),
        json_response(429, &status(429, "TooManyRequests")).into(),
        response(200, "text/html", "<html>please log in</html>").into(),
        stream([error_event(500, "InternalError")]).into(),
        stream([added("a", "6")]).into(),
    ]);
    let mut watch = watch(&script);
    assert_eq!(next(&mut watch).await, "ADDED a");
    assert!(watch.last_error().is_none());
    assert_eq!(versions(&script.played()), ["5"; 8]);
}

#[tokio::test(start_paused = true)]
async fn permanent_error_ends_the_retry_watch() {
    for (code, reason, kind) in [
        (410, "Expired", "Gone"),
        (410, "Gone", "Gone"),
        (403, "Forbidden", "Forbidden"),
        (401, "Unauthorized", "Unauthorized"),
        (404, "NotFound", "NotFound"),
        (400, "BadRequest", "Invalid"),
    ] {
        let script = Script::new([stream([added("a", "6")]), json_response(code, &status(code, reason))]);
        let mut one = watch(&script);
        for expected in ["ADDED a", kind, "end", "end"] {
            assert_eq!(next(&mut one).await, expected);
        }
        script.played();

        let script = Script::new([stream([error_event(code, reason), added("a", "6")])]);
        let mut one = watch(&script);
        for expected in [kind, "end"] {
            assert_eq!(next(&mut one).await, expected);
        }
        script.played();
    }
}

#[tokio::test(start_paused = true)]
async fn short_connections_are_started_with_backoff() {
    let script = Script::new((0..12).map(|_| stream([])).chain([stream([added("a", "6")]), stream([added("b", "7")])]));
    let mut watch = watch(&script);
    assert_eq!(next(&mut watch).await, "ADDED a");
    assert_eq!(next(&mut watch).await, "ADDED b");
    let apart = apart(&script.played());
    for (found, least) in apart.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0]) {
        assert!(*found >= least && *found <= least * 1.3, "{apart:?}");
    }
    // An event resets the delay.
    let last = apart[12];
    assert!((1.0..=1.3).contains(&last), "{apart:?}");
}

#[tokio::test(start_paused = true)]
async fn long_connection_is_replaced_without_delay() {
    let (sender, body) = fed();
    let script = Script::new([streamed(200, media_type::JSON, body), stream([added("a", "6")])]);
    let mut watch = watch(&script);
    assert!(timeout(Duration::from_secs(600), watch.next()).await.is_err());
    drop(sender);
    let ended = Instant::now();
    assert_eq!(next(&mut watch).await, "ADDED a");
    assert!(ended.elapsed() < Duration::from_millis(10));
    script.played();
}

#[tokio::test(start_paused = true)]
async fn retry_watch_resumes_if_an_event_only_trickles() {
    let (sender, body) = fed();
    let script = Script::new([streamed(200, media_type::JSON, body), stream([added("b", "7")])]);
    sender.send(Ok((added("a", "6") + r#"{"type": "ADDED", "object": {"metadata": {"name": ""#).into())).unwrap();
    tokio::spawn(async move {
        while sender.send(Ok("b".into())).is_ok() {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    });
    let mut watch = watch(&script);
    assert_eq!(next(&mut watch).await, "ADDED a");
    let event = timeout(Duration::from_secs(3600), next(&mut watch)).await;
    assert_eq!(event.expect("the event has no deadline"), "ADDED b");
    assert_eq!(versions(&script.played()), ["5", "6"]);
}

#[tokio::test(start_paused = true)]
async fn retry_watch_replaces_a_connection_that_does_not_end() {
    let open = || {
        let (sender, body) = fed();
        std::mem::forget(sender);
        streamed(200, media_type::JSON, body)
    };
    let script = Script::new([open(), stream([added("a", "6")])]);
    let options = WatchOptions::after("5").timeout(Duration::from_secs(60));
    let mut watch = RetryWatch::new(script.maps(), options).unwrap();
    let started = Instant::now();
    let event = timeout(Duration::from_secs(7200), next(&mut watch)).await;
    assert_eq!(event.expect("the watch has no deadline"), "ADDED a");
    assert_eq!(started.elapsed().as_secs(), 90, "the server has 30 s to end the watch itself");

    let script = Script::new([open(), stream([added("a", "6")])]);
    let mut watch = self::watch(&script);
    let event = timeout(Duration::from_secs(7200), next(&mut watch)).await;
    assert_eq!(event.expect("a watch without a timeout has no deadline"), "ADDED a");
}

#[tokio::test(start_paused = true)]
async fn retry_watch_waits_for_the_delay_of_the_server() {
    let mut asked = status(429, "TooManyRequests");
    asked["details"] = json!({"retryAfterSeconds": 20});
    let script = Script::new([
        stream([json!({"type": "ERROR", "object": asked}).to_string()]),
        // The client itself honors the header of a response; the longest delay is capped.
        with(response(504, "text/plain", ""), "retry-after", &u64::MAX.to_string()),
        stream([added("a", "6")]),
    ]);
    let mut watch = watch(&script);
    assert_eq!(next(&mut watch).await, "ADDED a");
    let apart = apart(&script.played());
    assert!((20.0..21.0).contains(&apart[0]) && (60.0..61.0).contains(&apart[1]), "{apart:?}");
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_is_reported_once_and_skipped() {
    let bad = json!({"type": "ADDED", "object": {"metadata": {"name": "x", "resourceVersion": "6"}, "data": 3}});
    let script = Script::new([stream([bad.to_string()]), stream([added("a", "7")])]);
    let mut watch = watch(&script);
    for expected in ["Decode", "ADDED a"] {
        assert_eq!(next(&mut watch).await, expected);
    }
    assert_eq!(versions(&script.played()), ["5", "6"]);
}

#[tokio::test(start_paused = true)]
async fn events_are_returned_in_wire_format() {
    let script = Script::new([stream([added("a", "6"), event("BOOKMARK", "", "7")]), stream([added("b", "8")])]);
    let mut watch = watch(&script);
    for expected in ["a", "b"] {
        let event = watch.next_raw().await.unwrap().unwrap();
        assert_eq!(event.object().unwrap().name(), expected);
    }
    assert_eq!(versions(&script.played()), ["5", "7"]);
}

#[tokio::test(start_paused = true)]
async fn malformed_events_are_reported_and_skipped() {
    let unknown = json!({"type": "RENAMED", "object": {"metadata": {"name": "x", "resourceVersion": "6"}}}).to_string();
    let (sender, body) = fed();
    let script = Script::new([streamed(200, media_type::JSON, body)]);
    let mut watch = watch(&script);
    sender.send(Ok(format!("{unknown}\n{unknown}\n{}{unknown}\n", added("a", "7")).into())).unwrap();
    for expected in ["Decode", "Decode", "ADDED a", "Decode"] {
        assert_eq!(next(&mut watch).await, expected);
    }
    sender.send(Ok(added("b", "8").into())).unwrap();
    assert_eq!(next(&mut watch).await, "ADDED b");
    script.played();
}

#[tokio::test(start_paused = true)]
async fn repeatedly_malformed_streams_end_the_retry_watch() {
    let script = Script::new((0..4).map(|_| response(200, "text/html", "<html>")));
    let mut watch = watch(&script);
    for expected in ["Decode", "end"] {
        assert_eq!(next(&mut watch).await, expected);
    }
    script.played();
}

#[tokio::test(start_paused = true)]
async fn event_without_a_version_ends_the_retry_watch() {
    let unversioned = json!({"type": "ADDED", "object": {"metadata": {"name": "x"}}}).to_string();
    let script = Script::new([stream([added("a", "6"), unversioned, added("b", "7")])]);
    let mut watch = watch(&script);
    for expected in ["ADDED a", "Decode", "end"] {
        assert_eq!(next(&mut watch).await, expected);
    }
    script.played();
}

#[tokio::test(start_paused = true)]
async fn canceled_next_restarts_nothing() {
    let (sender, body) = fed();
    let script = Script::new([Step::Broken, streamed(200, media_type::JSON, body).into()]);
    let mut watch = watch(&script);
    let started = Instant::now();
    // Shorter than any delay.
    for _ in 0..30 {
        assert!(timeout(Duration::from_millis(100), watch.next()).await.is_err());
    }
    assert!(watch.last_error().is_none());
    let half = added("a", "6");
    let (first, second) = half.split_at(20);
    sender.send(Ok(first.to_owned().into())).unwrap();
    assert!(timeout(Duration::from_millis(100), watch.next()).await.is_err());
    sender.send(Ok(second.to_owned().into())).unwrap();
    assert_eq!(next(&mut watch).await, "ADDED a");
    let seen = script.played();
    assert_eq!(seen.len(), 2);
    assert!(seen[1].at - started < Duration::from_millis(1300));
}

#[tokio::test(start_paused = true)]
async fn says_what_keeps_it() {
    let script = Script::new([Step::Broken, Step::Silence]);
    let mut watch = watch(&script);
    assert!(timeout(Duration::from_millis(500), watch.next()).await.is_err());
    assert_eq!(watch.last_error().unwrap().kind(), ErrorKind::Transport);
    assert!(format!("{watch:?}").contains("waiting"));
}

#[tokio::test]
async fn retry_watch_requires_a_version() {
    let script = Script::new(Vec::<http::Response<_>>::new());
    for options in [
        WatchOptions::default(),
        WatchOptions::initial_events(),
        WatchOptions::after(""),
        WatchOptions::after("0"),
        WatchOptions::default().version(VersionMatch::Any),
        WatchOptions::after("5").send_initial_events(false),
    ] {
        let error = RetryWatch::new(script.maps(), options.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{options:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_watch_can_be_spawned() {
    let script = Script::new([stream([added("a", "6")])]);
    let mut watch = watch(&script);
    assert_eq!(tokio::spawn(async move { next(&mut watch).await }).await.unwrap(), "ADDED a");
}

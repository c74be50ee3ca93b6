//! Lists in pages: the requests, and the behavior when a token expires.

use std::{future::poll_fn, pin::Pin};

use futures_core::Stream as _;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Error, ErrorKind,
    client::{Pager, http::Body},
    object::VersionMatch,
    options::ListOptions,
    request::media_type,
    wire::SplitOptions,
};
use serde_json::{Value, json};

use crate::support::scripted::{Script, Seen, Step, json_response, map_json, response, streamed};

fn page(names: &[&str], token: Option<&str>) -> http::Response<Body> {
    let items: Vec<Value> = names.iter().map(|name| map_json(name)).collect();
    let metadata = json!({"resourceVersion": "7", "continue": token, "remainingItemCount": token.map(|_| 9)});
    json_response(200, &json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": items}))
}

fn expired(token: Option<&str>) -> http::Response<Body> {
    let metadata = json!({"continue": token});
    json_response(
        410,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": "The provided continue parameter is too old", "reason": "Expired", "code": 410}),
    )
}

fn names(maps: &[ConfigMap]) -> Vec<&str> {
    maps.iter().map(|map| map.metadata.name.as_deref().unwrap()).collect()
}

fn queries(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|seen| seen.request.uri().query().unwrap_or_default()).collect()
}

#[tokio::test]
async fn pager_returns_all_pages_in_order() {
    let script = Script::new([page(&["a", "b"], Some("t1")), page(&[], Some("t2")), page(&["c"], None)]);
    let mut pager = Pager::new(script.maps(), ListOptions::default().labels("app=web"));
    assert_eq!(names(&pager.next_page().await.unwrap().unwrap().items), ["a", "b"]);
    assert_eq!(names(&pager.next_page().await.unwrap().unwrap().items), [""; 0]);
    assert_eq!(names(&pager.next_page().await.unwrap().unwrap().items), ["c"]);
    assert!(pager.next_page().await.unwrap().is_none());
    assert!(pager.next_page().await.unwrap().is_none());
    assert!(!pager.is_inconsistent());
    assert_eq!(
        queries(&script.played()),
        [
            "labelSelector=app%3Dweb&limit=500",
            "labelSelector=app%3Dweb&limit=500&continue=t1",
            "labelSelector=app%3Dweb&limit=500&continue=t2",
        ]
    );
}

#[tokio::test]
async fn pager_is_a_stream_of_pages() {
    let script = Script::new([page(&["a"], Some("t1")), page(&["b"], None)]);
    let mut pages = script.maps().list().limit(1).pages();
    let mut seen = Vec::new();
    while let Some(page) = poll_fn(|context| Pin::new(&mut pages).poll_next(context)).await {
        seen.extend(page.unwrap().items.into_iter().filter_map(|map| map.metadata.name));
    }
    assert_eq!(seen, ["a", "b"]);
    script.played();
}

#[tokio::test]
async fn pager_fails_if_every_token_expires_at_once() {
    let steps = [page(&["a"], Some("t1")), expired(Some("t2")), expired(Some("t3"))];
    let script = Script::new(steps);
    let mut pager = script.maps().list().pages().allow_inconsistent(true);
    pager.next_page().await.unwrap();
    assert!(pager.next_page().await.unwrap_err().is_gone());
    assert_eq!(script.played().len(), 3);
}

#[tokio::test]
async fn only_the_first_page_requests_a_version() {
    for (version, first) in [
        (VersionMatch::Any, "resourceVersion=0&limit=2"),
        (VersionMatch::NotOlderThan("5".into()), "resourceVersion=5&resourceVersionMatch=NotOlderThan&limit=2"),
        (VersionMatch::Exact("5".into()), "resourceVersion=5&resourceVersionMatch=Exact&limit=2"),
    ] {
        let script = Script::new([page(&["a"], Some("t")), page(&["b"], None)]);
        let list = Pager::new(script.maps(), ListOptions::default().version(version).limit(2)).all().await.unwrap();
        assert_eq!(names(&list.items), ["a", "b"]);
        assert_eq!(queries(&script.played()), [first, "limit=2&continue=t"]);
    }
}

#[tokio::test]
async fn all_returns_one_list_with_the_version_of_the_first_page() {
    let script = Script::new([page(&["a"], Some("t")), page(&["b"], None)]);
    let list = Pager::new(script.maps(), ListOptions::default()).all().await.unwrap();
    assert_eq!((names(&list.items), list.resource_version().as_str()), (vec!["a", "b"], "7"));
    assert_eq!((list.continue_token(), list.remaining_item_count()), (None, None));
    script.played();
}

#[tokio::test]
async fn expired_list_is_read_again_in_one_piece() {
    let script = Script::new([page(&["a"], Some("t")), expired(Some("t2")), page(&["a", "b", "c"], None)]);
    let options = ListOptions::default().limit(1).version(VersionMatch::NotOlderThan("5".into()));
    let list = Pager::new(script.maps(), options).all().await.unwrap();
    assert_eq!(names(&list.items), ["a", "b", "c"]);
    assert_eq!(queries(&script.played())[2], "resourceVersion=5&resourceVersionMatch=NotOlderThan");
}

#[tokio::test]
async fn expired_first_page_is_an_error() {
    let script = Script::new([expired(None)]);
    let options = ListOptions::default().version(VersionMatch::Exact("5".into()));
    assert!(Pager::new(script.maps(), options).all().await.unwrap_err().is_gone());
    script.played();
    // A list that was started elsewhere cannot be read from its beginning here.
    let script = Script::new([expired(Some("t2"))]);
    let options = ListOptions::default().continue_token("t");
    assert!(Pager::new(script.maps(), options).all().await.unwrap_err().is_gone());
    assert_eq!(queries(&script.played()), ["limit=500&continue=t"]);
}

#[tokio::test]
async fn returned_pages_are_not_repeated() {
    let script = Script::new([page(&["a"], Some("t")), expired(Some("t2"))]);
    let mut pager = Pager::new(script.maps(), ListOptions::default());
    pager.next_page().await.unwrap();
    assert!(pager.next_page().await.unwrap_err().is_gone());
    script.played();
}

#[tokio::test]
async fn expired_list_continues_inconsistently_if_allowed() {
    let script =
        Script::new([page(&["a"], Some("t")), expired(Some("t2")), page(&["b"], Some("t3")), page(&["c"], None)]);
    let mut pager = Pager::new(script.maps(), ListOptions::default()).allow_inconsistent(true);
    let mut seen = Vec::new();
    while let Some(page) = pager.next_page().await.unwrap() {
        seen.extend(page.items);
    }
    assert_eq!(names(&seen), ["a", "b", "c"]);
    assert!(pager.is_inconsistent());
    let played = script.played();
    assert_eq!(queries(&played)[1..], ["limit=500&continue=t", "limit=500&continue=t2", "limit=500&continue=t3"]);

    // The server sends no token to continue, or the expired one.
    for token in [None, Some("t")] {
        let script = Script::new([page(&["a"], Some("t")), expired(token)]);
        let mut pager = Pager::new(script.maps(), ListOptions::default()).allow_inconsistent(true);
        pager.next_page().await.unwrap();
        assert!(pager.next_page().await.unwrap_err().is_gone());
        script.played();
    }
}

#[tokio::test]
async fn for_each_stops_at_the_first_error() {
    let pages = || Script::new([page(&["a", "b"], Some("t")), page(&["c"], None)]);
    let script = pages();
    let mut seen = Vec::new();
    let each = |map: ConfigMap| {
        seen.push(map.metadata.name.unwrap());
        async { Ok::<_, Error>(()) }
    };
    Pager::new(script.maps(), ListOptions::default()).for_each(each).await.unwrap();
    assert_eq!(seen, ["a", "b", "c"]);
    script.played();

    let script = Script::new([page(&["a", "b"], Some("t"))]);
    let mut seen = 0;
    let each = |_: ConfigMap| {
        seen += 1;
        async { Err(Error::new(ErrorKind::Canceled, "enough")) }
    };
    let error = Pager::new(script.maps(), ListOptions::default()).for_each(each).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), seen), ("enough", 1));
    script.played();
}

#[tokio::test]
async fn raw_pages_use_the_same_tokens() {
    let script = Script::new([page(&["a"], Some("t")), expired(Some("t2")), page(&["b"], None)]);
    let mut pager = Pager::new(script.maps(), ListOptions::default()).allow_inconsistent(true);
    let mut seen = Vec::new();
    while pager
        .next_page_raw(SplitOptions::default(), |object| seen.push(object.unwrap().name().into_owned()))
        .await
        .unwrap()
        .is_some()
    {}
    assert_eq!(seen, ["a", "b"]);
    assert_eq!(queries(&script.played())[2], "limit=500&continue=t2");
}

#[tokio::test]
async fn repeated_token_is_an_error() {
    let script = Script::new([page(&["a"], Some("t")), page(&["b"], Some("t"))]);
    let error = Pager::new(script.maps(), ListOptions::default()).all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    script.played();
}

#[tokio::test]
async fn failed_page_can_be_requested_again() {
    let script = Script::new([
        page(&["a"], Some("t")),
        response(500, "text/plain", "down"),
        response(200, "text/html", "<html>"),
        streamed(200, media_type::JSON, Body::from_bytes("{\"kind\":")),
        page(&["b"], None),
    ]);
    let mut pager = Pager::new(script.maps(), ListOptions::default());
    pager.next_page().await.unwrap();
    for _ in 0..3 {
        pager.next_page().await.unwrap_err();
    }
    assert_eq!(names(&pager.next_page().await.unwrap().unwrap().items), ["b"]);
    script.played();
}

#[tokio::test]
async fn canceled_page_is_requested_again() {
    let script = Script::new([page(&["a"], Some("t")).into(), Step::Silence, page(&["b"], None).into()]);
    let mut pager = Pager::new(script.maps(), ListOptions::default());
    pager.next_page().await.unwrap();
    tokio::select! {
        biased;
        _ = pager.next_page() => panic!("nothing was sent"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(names(&pager.next_page().await.unwrap().unwrap().items), ["b"]);
    script.played();
}

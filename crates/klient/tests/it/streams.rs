//! Streamed lists and watches, compressed or not.

use std::{io::Write as _, time::Duration};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ListMeta};
use klient::{
    Api, ErrorKind, WatchEvent,
    client::http::Body,
    object::DynamicObject,
    request::{Target, media_type},
    resource::ApiResource,
    wire::{SplitOptions, encode, encode_body, encode_list_body, encode_watch_frame},
};
use serde_json::{Value, json};

use crate::support::scripted::{Script, chain, fed, json_response, map, map_json, response, streamed, with};

pub(crate) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn list_json(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": items})
}

fn list_protobuf(names: &[&str]) -> Vec<u8> {
    let items: Vec<Vec<u8>> = names.iter().map(|name| encode(&map(name)).unwrap()).collect();
    let metadata = ListMeta { resource_version: Some("7".to_owned()), ..ListMeta::default() };
    encode_list_body("v1", "ConfigMapList", &metadata, items.iter().map(Vec::as_slice))
}

fn added(name: &str) -> Vec<u8> {
    encode_watch_frame("ADDED", &encode_body(&map(name)).unwrap())
}

fn names(items: &[ConfigMap]) -> Vec<&str> {
    items.iter().filter_map(|item| item.metadata.name.as_deref()).collect()
}

#[tokio::test]
async fn list_is_decoded_in_either_format_compressed_or_not() {
    let json = list_json(&[map_json("a"), map_json("b")]).to_string().into_bytes();
    let protobuf = list_protobuf(&["a", "b"]);
    let compressed =
        |content_type: &str, body: &[u8]| with(response(200, content_type, gzip(body)), "content-encoding", "gzip");
    for response in [
        response(200, media_type::JSON, json.clone()),
        response(200, media_type::PROTOBUF, protobuf.clone()),
        compressed(media_type::JSON, &json),
        compressed(media_type::PROTOBUF, &protobuf),
    ] {
        let script = Script::new([response]);
        let list = script.maps().list().await.unwrap();
        assert_eq!(names(&list.items), ["a", "b"]);
        assert_eq!(list.resource_version().to_string(), "7");
        assert_eq!(script.played()[0].request.headers()["accept-encoding"], "gzip");
    }
}

#[tokio::test]
async fn items_of_a_dynamic_list_have_their_types() {
    // Servers send items of built-in kinds without `apiVersion` and `kind`.
    let items = list_json(&[json!({"metadata": {"name": "a"}})]);
    let script = Script::new([json_response(200, &items), json_response(200, &items), json_response(200, &items)]);
    let resource = ApiResource::of::<ConfigMap>();
    let maps = Api::dynamic(script.client(), resource.clone(), Target::Namespace("default".to_owned()));
    let expected = Some(resource.types());
    assert_eq!(maps.list().await.unwrap().items[0].types, expected);
    let mut stream = maps.list().stream_with(SplitOptions::default()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().types, expected);
    let list = script.client().rest().get().resource(&resource).list::<DynamicObject>().await.unwrap();
    assert_eq!(list.items[0].types, expected);
}

#[tokio::test]
async fn truncated_list_is_an_error_and_not_a_shorter_list() {
    let json = list_json(&[map_json("a"), map_json("b")]).to_string().into_bytes();
    let protobuf = list_protobuf(&["a", "b"]);
    let packed = gzip(&json);
    for response in [
        response(200, media_type::JSON, json[..json.len() - 1].to_vec()),
        response(200, media_type::PROTOBUF, protobuf[..protobuf.len() - 1].to_vec()),
        response(200, media_type::JSON, ""),
        response(200, media_type::PROTOBUF, ""),
        with(response(200, media_type::JSON, packed[..packed.len() - 1].to_vec()), "content-encoding", "gzip"),
        with(response(200, media_type::JSON, json), "content-encoding", "gzip"),
        response(200, "text/html", "<html>"),
    ] {
        let script = Script::new([response]);
        let error = script.maps().list().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Decode | ErrorKind::Transport), "{error:?}");
    }
}

#[tokio::test]
async fn undecodable_item_fails_a_typed_list_with_its_name() {
    let bad = json!({"metadata": {"name": "bad"}, "data": ["not", "a", "map"]});
    let script = Script::new([json_response(200, &list_json(&[map_json("a"), bad, map_json("b")]))]);
    let error = script.maps().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(chain(&error).contains("ConfigMap"), "{}", chain(&error));
}

#[tokio::test]
async fn malformed_item_of_a_raw_list_is_passed_to_the_sink() {
    let bad = json!({"metadata": {"name": 3}});
    let script = Script::new([json_response(200, &list_json(&[map_json("a"), bad, map_json("b")]))]);
    let mut seen = Vec::new();
    let sink = |item: Result<klient::wire::RawObject, _>| seen.push(item.map(|item| item.name().into_owned()).ok());
    let end = script.maps().list().for_each_raw(SplitOptions::default(), sink).await.unwrap();
    assert_eq!(seen, [Some("a".to_owned()), None, Some("b".to_owned())]);
    assert_eq!(end.metadata.resource_version.as_deref(), Some("7"));
}

#[tokio::test]
async fn failure_status_with_a_success_code_is_not_an_empty_list() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"});
    let script = Script::new([json_response(200, &status)]);
    script.maps().list().await.unwrap_err();
}

/// Sends one event after the other, and expects each before the next is sent.
async fn expect_each_event_immediately(content_type: &str, encoding: Option<&str>, events: [Vec<u8>; 3]) {
    let (sender, body) = fed();
    let mut response = streamed(200, content_type, body);
    if let Some(encoding) = encoding {
        response = with(response, "content-encoding", encoding);
    }
    let script = Script::new([response]);
    let mut watch = script.maps().watch().await.unwrap();
    for (event, name) in events.into_iter().zip(["a", "b", "c"]) {
        // The first half must not be taken for the whole event.
        let (first, second) = event.split_at(event.len() / 2);
        sender.send(Ok(first.to_vec().into())).unwrap();
        sender.send(Ok(second.to_vec().into())).unwrap();
        let event = watch.next().await.unwrap().unwrap();
        assert!(matches!(&event, WatchEvent::Added(found) if *found == map(name)), "{event:?}");
    }
    drop(sender);
    assert!(watch.next().await.is_none());
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn watch_returns_each_event_when_its_last_byte_arrives() {
    let json = ["a", "b", "c"].map(|name| json!({"type": "ADDED", "object": map_json(name)}).to_string().into_bytes());
    let protobuf = ["a", "b", "c"].map(added);
    expect_each_event_immediately(media_type::JSON, None, json.clone()).await;
    expect_each_event_immediately(media_type::JSON_WATCH, Some("gzip"), json.map(|event| gzip(&event))).await;
    expect_each_event_immediately(media_type::PROTOBUF_WATCH, None, protobuf.clone()).await;
    expect_each_event_immediately(media_type::PROTOBUF_WATCH, Some("gzip"), protobuf.map(|event| gzip(&event))).await;
}

async fn errors_of_watch(body: Body, content_type: &str) -> Vec<Result<String, ErrorKind>> {
    let script = Script::new([streamed(200, content_type, body)]);
    let mut watch = script.maps().watch().await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        seen.push(event.map(|event| event.type_name().to_owned()).map_err(|error| error.kind()));
    }
    seen
}

#[tokio::test]
async fn watch_truncated_inside_an_event_ends_with_an_error() {
    let json = json!({"type": "ADDED", "object": map_json("a")}).to_string().into_bytes();
    for (whole, content_type) in [(json, media_type::JSON), (added("a"), media_type::PROTOBUF_WATCH)] {
        let mut cut = whole.clone();
        cut.extend_from_slice(&whole[..whole.len() - 1]);
        let seen = errors_of_watch(Body::from_bytes(cut), content_type).await;
        assert_eq!(seen, [Ok("ADDED".to_owned()), Err(ErrorKind::Decode)], "{content_type}");
    }
}

#[tokio::test]
async fn broken_watch_returns_received_events_and_one_error() {
    let (sender, body) = fed();
    sender.send(Ok([added("a"), added("b")].concat().into())).unwrap();
    sender.send(Err("reset".into())).unwrap();
    let seen = errors_of_watch(body, media_type::PROTOBUF_WATCH).await;
    assert_eq!(seen, [Ok("ADDED".to_owned()), Ok("ADDED".to_owned()), Err(ErrorKind::Transport)]);
}

#[tokio::test]
async fn watch_continues_after_an_undecodable_event() {
    let bad = json!({"type": "MODIFIED", "object": {"metadata": {"name": "a"}, "data": 3}});
    let good = json!({"type": "DELETED", "object": map_json("a")});
    let seen = errors_of_watch(Body::from_bytes(format!("{bad}\n{good}\n")), media_type::JSON).await;
    assert_eq!(seen, [Err(ErrorKind::Decode), Ok("DELETED".to_owned())]);
}

#[tokio::test]
async fn error_event_has_the_servers_status() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"});
    let script = Script::new([json_response(200, &json!({"type": "ERROR", "object": status}))]);
    let mut watch = script.maps().watch().await.unwrap();
    let event = watch.next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Error(status) if status.is_expired()));
}

#[tokio::test]
async fn rejected_watch_is_a_typed_error() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"});
    let script = Script::new([json_response(410, &status)]);
    assert!(script.maps().watch().await.unwrap_err().is_gone());
    let script = Script::new([response(200, "text/html", "<html>")]);
    assert_eq!(script.maps().watch().await.unwrap_err().kind(), ErrorKind::Decode);
}

#[tokio::test]
async fn gzip_is_expanded_in_bounded_pieces() {
    // 4 MB in one frame of a few KB.
    let packed = gzip(&vec![b' '; 4 << 20]);
    let script = Script::new([with(response(200, media_type::JSON, packed), "content-encoding", "gzip")]);
    let response = script.client().send(http::Request::get("/").body(Vec::new()).unwrap()).await.unwrap();
    let (mut body, mut total, mut largest) = (response.into_body(), 0, 0);
    while let Some(chunk) = body.chunk().await.unwrap() {
        total += chunk.len();
        largest = largest.max(chunk.len());
    }
    assert_eq!(total, 4 << 20);
    assert!(largest <= 1 << 20, "{largest} bytes at once");
}

const HOUR: Duration = Duration::from_secs(3600);

/// Sends a text, and then one byte every ten seconds.
fn trickle(start: &str) -> Body {
    let (sender, body) = fed();
    sender.send(Ok(start.to_owned().into())).unwrap();
    tokio::spawn(async move {
        while sender.send(Ok("a".into())).is_ok() {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    });
    body
}

#[tokio::test(start_paused = true)]
async fn list_stream_times_out_if_the_server_only_trickles() {
    let start = r#"{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": [{"metadata": {"name": ""#;
    let script = Script::new([streamed(200, media_type::JSON, trickle(start))]);
    let mut objects = script.maps().list().stream().await.unwrap();
    let object = tokio::time::timeout(HOUR, objects.next()).await.expect("the list has no deadline").unwrap();
    assert!(object.unwrap_err().is_timeout());
    assert!(objects.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn slow_list_stream_is_read_to_its_end() {
    let (sender, body) = fed();
    let script = Script::new([streamed(200, media_type::JSON, body)]);
    tokio::spawn(async move {
        let names: Vec<String> = (0..2000).map(|number| format!("map-{number}")).collect();
        let items: Vec<Value> = names.iter().map(|name| map_json(name)).collect();
        for piece in list_json(&items).to_string().as_bytes().chunks(20_000) {
            tokio::time::sleep(Duration::from_secs(60)).await;
            sender.send(Ok(piece.to_vec().into())).unwrap();
        }
    });
    let started = tokio::time::Instant::now();
    let mut objects = script.maps().list().stream().await.unwrap();
    let mut count = 0;
    while let Some(object) = objects.next().await {
        object.unwrap();
        count += 1;
    }
    assert_eq!(count, 2000);
    assert!(started.elapsed() > Duration::from_secs(300), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn watch_times_out_if_an_event_only_trickles() {
    for body in [trickle(r#"{"type": "ADDED", "object": {"metadata": {"name": ""#), {
        let (sender, body) = fed();
        // Half an event, and nothing more.
        sender.send(Ok(r#"{"type": "ADD"#.into())).unwrap();
        std::mem::forget(sender);
        body
    }] {
        let script = Script::new([streamed(200, media_type::JSON, body)]);
        let mut watch = script.maps().watch().await.unwrap();
        let event = tokio::time::timeout(HOUR, watch.next()).await.expect("the event has no deadline").unwrap();
        assert!(event.unwrap_err().is_timeout());
        assert!(watch.next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn idle_watch_does_not_time_out_after_an_event() {
    let (sender, body) = fed();
    let script = Script::new([streamed(200, media_type::JSON, body)]);
    let mut watch = script.maps().watch().await.unwrap();
    let event = json!({"type": "ADDED", "object": map_json("web")}).to_string();
    for _ in 0..3 {
        sender.send(Ok(event.clone().into())).unwrap();
        sender.send(Ok("\n".into())).unwrap();
        watch.next().await.unwrap().unwrap();
        assert!(tokio::time::timeout(HOUR, watch.next()).await.is_err(), "idle watch ended");
    }
}

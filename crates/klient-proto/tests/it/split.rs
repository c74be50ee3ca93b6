//! Lists and watches are split into the same objects at any chunk boundaries, and a truncated body is never treated as
//! complete.

use std::{borrow::Cow, sync::LazyLock};

use k8s_openapi::api::core::v1::Pod;
use klient_core::{Status, WatchEvent};
use klient_proto::{
    DecodeError, Envelope, ListEnd, ListSplitter, ManagedFields, Problem, RawObject, SplitOptions, WatchSplitter,
    encode_list_body, encode_watch_frame,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    corpus::corpus,
    support::{LIST_JSON, LIST_PB, POD_JSON, POD_PB, field, int_field},
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Encoding {
    Json,
    Protobuf,
}

type Item = Result<RawObject, DecodeError>;
type Event = Result<WatchEvent<RawObject>, DecodeError>;

fn options() -> SplitOptions {
    SplitOptions::default()
}

/// Splits a list that arrives in these chunks.
fn split_list<'a>(
    encoding: Encoding,
    options: SplitOptions,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(Vec<Item>, ListEnd), DecodeError> {
    let mut splitter = match encoding {
        Encoding::Json => ListSplitter::json(options),
        Encoding::Protobuf => ListSplitter::protobuf(options),
    };
    let mut items = Vec::new();
    for chunk in chunks {
        splitter.push(chunk, |item| items.push(item))?;
    }
    Ok((items, splitter.finish()?))
}

/// Splits a watch that arrives in these chunks.
fn split_watch<'a>(
    encoding: Encoding,
    options: SplitOptions,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Event>, DecodeError> {
    let mut splitter = match encoding {
        Encoding::Json => WatchSplitter::json(options),
        Encoding::Protobuf => WatchSplitter::protobuf(options),
    };
    let mut events = Vec::new();
    for chunk in chunks {
        splitter.push(chunk, |event| events.push(event))?;
    }
    splitter.finish()?;
    Ok(events)
}

/// Checks that `split` returns the same for the body in one piece, in two at every boundary, and byte by byte.
fn check<T: PartialEq + std::fmt::Debug>(body: &[u8], split: impl Fn(&mut dyn Iterator<Item = &[u8]>) -> T) -> T {
    let whole = split(&mut std::iter::once(body));
    for at in 0..=body.len() {
        let (left, right) = body.split_at(at);
        assert!(split(&mut [left, right].into_iter()) == whole, "split at {at}");
    }
    assert!(split(&mut body.chunks(1)) == whole, "byte by byte");
    whole
}

/// Returns the chunks between these positions, which are in per mille of the body.
fn chunks<'a>(body: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut * body.len() / 1000).collect();
    cuts.push(body.len());
    cuts.sort_unstable();
    let mut start = 0;
    cuts.into_iter().map(|end| &body[std::mem::replace(&mut start, end)..end]).collect()
}

fn pods(items: &[Item]) -> Vec<Pod> {
    items.iter().map(|item| item.as_ref().unwrap().decode().unwrap()).collect()
}

fn names(items: &[Item]) -> Vec<Result<String, Problem>> {
    let name = |object: &RawObject| object.name().into_owned();
    items.iter().map(|item| item.as_ref().map(name).map_err(|error| error.problem().clone())).collect()
}

/// Returns a list in both encodings that is small enough to split at every byte: a whole pod, and one with metadata
/// only.
fn small_list() -> [(Encoding, Vec<u8>); 2] {
    let mut json: Value = serde_json::from_slice(LIST_JSON).unwrap();
    let items = json["items"].as_array_mut().unwrap();
    items.truncate(2);
    items[1].as_object_mut().unwrap().retain(|key, _| key == "metadata");
    let pods: Vec<Pod> = serde_json::from_value(json["items"].clone()).unwrap();
    let messages: Vec<Vec<u8>> = pods.iter().map(|pod| klient_proto::encode(pod).unwrap()).collect();
    let metadata = serde_json::from_value(json["metadata"].clone()).unwrap();
    let body = encode_list_body("v1", "PodList", &metadata, messages.iter().map(Vec::as_slice));
    [(Encoding::Json, json.to_string().into_bytes()), (Encoding::Protobuf, body)]
}

#[test]
fn list_is_equal_at_every_chunk_boundary() {
    let [from_json, from_pb] = small_list().map(|(encoding, body)| {
        let (items, end) = check(&body, |chunks| split_list(encoding, options(), chunks)).unwrap();
        (pods(&items), end)
    });
    assert_eq!(from_json, from_pb);
    assert_eq!(from_json.1.items, 2);
}

#[test]
fn lists_written_by_go_are_equal_in_both_encodings() {
    let split = |encoding, body: &[u8]| {
        let whole = split_list(encoding, options(), [body]).unwrap();
        // Every boundary of a smaller list is tested above; here a prime step covers all residues.
        for at in (0..body.len()).step_by(53) {
            assert!(split_list(encoding, options(), [&body[..at], &body[at..]]).unwrap() == whole, "split at {at}");
        }
        assert!(split_list(encoding, options(), body.chunks(1)).unwrap() == whole, "byte by byte");
        whole
    };
    let (from_json, json_end) = split(Encoding::Json, LIST_JSON);
    let (from_pb, pb_end) = split(Encoding::Protobuf, LIST_PB);
    let (_, mut expected) = klient_proto::decode_list_body::<Pod>(LIST_PB).unwrap();
    for pod in &mut expected {
        pod.metadata.managed_fields = None;
    }
    assert_eq!(pods(&from_json), expected);
    assert_eq!(pods(&from_pb), expected);
    assert_eq!(json_end, pb_end);
    assert_eq!((json_end.api_version.as_str(), json_end.kind.as_str(), json_end.items), ("v1", "PodList", 3));
    assert_eq!(json_end.metadata.resource_version.as_deref(), Some("48200000"));
    assert_eq!(json_end.metadata.remaining_item_count, Some(12));
    assert_eq!(json_end.metadata.continue_.as_deref(), Some("eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"));
}

#[test]
fn managed_fields_are_kept_on_request() {
    let keep = options().managed_fields(ManagedFields::Keep);
    let (_, expected) = klient_proto::decode_list_body::<Pod>(LIST_PB).unwrap();
    for (encoding, body) in [(Encoding::Json, LIST_JSON), (Encoding::Protobuf, LIST_PB)] {
        let (items, _) = split_list(encoding, keep, [body]).unwrap();
        assert_eq!(pods(&items), expected);
        assert!(expected[0].metadata.managed_fields.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn list_is_equal_in_any_chunks(cuts in proptest::collection::vec(0usize..=1000, 0..12)) {
        for (encoding, body) in [(Encoding::Json, LIST_JSON), (Encoding::Protobuf, LIST_PB)] {
            let whole = split_list(encoding, options(), [body]).unwrap();
            prop_assert!(split_list(encoding, options(), chunks(body, &cuts)).unwrap() == whole);
        }
    }

    #[test]
    fn watch_is_equal_in_any_chunks(cuts in proptest::collection::vec(0usize..=1000, 0..12)) {
        for (encoding, body) in [(Encoding::Json, &SOME_EVENTS.0), (Encoding::Protobuf, &SOME_EVENTS.1)] {
            let whole = split_watch(encoding, options(), [body.as_slice()]).unwrap();
            prop_assert!(split_watch(encoding, options(), chunks(body, &cuts)).unwrap() == whole);
        }
    }
}

#[test]
fn truncated_list_is_an_error_at_every_byte() {
    for (encoding, body) in small_list() {
        for len in 0..body.len() {
            assert!(split_list(encoding, options(), [&body[..len]]).is_err(), "{encoding:?} ends at {len}");
        }
    }
    // After the list, Go writes two empty fields of the envelope: `1a 00` and `22 00`. Without them, the list is
    // complete.
    let list_end = LIST_PB.len() - 4;
    let whole = split_list(Encoding::Protobuf, options(), [LIST_PB]).unwrap();
    for len in [list_end, list_end + 2] {
        assert!(split_list(Encoding::Protobuf, options(), [&LIST_PB[..len]]).unwrap() == whole);
    }
    for len in (0..100).chain([list_end - 1, list_end + 1, list_end + 3]) {
        assert!(split_list(Encoding::Protobuf, options(), [&LIST_PB[..len]]).is_err(), "protobuf ends at {len}");
    }
}

#[test]
fn json_lists_of_any_layout_are_split() {
    let list = json!({
        "apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": {"resourceVersion": "5", "continue": "c"},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b]}\"\\"}, "spec": {"items": [{}]}}],
    });
    let pretty = serde_json::to_string_pretty(&list).unwrap();
    let items_first = r#"{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b]}\"\\"},"spec":{"items":[{}]}}],
        "metadata":{"continue":"c","resourceVersion":"5"},"kind":"WidgetList","apiVersion":"example.com/v1"}"#;
    let escaped = list.to_string().replace("\"items\":[{\"m", "\"it\\u0065ms\":[{\"m");
    let extra = list.to_string().replacen('{', r#"{"other":{"items":[1,{"a":"]"}]},"number":-1.5e3,"no":null,"#, 1);
    let spread = list.to_string().replace(',', "\t,\r\n ").replace(':', " :\n ");
    for text in [list.to_string(), pretty, items_first.to_owned(), escaped, extra, spread] {
        let (items, end) = check(text.as_bytes(), |chunks| split_list(Encoding::Json, options(), chunks)).unwrap();
        assert_eq!(names(&items), [Ok("a".to_owned()), Ok("b]}\"\\".to_owned())], "{text}");
        assert_eq!((end.kind.as_str(), end.api_version.as_str(), end.items), ("WidgetList", "example.com/v1", 2));
        assert_eq!(end.metadata.resource_version.as_deref(), Some("5"));
    }
}

#[test]
fn a_list_may_be_empty() {
    let metadata = Default::default();
    let empty_pb = encode_list_body("v1", "PodList", &metadata, std::iter::empty());
    for (encoding, body) in [
        (Encoding::Json, br#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}"#.to_vec()),
        (Encoding::Json, br#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}"#.to_vec()),
        (Encoding::Json, b"{ \"kind\" : \"PodList\",\"apiVersion\":\"v1\", \"items\" : [ \n ] } \n".to_vec()),
        (Encoding::Json, br#"{"kind":"PodList","apiVersion":"v1"}"#.to_vec()),
        (Encoding::Protobuf, empty_pb),
        (
            Encoding::Protobuf,
            [b"k8s\0".to_vec(), field(1, &[field(1, b"v1"), field(2, b"PodList")].concat()), field(2, b"")].concat(),
        ),
    ] {
        let (items, end) = check(&body, |chunks| split_list(encoding, options(), chunks)).unwrap();
        assert!(items.is_empty());
        assert_eq!((end.kind.as_str(), end.items), ("PodList", 0));
    }
}

#[test]
fn list_continues_after_a_malformed_item() {
    let text =
        br#"{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":7}},null,"x",12,{"metadata":{"name":"b"}}]}"#;
    let text = [br#"{"kind":"XList","#, &text[1..]].concat();
    let (items, end) = check(&text, |chunks| split_list(Encoding::Json, options(), chunks)).unwrap();
    let found = names(&items);
    assert_eq!((found.first(), found.last()), (Some(&Ok("a".to_owned())), Some(&Ok("b".to_owned()))));
    assert!(found[1..5].iter().all(|item| matches!(item, Err(Problem::Json(_)))), "{found:?}");
    assert_eq!(end.items, 6);
    let at = items[1].as_ref().unwrap_err().offset();
    assert_eq!(&text[at..at + 2], b"7}", "the error is at the bad byte of the body");

    let named = |name: &[u8]| field(1, &field(1, name));
    let list = [named(b"a"), named(b"\xff"), vec![0x0a, 0x7f], b"\x00".to_vec(), named(b"b")];
    let body = encode_list_body("v1", "PodList", &Default::default(), list.iter().map(Vec::as_slice));
    let (items, end) = check(&body, |chunks| split_list(Encoding::Protobuf, options(), chunks)).unwrap();
    let expected = [
        Ok("a".to_owned()),
        Err(Problem::NotUtf8),
        Err(Problem::Truncated),
        Err(Problem::BadVarint),
        Ok("b".to_owned()),
    ];
    assert_eq!(names(&items), expected);
    assert_eq!(end.items, 5);
    let at = items[1].as_ref().unwrap_err().offset();
    assert_eq!(body[at], 0xff, "the error is at the bad byte of the body");
}

#[test]
fn item_above_the_limit_ends_the_list() {
    let long = "x".repeat(500);
    let text =
        format!(r#"{{"kind":"PodList","items":[{{"metadata":{{"name":"a"}}}},{{"metadata":{{"name":"{long}"}}}}]}}"#);
    let items = [field(1, &field(1, b"a")), field(1, &field(1, long.as_bytes()))];
    let body = encode_list_body("v1", "PodList", &Default::default(), items.iter().map(Vec::as_slice));
    for (encoding, body) in [(Encoding::Json, text.into_bytes()), (Encoding::Protobuf, body)] {
        let error = check(&body, |chunks| split_list(encoding, options().max_object(400), chunks)).unwrap_err();
        assert_eq!(*error.problem(), Problem::TooLarge);
        assert!(split_list(encoding, options().max_object(1000), [body.as_slice()]).is_ok());
    }
}

#[test]
fn ignored_members_may_have_any_size() {
    let text = format!(r#"{{"kind":"PodList","other":"{}","items":[{{"metadata":{{"name":"a"}}}}]}}"#, "x".repeat(500));
    let (items, _) =
        check(text.as_bytes(), |chunks| split_list(Encoding::Json, options().max_object(100), chunks)).unwrap();
    assert_eq!(names(&items), [Ok("a".to_owned())]);
}

#[test]
fn body_that_is_not_a_list_is_an_error() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410});
    let status_pb = klient_proto::meta::encode(
        "v1",
        &k8s_openapi::apimachinery::pkg::apis::meta::v1::Status { code: Some(410), ..Default::default() },
    );
    let type_only = [b"k8s\0".to_vec(), field(1, &[field(1, b"v1"), field(2, b"PodList")].concat())].concat();
    let compressed = [b"k8s\0".to_vec(), field(2, b""), field(3, b"gzip")].concat();
    let as_json = [b"k8s\0".to_vec(), field(2, b"{}"), field(4, b"application/json")].concat();
    let cases: Vec<(Encoding, Vec<u8>)> = vec![
        (Encoding::Json, status.to_string().into_bytes()),
        (Encoding::Json, POD_JSON.to_vec()),
        (Encoding::Json, b"".to_vec()),
        (Encoding::Json, b"{}".to_vec()),
        (Encoding::Json, br#"{"message":"gateway timeout"}"#.to_vec()),
        (Encoding::Json, b"[]".to_vec()),
        (Encoding::Json, b"upstream connect error".to_vec()),
        (Encoding::Json, br#"{"items":{}}"#.to_vec()),
        (Encoding::Json, br#"{"items":"x"}"#.to_vec()),
        (Encoding::Json, br#"{"items":nothing}"#.to_vec()),
        (Encoding::Json, br#"{"items":[],}"#.to_vec()),
        (Encoding::Json, br#"{"items":[{},]}"#.to_vec()),
        (Encoding::Json, br#"{"items":[{} {}]}"#.to_vec()),
        (Encoding::Json, br#"{"items" []}"#.to_vec()),
        (Encoding::Json, br#"{"items":[]}{"items":[]}"#.to_vec()),
        (Encoding::Json, br#"{"items":[],"metadata":{"resourceVersion":5}}"#.to_vec()),
        (Encoding::Protobuf, status_pb),
        (Encoding::Protobuf, POD_PB.to_vec()),
        (Encoding::Protobuf, b"".to_vec()),
        (Encoding::Protobuf, b"k8s\0".to_vec()),
        (Encoding::Protobuf, type_only),
        (Encoding::Protobuf, LIST_JSON.to_vec()),
        (Encoding::Protobuf, compressed),
        (Encoding::Protobuf, as_json),
        (Encoding::Protobuf, [b"k8s\0".to_vec(), int_field(2, 7)].concat()),
        (Encoding::Protobuf, [b"k8s\0".to_vec(), vec![0x13]].concat()),
        (Encoding::Protobuf, [b"k8s\0".to_vec(), field(2, &[0x12, 0x7f])].concat()),
    ];
    for (encoding, body) in cases {
        let outcome =
            check(&body, |chunks| split_list(encoding, options(), chunks).map_err(|error| error.problem().clone()));
        assert!(outcome.is_err(), "{encoding:?} {}", String::from_utf8_lossy(&body));
    }
    let error = split_list(Encoding::Json, options(), [status.to_string().as_bytes()]).unwrap_err();
    assert!(error.to_string().contains("Status, expected a list"), "{error}");
}

#[test]
fn list_splitter_holds_at_most_one_item() {
    // Ten megabytes in small items pass a limit of one kilobyte, which would fail if more than one item were held.
    // Every item is returned before the next chunk is pushed.
    const ITEMS: usize = 20_000;
    let limit = options().max_object(1 << 10);
    let item = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"x":"{}"}}}},"#, "x".repeat(500));
    let mut splitter = ListSplitter::json(limit);
    let mut seen = 0;
    splitter.push(br#"{"kind":"ConfigMapList","items":["#, |_| ()).unwrap();
    for number in 1..=ITEMS {
        splitter.push(item.as_bytes(), |item| seen += usize::from(item.is_ok())).unwrap();
        assert_eq!(seen, number);
    }
    splitter.push(br#"{"metadata":{"name":"z"}}]}"#, |item| seen += usize::from(item.is_ok())).unwrap();
    assert_eq!((splitter.finish().unwrap().items, seen), (ITEMS + 1, ITEMS + 1));

    let item = field(2, &[field(1, &field(1, b"a")), field(2, &[b'x'; 500])].concat());
    let list_len = item.len() * ITEMS;
    let mut splitter = ListSplitter::protobuf(limit);
    splitter.push(&[b"k8s\0".to_vec(), vec![0x12], crate::support::varint(list_len as u64)].concat(), |_| ()).unwrap();
    let mut seen = 0;
    for number in 1..=ITEMS {
        splitter.push(&item, |item| seen += usize::from(item.is_ok())).unwrap();
        assert_eq!(seen, number);
    }
    assert_eq!(splitter.finish().unwrap().items, ITEMS);
}

/// Returns watches over the same objects, as JSON and protobuf: one event of each type for each of so many corpus
/// objects.
fn corpus_watch(kinds: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut text, mut frames) = (Vec::new(), Vec::new());
    let types = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"];
    let corpus = corpus();
    let objects = corpus.values().filter(|entry| entry.json["metadata"]["name"].is_string());
    for (number, entry) in objects.take(kinds).enumerate() {
        let event_type = types[number % types.len()];
        text.extend_from_slice(json!({"type": event_type, "object": entry.json}).to_string().as_bytes());
        text.push(b'\n');
        frames.extend_from_slice(&encode_watch_frame(event_type, &entry.pb));
    }
    (text, frames)
}

static SOME_EVENTS: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| corpus_watch(20));

#[test]
fn watch_is_equal_in_both_encodings() {
    let (text, frames) = corpus_watch(usize::MAX);
    let from_json = split_watch(Encoding::Json, options(), [text.as_slice()]).unwrap();
    let from_pb = split_watch(Encoding::Protobuf, options(), [frames.as_slice()]).unwrap();
    assert_eq!(from_json.len(), from_pb.len());
    assert!(from_json.len() > 80);
    for (left, right) in from_json.into_iter().zip(from_pb) {
        let told = |event: Event| {
            let event = event.unwrap();
            (event.type_name(), event.map(|object| (object.key(), object.uid().map(Cow::into_owned))))
        };
        assert_eq!(told(left), told(right));
    }
}

/// Returns a small watch with every type of event, in both encodings.
fn small_watch() -> [(Encoding, Vec<u8>); 2] {
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns",
        "managedFields": [{"manager": "kubelet"}]}})
    };
    let bookmark = |version: &str, annotations: Value| {
        json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"resourceVersion": version, "annotations": annotations}})
    };
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410,
        "message": "too old resource version: 1 (7)", "metadata": {}});
    let events = [
        ("ADDED", pod("a")),
        ("MODIFIED", pod("a")),
        ("BOOKMARK", bookmark("12", json!({"k8s.io/initial-events-end": "true"}))),
        ("DELETED", pod("b")),
        ("BOOKMARK", bookmark("13", json!({}))),
        ("ERROR", status),
    ];
    let (mut text, mut frames) = (Vec::new(), Vec::new());
    for (event_type, object) in events {
        text.extend_from_slice(json!({"type": event_type, "object": object}).to_string().as_bytes());
        text.push(b'\n');
        let body = if event_type == "ERROR" {
            let status: k8s_openapi::apimachinery::pkg::apis::meta::v1::Status =
                serde_json::from_value(object).unwrap();
            klient_proto::meta::encode("v1", &status)
        } else {
            klient_proto::encode_body(&serde_json::from_value::<Pod>(object).unwrap()).unwrap()
        };
        frames.extend_from_slice(&encode_watch_frame(event_type, &body));
    }
    [(Encoding::Json, text), (Encoding::Protobuf, frames)]
}

#[test]
fn watch_is_equal_at_every_chunk_boundary() {
    for (encoding, body) in small_watch() {
        let events = check(&body, |chunks| split_watch(encoding, options(), chunks)).unwrap();
        let events: Vec<_> = events.into_iter().map(Result::unwrap).collect();
        let types: Vec<_> = events.iter().map(WatchEvent::type_name).collect();
        assert_eq!(types, ["ADDED", "MODIFIED", "BOOKMARK", "DELETED", "BOOKMARK", "ERROR"]);
        assert_eq!(events[0].object().unwrap().key().to_string(), "ns/a");
        assert_eq!(events[0].object().unwrap().decode::<Pod>().unwrap().metadata.managed_fields, None);
        let (WatchEvent::Bookmark(first), WatchEvent::Bookmark(second)) = (&events[2], &events[4]) else { panic!() };
        assert_eq!((first.resource_version.as_str(), first.initial_events_end), ("12", true));
        assert_eq!((second.resource_version.as_str(), second.initial_events_end), ("13", false));
        assert_eq!(first.types, Some(klient_core::TypeMeta::new("v1", "Pod")));
        let WatchEvent::Error(status) = &events[5] else { panic!() };
        assert!(Status::is_expired(status), "{status:?}");
    }
}

#[test]
fn truncated_watch_is_an_error_unless_it_ends_between_events() {
    for (encoding, body) in small_watch() {
        let ends = between_events(encoding, &body);
        assert_eq!(ends.len(), if encoding == Encoding::Json { 13 } else { 7 });
        for len in 0..=body.len() {
            let outcome = split_watch(encoding, options(), [&body[..len]]);
            assert_eq!(outcome.is_ok(), ends.contains(&len), "{encoding:?} at {len}");
        }
    }
}

/// Returns the positions at which a watch may end: before and after each event, and after its line feed.
fn between_events(encoding: Encoding, body: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    match encoding {
        Encoding::Json => {
            for (at, _) in body.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                ends.extend([at, at + 1]);
            }
        }
        Encoding::Protobuf => {
            let mut at = 0;
            while let Some(len) = body.get(at..at + 4) {
                at += 4 + u32::from_be_bytes(len.try_into().unwrap()) as usize;
                ends.push(at);
            }
        }
    }
    ends
}

#[test]
fn watch_continues_after_a_malformed_event() {
    let text = br#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}
        {"type":"RENAMED","object":{"metadata":{"name":"b"}}}
        {"type":"ADDED","object":{"metadata":{"name":7}}}
        {"type":"ADDED","object":[]}
        {"type":"ADDED"}
        {"object":{"metadata":{"name":"c"}}}
        {"type":"ERROR","object":{"code":"x"}}
        {"object":{"metadata":{"name":"z"}},"other":[1],"type":"DELETED"}"#;
    let envelope = |name: &[u8]| Envelope::wrap("v1", "Pod", &field(1, &field(1, name)));
    let frames = [
        encode_watch_frame("ADDED", &envelope(b"a")),
        encode_watch_frame("RENAMED", &envelope(b"b")),
        encode_watch_frame("ADDED", &envelope(b"\xff")),
        encode_watch_frame("ADDED", b"{}"),
        [vec![0, 0, 0, 7], field(1, b"ADDED")].concat(),
        encode_watch_frame("", &envelope(b"c")),
        encode_watch_frame("ERROR", &envelope(b"x")),
        vec![0, 0, 0, 0],
        encode_watch_frame("DELETED", &envelope(b"z")),
    ]
    .concat();
    for (encoding, body, bad) in [(Encoding::Json, text.to_vec(), 6), (Encoding::Protobuf, frames, 7)] {
        let events = check(&body, |chunks| split_watch(encoding, options(), chunks)).unwrap();
        assert_eq!(events.len(), bad + 2);
        let name = |event: &Event| event.as_ref().unwrap().object().unwrap().name().into_owned();
        assert_eq!((name(&events[0]), name(events.last().unwrap())), ("a".to_owned(), "z".to_owned()), "{encoding:?}");
        assert!(matches!(events.last().unwrap(), Ok(WatchEvent::Deleted(_))));
        for (number, event) in events[1..=bad].iter().enumerate() {
            assert!(event.is_err(), "{encoding:?} bad event {number}: {event:?}");
        }
        let error = events[1].as_ref().unwrap_err().to_string();
        assert!(error.contains("watch event type \"RENAMED\""), "{error}");
    }
}

#[test]
fn broken_framing_ends_a_watch() {
    let cases: [(Encoding, Vec<u8>); 5] = [
        (Encoding::Json, b"{\"type\":\"ADDED\",\"object\":{}} garbage".to_vec()),
        (Encoding::Json, b"[]".to_vec()),
        (Encoding::Json, b"}".to_vec()),
        (Encoding::Protobuf, vec![0xff; 8]),
        (Encoding::Protobuf, b"{\"type\":\"ADDED\"}".to_vec()),
    ];
    for (encoding, body) in cases {
        let outcome = check(&body, |chunks| split_watch(encoding, options(), chunks));
        assert!(outcome.is_err(), "{encoding:?} {}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn event_above_the_limit_ends_the_watch() {
    for (encoding, body) in small_watch() {
        let outcome = check(&body, |chunks| split_watch(encoding, options().max_object(60), chunks));
        assert_eq!(*outcome.unwrap_err().problem(), Problem::TooLarge, "{encoding:?}");
    }
}

#[test]
fn partial_objects_are_split_as_metadata() {
    let metadata = klient_proto::decode_body::<Pod>(POD_PB).unwrap().metadata;
    let partial = klient_proto::meta::encode("meta.k8s.io/v1", &klient_proto::meta::PartialObjectMetadata { metadata });
    let message = Envelope::open(&partial).unwrap().raw.to_vec();
    let items = std::iter::once(message.as_slice());
    let body = encode_list_body("meta.k8s.io/v1", "PartialObjectMetadataList", &Default::default(), items);
    let (items, end) = split_list(Encoding::Protobuf, options(), [body.as_slice()]).unwrap();
    assert_eq!(end.kind, "PartialObjectMetadataList");
    let first = items[0].as_ref().unwrap();
    assert_eq!(first.encoding(), klient_proto::raw::Encoding::ProtobufMetadata);
    let partial: klient_core::PartialObjectMeta<Pod> = first.decode().unwrap();
    assert_eq!(partial.metadata.namespace.as_deref(), Some("shop-07"));

    let body = klient_proto::meta::encode(
        "meta.k8s.io/v1",
        &klient_proto::meta::PartialObjectMetadata { metadata: partial.metadata.clone() },
    );
    let events = split_watch(Encoding::Protobuf, options(), [encode_watch_frame("ADDED", &body).as_slice()]).unwrap();
    let object = events[0].as_ref().unwrap().object().unwrap();
    assert_eq!(object.decode::<klient_core::PartialObjectMeta<Pod>>().unwrap(), partial);
}

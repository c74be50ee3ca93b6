//! The parts that the targets share: chunks, all reads of a raw object, and requests.

use bytes::Bytes;
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use klient_core::WatchEvent;
use klient_proto::{ListEnd, ListSplitter, Problem, RawObject, SplitOptions, WatchSplitter};

/// The number of bytes at the start of an input that give the sizes of chunks.
const SIZES: usize = 4;

/// Returns the rest of an input in chunks, whose sizes its first bytes give in turn, and in one piece.
pub fn chunks(data: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let (sizes, body) = data.split_at(SIZES.min(data.len()));
    let mut sizes = sizes.iter().cycle();
    let (mut parts, mut left) = (Vec::new(), body);
    while !left.is_empty() {
        let size = usize::from(*sizes.next().unwrap_or(&0)) + 1;
        let (part, rest) = left.split_at(size.min(left.len()));
        parts.push(part);
        left = rest;
    }
    (parts, body)
}

/// A limit that some inputs reach.
pub fn options(data: &[u8]) -> SplitOptions {
    let small = data.first().is_some_and(|first| first % 4 == 3);
    SplitOptions::default().max_object(if small { 100 } else { 1 << 20 })
}

type Outcome<T, End> = (Vec<Result<T, Problem>>, Result<End, Problem>);

/// Checks that a list is the same in one piece and in chunks, and uses its items.
pub fn check_list(data: &[u8], splitter: impl Fn() -> ListSplitter) {
    let (parts, body) = chunks(data);
    let split = |parts: &[&[u8]]| -> Outcome<RawObject, ListEnd> {
        let mut splitter = splitter();
        let mut items = Vec::new();
        for part in parts {
            let pushed = splitter.push(part, |item| items.push(item.map_err(|error| error.problem().clone())));
            if let Err(error) = pushed {
                return (items, Err(error.problem().clone()));
            }
        }
        (items, splitter.finish().map_err(|error| error.problem().clone()))
    };
    let whole = split(&[body]);
    assert_eq!(split(&parts), whole);
    whole.0.iter().flatten().for_each(use_raw);
}

/// Checks that a watch is the same in one piece and in chunks, and uses its objects.
pub fn check_watch(data: &[u8], splitter: impl Fn() -> WatchSplitter) {
    let (parts, body) = chunks(data);
    let split = |parts: &[&[u8]]| -> Outcome<WatchEvent<RawObject>, ()> {
        let mut splitter = splitter();
        let mut events = Vec::new();
        for part in parts {
            let pushed = splitter.push(part, |event| events.push(event.map_err(|error| error.problem().clone())));
            if let Err(error) = pushed {
                return (events, Err(error.problem().clone()));
            }
        }
        (events, splitter.finish().map_err(|error| error.problem().clone()))
    };
    let whole = split(&[body]);
    assert_eq!(split(&parts), whole);
    whole.0.iter().flatten().filter_map(WatchEvent::object).for_each(use_raw);
}

/// Calls every accessor of a raw object. Only panics matter.
pub fn use_raw(raw: &RawObject) {
    let _ = (raw.key(), raw.identity(), raw.generation(), raw.creation_timestamp(), raw.deletion_timestamp());
    let _ = (raw.labels().count(), raw.annotations().count(), raw.owner_references().count(), raw.finalizers().count());
    let _ = (raw.label("app"), raw.annotation("a"), format!("{raw:?}"));
    for at in PATHS {
        let at = at.parse().expect("a path");
        let _ = (raw.value_at::<Pod>(&at), raw.text_at::<Pod>(&at));
    }
    let _ = (raw.to_value::<Pod>(), raw.decode::<Pod>());
}

const PATHS: [&str; 8] = [
    "metadata.name",
    "metadata.labels.app",
    "metadata.managedFields[0].fieldsV1.a[0]",
    "spec.containers[1].image",
    "spec.containers",
    "spec.volumes[0].configMap.name",
    "spec.containers[0].resources.limits",
    "status.startTime",
];

/// Returns the requests of an input. Anything else is left out.
pub fn requests(data: &[u8]) -> Vec<Request<Bytes>> {
    let mut requests: Vec<Vec<&[u8]>> = vec![Vec::new()];
    for line in data.split(|byte| *byte == b'\n') {
        match requests.last_mut() {
            Some(last) if line != b"---" => last.push(line),
            _ => requests.push(Vec::new()),
        }
    }
    requests.iter().take(MAX_REQUESTS).filter_map(|lines| request(lines)).collect()
}

fn request(lines: &[&[u8]]) -> Option<Request<Bytes>> {
    let (first, rest) = lines.split_first()?;
    let space = first.iter().position(|byte| *byte == b' ')?;
    let mut request = Request::builder().method(&first[..space]).uri(&first[space + 1..]);
    let end = rest.iter().position(|line| line.is_empty()).unwrap_or(rest.len());
    for line in &rest[..end] {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    let body = rest.get(end + 1..).unwrap_or_default().join(&b'\n');
    request.body(body.into()).ok()
}

/// The limit of requests per input: more would be slow and find nothing more.
const MAX_REQUESTS: usize = 8;

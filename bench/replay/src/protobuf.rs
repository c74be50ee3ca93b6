//! Recorded protobuf: splits lists and watches, and inserts placeholders into objects, with the lengths around them adjusted.

use std::ops::Range;

use anyhow::{Context as _, Result, bail, ensure};

use crate::template::{NAME, Template, UID, VERSION};

/// The prefix of every top-level object.
const PREFIX: &[u8] = b"k8s\0";
/// Fields of `runtime.Unknown`, `WatchEvent`, `RawExtension`, lists, objects and their metadata.
const UNKNOWN_RAW: u64 = 2;
const EVENT_TYPE: u64 = 1;
const EVENT_OBJECT: u64 = 2;
const EXTENSION_RAW: u64 = 1;
const LIST_ITEMS: u64 = 2;
const METADATA: u64 = 1;
const METADATA_NAME: u64 = 1;
const METADATA_UID: u64 = 5;
const METADATA_VERSION: u64 = 6;

/// Returns the events of a watch, each with its length prefix.
pub(crate) fn events(mut body: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut events = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        ensure!(rest.len() >= length, "an event does not end");
        events.push(body[..4 + length].to_vec());
        body = &rest[length..];
    }
    Ok(events)
}

/// Returns whether an event has a type.
pub(crate) fn is_of_type(event: &[u8], kind: &str) -> bool {
    event
        .get(4..)
        .is_some_and(|message| find(message, EVENT_TYPE).is_ok_and(|value| &message[value] == kind.as_bytes()))
}

/// Returns the items of a list.
pub(crate) fn items(body: &[u8]) -> Result<Vec<Vec<u8>>> {
    let message = body.strip_prefix(PREFIX).context("not Kubernetes protobuf")?;
    let list = &message[find(message, UNKNOWN_RAW)?];
    let mut items = Vec::new();
    for field in fields(list) {
        let field = field?;
        if field.number == LIST_ITEMS {
            items.push(list[field.value].to_vec());
        }
    }
    Ok(items)
}

/// Returns the object of an event as a top-level object.
pub(crate) fn object(event: &[u8]) -> Result<Vec<u8>> {
    let message = event.get(4..).context("no event")?;
    let extension = &message[find(message, EVENT_OBJECT)?];
    Ok(extension[find(extension, EXTENSION_RAW)?].to_vec())
}

/// Creates a template from an item of a list.
pub(crate) fn item(item: &[u8]) -> Result<Template> {
    Template::object(with_places(item)?)
}

/// Creates a template from a top-level object.
pub(crate) fn standing(object: &[u8]) -> Result<Template> {
    Template::object(in_envelope(object, with_places)?)
}

/// Creates a template from an event.
pub(crate) fn event(event: &[u8]) -> Result<Template> {
    Template::object(in_event(event, with_places)?)
}

pub(crate) fn bookmark(event: &[u8]) -> Result<Template> {
    let version = |_: &[u8]| Ok(VERSION.as_bytes().to_vec());
    let metadata = |metadata: &[u8]| replace(metadata, METADATA_VERSION, version);
    Template::bookmark(in_event(event, |object| replace(object, METADATA, metadata))?)
}

/// Returns the bytes before a field's value of a known length.
pub(crate) fn head(number: u64, length: usize, out: &mut Vec<u8>) {
    varint(number << 3 | 2, out);
    varint(length as u64, out);
}

pub(crate) fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The bytes before the items of a list of pods, or around an object: prefix and type. The raw message follows as the
/// second field, and nothing follows it: the server's other fields are empty.
pub(crate) fn envelope(kind: &str, length: usize) -> Vec<u8> {
    let mut kinds = Vec::new();
    for (number, text) in [(1, "v1"), (2, kind)] {
        head(number, text.len(), &mut kinds);
        kinds.extend_from_slice(text.as_bytes());
    }
    let mut out = PREFIX.to_vec();
    head(1, kinds.len(), &mut out);
    out.extend_from_slice(&kinds);
    head(UNKNOWN_RAW, length, &mut out);
    out
}

/// Returns an error event, whose object is a top-level object.
pub(crate) fn error(object: &[u8], out: &mut Vec<u8>) {
    let (mut extension, mut message) = (Vec::new(), Vec::new());
    head(EXTENSION_RAW, object.len(), &mut extension);
    extension.extend_from_slice(object);
    head(EVENT_TYPE, "ERROR".len(), &mut message);
    message.extend_from_slice(b"ERROR");
    head(EVENT_OBJECT, extension.len(), &mut message);
    message.extend_from_slice(&extension);
    // Errors are short.
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(&message);
}

fn with_places(object: &[u8]) -> Result<Vec<u8>> {
    let value = |text: &'static str| move |_: &[u8]| Ok(text.as_bytes().to_vec());
    replace(object, METADATA, |metadata| {
        let metadata = replace(metadata, METADATA_NAME, value(NAME))?;
        let metadata = replace(&metadata, METADATA_UID, value(UID))?;
        replace(&metadata, METADATA_VERSION, value(VERSION))
    })
}

fn in_event(event: &[u8], change: impl Fn(&[u8]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let message = event.get(4..).context("no event")?;
    let raw = |object: &[u8]| in_envelope(object, &change);
    let message = replace(message, EVENT_OBJECT, |extension| replace(extension, EXTENSION_RAW, raw))?;
    let mut out = u32::try_from(message.len())?.to_be_bytes().to_vec();
    out.extend_from_slice(&message);
    Ok(out)
}

fn in_envelope(object: &[u8], change: impl Fn(&[u8]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let message = object.strip_prefix(PREFIX).context("not Kubernetes protobuf")?;
    Ok([PREFIX, &replace(message, UNKNOWN_RAW, change)?].concat())
}

/// Returns a message in which the first field with a number has another value.
fn replace(message: &[u8], number: u64, change: impl FnOnce(&[u8]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let at = first(message, number)?;
    let value = change(&message[at.value.clone()])?;
    let mut out = message[..at.start].to_vec();
    head(number, value.len(), &mut out);
    out.extend_from_slice(&value);
    out.extend_from_slice(&message[at.value.end..]);
    Ok(out)
}

fn find(message: &[u8], number: u64) -> Result<Range<usize>> {
    Ok(first(message, number)?.value)
}

fn first(message: &[u8], number: u64) -> Result<Field> {
    for field in fields(message) {
        let field = field?;
        if field.number == number {
            return Ok(field);
        }
    }
    bail!("no field {number}")
}

/// A field and its position.
struct Field {
    number: u64,
    start: usize,
    value: Range<usize>,
}

fn fields(message: &[u8]) -> impl Iterator<Item = Result<Field>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < message.len()).then(|| {
            let start = at;
            let next = read_field(message, start);
            at = next.as_ref().map_or(message.len(), |field| field.value.end);
            next
        })
    })
}

fn read_field(message: &[u8], start: usize) -> Result<Field> {
    let (key, at) = read_varint(message, start)?;
    let value = match key & 7 {
        0 => at..read_varint(message, at)?.1,
        1 => at..at + 8,
        5 => at..at + 4,
        2 => {
            let (length, at) = read_varint(message, at)?;
            at..at.checked_add(usize::try_from(length)?).context("a field is too long")?
        }
        other => bail!("wire type {other}"),
    };
    ensure!(value.end <= message.len(), "a field does not end");
    Ok(Field { number: key >> 3, start, value })
}

fn read_varint(message: &[u8], start: usize) -> Result<(u64, usize)> {
    let mut number = 0;
    for (count, byte) in message.iter().skip(start).take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * count);
        if byte & 0x80 == 0 {
            return Ok((number, start + count + 1));
        }
    }
    bail!("a number does not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u64, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        head(number, value.len(), &mut out);
        out.extend_from_slice(value);
        out
    }

    fn pod() -> Vec<u8> {
        let metadata = [field(1, b"web-1"), field(3, b"fleet"), field(5, b"ab"), field(6, b"7")].concat();
        [field(1, &metadata), field(2, &[0; 300])].concat()
    }

    #[test]
    fn takes_a_list_apart() {
        let list = [field(1, b""), field(2, &pod()), field(2, &pod())].concat();
        let body = [envelope("PodList", list.len()), list].concat();
        assert_eq!(items(&body).unwrap(), vec![pod(); 2]);
    }

    #[test]
    fn lengths_around_a_place_are_right() {
        let standing = [envelope("Pod", pod().len()), pod()].concat();
        let message = [field(1, b"ADDED"), field(2, &field(1, &standing))].concat();
        let frame = [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat();
        let mut out = Vec::new();
        event(&frame).unwrap().write(3, 1_000_000_005, &mut out);
        assert_eq!(events(&out).unwrap().len(), 1);
        assert!(is_of_type(&out, "ADDED"));
        let object = object(&out).unwrap();
        let object = &object[PREFIX.len()..];
        let pod = &object[find(object, UNKNOWN_RAW).unwrap()];
        let metadata = &pod[find(pod, METADATA).unwrap()];
        assert_eq!(&metadata[find(metadata, METADATA_NAME).unwrap()], b"web-000003");
        assert_eq!(&metadata[find(metadata, 3).unwrap()], b"fleet");
        assert_eq!(&metadata[find(metadata, METADATA_VERSION).unwrap()], b"1000000005");
        assert_eq!(pod[find(pod, 2).unwrap()].len(), 300);
    }

    #[test]
    fn an_error_is_an_event_with_its_object() {
        let mut out = Vec::new();
        error(b"k8s\0status", &mut out);
        assert_eq!(events(&out).unwrap(), [out.clone()]);
        assert!(is_of_type(&out, "ERROR"));
        assert_eq!(object(&out).unwrap(), b"k8s\0status");
    }

    #[test]
    fn broken_bytes_are_refused() {
        assert!(items(b"k8s\0\x12\x7f").is_err());
        assert!(events(&[0, 0, 0, 9, 1]).is_err());
        assert!(event(&[0, 0]).is_err());
    }
}

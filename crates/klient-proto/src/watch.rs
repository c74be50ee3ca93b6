//! Splits the body of a watch, chunk by chunk, into events.
//!
//! At most one event and the rest of one chunk are in memory. An event with a malformed object is an error of that
//! event, and splitting continues. Broken framing ends the stream.

use std::borrow::Cow;

use klient_core::{Bookmark, Status, TypeMeta, WatchEvent};

use crate::{
    DecodeError, Envelope, Problem, RawObject, SplitOptions,
    chunks::Carry,
    envelope::shorten,
    error::json_reason,
    json::{Members, ValueScanner, skip_whitespace, unquote},
    raw::{RawObjectFactory, encoding_of},
    runtime::{Reader, Result, Writer},
};

/// A splitter of a watch body into events, as its chunks arrive.
///
/// ```
/// use klient_core::WatchEvent;
/// use klient_proto::{SplitOptions, WatchSplitter};
///
/// let body = br#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}
///                {"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
/// let mut splitter = WatchSplitter::json(SplitOptions::default());
/// let mut events = Vec::new();
/// for chunk in body.chunks(7) {
///     splitter.push(chunk, |event| events.push(event))?;
/// }
/// splitter.finish()?;
/// assert!(matches!(&events[0], Ok(WatchEvent::Added(object)) if object.name() == "a"));
/// assert!(matches!(&events[1], Ok(WatchEvent::Bookmark(mark)) if mark.resource_version.as_str() == "9"));
/// # Ok::<(), klient_proto::DecodeError>(())
/// ```
pub struct WatchSplitter {
    format: Format,
    carry: Carry,
    /// The number of bytes of the body that were processed.
    offset: usize,
    options: SplitOptions,
    factory: RawObjectFactory,
}

enum Format {
    /// A stream of JSON objects, and the scan of the current one.
    Json(Option<ValueScanner>),
    /// Frames with a big-endian length, and the length of the current one.
    Protobuf(Option<usize>),
}

impl WatchSplitter {
    /// Creates a splitter of JSON events.
    pub fn json(options: SplitOptions) -> Self {
        Self::new(Format::Json(None), options)
    }

    /// Creates a splitter of length-delimited protobuf events.
    pub fn protobuf(options: SplitOptions) -> Self {
        Self::new(Format::Protobuf(None), options)
    }

    fn new(format: Format, options: SplitOptions) -> Self {
        let factory = RawObjectFactory::new(options.managed_fields);
        Self { format, carry: Carry::default(), offset: 0, options, factory }
    }

    /// Splits a chunk and calls `sink` for each event that it completes.
    ///
    /// # Errors
    ///
    /// Returns an error if the framing is broken, or if an event is larger than the limit. Splitting cannot continue.
    pub fn push(&mut self, chunk: &[u8], mut sink: impl FnMut(Result<WatchEvent<RawObject>>)) -> Result<()> {
        match self.format {
            Format::Json(_) => self.push_json(chunk, &mut sink),
            Format::Protobuf(_) => self.push_protobuf(chunk, &mut sink),
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the body ends inside an event.
    pub fn finish(self) -> Result<()> {
        if self.is_between_events() { Ok(()) } else { Err(DecodeError::new(Problem::Truncated, self.offset)) }
    }

    /// Returns whether all bytes so far belong to complete events.
    pub fn is_between_events(&self) -> bool {
        matches!(self.format, Format::Json(None) | Format::Protobuf(None)) && self.carry.is_empty()
    }

    fn push_json(&mut self, mut input: &[u8], sink: &mut impl FnMut(Result<WatchEvent<RawObject>>)) -> Result<()> {
        let Format::Json(current) = &mut self.format else { return Ok(()) };
        loop {
            let scanner = match current {
                Some(scanner) => scanner,
                None => {
                    let space = skip_whitespace(input, 0);
                    self.offset += space;
                    input = &input[space..];
                    match input.first() {
                        None => return Ok(()),
                        Some(b'{') => {}
                        Some(_) => {
                            let reason = "expected a watch event".to_owned();
                            return Err(DecodeError::new(Problem::Json(reason), self.offset));
                        }
                    }
                    let Some(scanner) = ValueScanner::starting_with(b'{') else { return Ok(()) };
                    current.insert(scanner)
                }
            };
            let end = scanner.feed(input);
            let (part, rest) = input.split_at(end.unwrap_or(input.len()));
            if self.carry.held().len() + part.len() > self.options.max_object {
                return Err(DecodeError::new(Problem::TooLarge, self.offset));
            }
            if end.is_none() || !self.carry.is_empty() {
                self.carry.hold(part);
            }
            if end.is_none() {
                return Ok(());
            }
            input = rest;
            *current = None;
            let text = if self.carry.is_empty() { part } else { self.carry.held() };
            sink(json_event(text, &mut self.factory).map_err(|error| error.shifted(self.offset)));
            self.offset += text.len();
            self.carry.clear();
        }
    }

    fn push_protobuf(&mut self, mut input: &[u8], sink: &mut impl FnMut(Result<WatchEvent<RawObject>>)) -> Result<()> {
        let Self { format: Format::Protobuf(current), carry, factory, offset, options } = self else { return Ok(()) };
        loop {
            let Some(len) = *current else {
                let read = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes) as usize;
                let Some(len) = carry.take(&mut input, 4, read) else { return Ok(()) };
                if len > options.max_object {
                    return Err(DecodeError::new(Problem::TooLarge, *offset));
                }
                *offset += 4;
                *current = Some(len);
                continue;
            };
            let Some(event) = carry.take(&mut input, len, |bytes| protobuf_event(bytes, factory)) else {
                return Ok(());
            };
            sink(event.map_err(|error| error.shifted(*offset)));
            *offset += len;
            *current = None;
        }
    }
}

/// Encodes a watch event as a length-delimited frame, from the body of its object.
pub fn encode_watch_frame(event_type: &str, object_body: &[u8]) -> Vec<u8> {
    let mut w = Writer::new();
    w.message(2, |w| w.bytes_field(1, object_body));
    w.bytes_field(1, event_type.as_bytes());
    let len = u32::try_from(w.len()).unwrap_or(u32::MAX);
    w.bytes(&len.to_be_bytes());
    w.finish()
}

fn json_event(text: &[u8], factory: &mut RawObjectFactory) -> Result<WatchEvent<RawObject>> {
    let (mut event_type, mut object) = (None, None);
    let mut members = Members::of(text);
    while let Some(member) = members.next()? {
        match &*member.key {
            "type" => event_type = unquote(member.value),
            "object" => object = Some((member.value_start, member.value)),
            _ => {}
        }
    }
    let Some((start, object)) = object else {
        return Err(DecodeError::new(Problem::Json("watch event without object".to_owned()), 0));
    };
    let event_type = event_type.unwrap_or_default();
    if event_type == "ERROR" {
        let status: Status = serde_json::from_slice(object).map_err(|error| {
            DecodeError::new(Problem::Json(format!("watch error status: {}", json_reason(&error))), start)
        })?;
        return Ok(WatchEvent::Error(status));
    }
    let made = factory.json(object).map_err(|error| error.shifted(start))?;
    event(&event_type, made, || {
        let text = |key| Members::of(object).find(key).ok().flatten().and_then(unquote).unwrap_or_default();
        TypeMeta::new(text("apiVersion"), text("kind"))
    })
}

fn protobuf_event(frame: &[u8], factory: &mut RawObjectFactory) -> Result<WatchEvent<RawObject>> {
    let (mut event_type, mut object) = ("", None);
    Reader::new(frame).each_remaining_field(|number, wire, r| {
        match number {
            1 => event_type = r.str(wire)?,
            2 => r.each_field(wire, |number, wire, r| {
                if number == 1 {
                    let bytes = r.bytes(wire)?;
                    object = Some((r.offset() - bytes.len(), bytes));
                    return Ok(());
                }
                r.skip(wire)
            })?,
            _ => r.skip(wire)?,
        }
        Ok(())
    })?;
    let Some((start, body)) = object else { return Err(DecodeError::new(Problem::Truncated, frame.len())) };
    let shifted = |error: DecodeError| error.shifted(start);
    let envelope = Envelope::open(body).map_err(shifted)?;
    if event_type == "ERROR" {
        let status: k8s_openapi::apimachinery::pkg::apis::meta::v1::Status =
            crate::decode_body(body).map_err(shifted)?;
        return Ok(WatchEvent::Error(status.into()));
    }
    let made = factory.protobuf(envelope.raw, encoding_of(envelope.kind));
    let made = made.map_err(|error| error.shifted(start + envelope.raw_offset))?;
    event(event_type, made, || TypeMeta::new(envelope.api_version, envelope.kind))
}

fn event(event_type: &str, object: RawObject, types: impl FnOnce() -> TypeMeta) -> Result<WatchEvent<RawObject>> {
    Ok(match event_type {
        "ADDED" => WatchEvent::Added(object),
        "MODIFIED" => WatchEvent::Modified(object),
        "DELETED" => WatchEvent::Deleted(object),
        "BOOKMARK" => WatchEvent::Bookmark(Bookmark {
            resource_version: object.resource_version().map(Cow::into_owned).unwrap_or_default().into(),
            initial_events_end: object.annotation("k8s.io/initial-events-end").as_deref() == Some("true"),
            types: Some(types()).filter(|types| *types != TypeMeta::default()),
        }),
        // Not skipped, because it may be a change.
        other => {
            let found = format!("watch event type {:?}", shorten(other));
            return Err(DecodeError::new(Problem::WrongKind(found), 0));
        }
    })
}

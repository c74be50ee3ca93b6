//! Makes raw objects of protobuf messages: finds the metadata, splices managed fields out.

use super::{Encoding, RawObject, Span};
use crate::{
    DecodeError, ManagedFields, Problem,
    runtime::{Reader, Result, WireType},
};

/// The field of every kind's message that holds its metadata.
pub(super) const METADATA: u32 = 1;
const MANAGED_FIELDS: u32 = 17;
/// A one-byte key, and a length of up to 32 bits.
const PREFIX_ROOM: usize = 6;

pub(super) fn make(
    message: &[u8],
    encoding: Encoding,
    managed_fields: ManagedFields,
    scratch: &mut Vec<u8>,
) -> Result<RawObject> {
    // Room for the key and length of the metadata, which are known when the metadata is spliced.
    scratch.clear();
    scratch.resize(PREFIX_ROOM, 0);
    let metadata = find_metadata(message)?;
    match (&metadata, managed_fields) {
        (Metadata::None, _) => return finish(message, Span::default(), encoding),
        (Metadata::One { start, end, .. }, ManagedFields::Keep) => {
            check_metadata(&message[*start..*end], *start)?;
            return finish(message, span(*start, *end)?, encoding);
        }
        (Metadata::One { start, end, .. }, ManagedFields::Drop) => {
            splice_metadata(&message[*start..*end], *start, scratch)?;
            if scratch.len() - PREFIX_ROOM == end - start {
                return finish(message, span(*start, *end)?, encoding);
            }
        }
        (Metadata::Several, policy) => join_metadata(message, policy, scratch)?,
    }
    let kept = scratch.len() - PREFIX_ROOM;
    let prefix = write_prefix(&mut scratch[..PREFIX_ROOM], kept)?;
    let start = PREFIX_ROOM - prefix;
    match metadata {
        Metadata::One { key_start, end, .. } => {
            scratch.extend_from_slice(&message[..key_start]);
            scratch.extend_from_slice(&message[end..]);
        }
        _ => copy_other_fields(message, scratch)?,
    }
    finish(&scratch[start..], span(prefix, prefix + kept)?, encoding)
}

/// Writes the key and length of the metadata at the end of `room`; says how long they are.
fn write_prefix(room: &mut [u8], len: usize) -> Result<usize> {
    let mut bytes = [0; PREFIX_ROOM];
    bytes[0] = (METADATA << 3 | 2) as u8;
    let mut left = u32::try_from(len).map_err(|_| DecodeError::new(Problem::TooLarge, 0))?;
    let mut used = 1;
    while left >= 0x80 {
        bytes[used] = (left & 0x7f) as u8 | 0x80;
        left >>= 7;
        used += 1;
    }
    bytes[used] = left as u8;
    let start = room.len() - used - 1;
    room[start..].copy_from_slice(&bytes[..=used]);
    Ok(used + 1)
}

fn finish(bytes: &[u8], metadata: Span, encoding: Encoding) -> Result<RawObject> {
    span(0, bytes.len())?;
    Ok(RawObject { bytes: bytes.into(), metadata, encoding })
}

fn span(start: usize, end: usize) -> Result<Span> {
    Span::new(start, end).ok_or_else(|| DecodeError::new(Problem::TooLarge, start))
}

/// Where the metadata of a message is.
enum Metadata {
    None,
    /// `key_start..end` is the whole field, `start..end` its value.
    One {
        key_start: usize,
        start: usize,
        end: usize,
    },
    /// Legal, though nobody writes it: the parts are to be merged.
    Several,
}

/// Walks the outermost fields, all of them, so that broken framing shows at once.
fn find_metadata(message: &[u8]) -> Result<Metadata> {
    let mut metadata = Metadata::None;
    let mut reader = Reader::new(message);
    loop {
        let key_start = reader.offset();
        let Some((number, wire)) = reader.next_field()? else { return Ok(metadata) };
        if number != METADATA {
            reader.skip(wire)?;
            continue;
        }
        let value = reader.bytes(wire).map_err(|error| error.within(METADATA))?;
        let end = reader.offset();
        metadata = match metadata {
            Metadata::None => Metadata::One { key_start, start: end - value.len(), end },
            _ => Metadata::Several,
        };
    }
}

/// Checks what [`super::Identity`] will read, so that a malformed object is an error here and not an empty name there.
fn check_metadata(metadata: &[u8], offset: usize) -> Result<()> {
    walk_metadata(metadata, offset, |_, _| {})
}

/// Copies the metadata without its managed fields.
fn splice_metadata(metadata: &[u8], offset: usize, out: &mut Vec<u8>) -> Result<()> {
    let mut copied = 0;
    walk_metadata(metadata, offset, |start, end| {
        out.extend_from_slice(&metadata[copied..start]);
        copied = end;
    })?;
    out.extend_from_slice(&metadata[copied..]);
    Ok(())
}

/// Walks all fields of the metadata, checks the identifying ones, and reports the extent of each managed field.
fn walk_metadata(metadata: &[u8], offset: usize, mut managed: impl FnMut(usize, usize)) -> Result<()> {
    let mut reader = Reader::new(metadata);
    let mut walk = || loop {
        let start = reader.offset();
        let Some((number, wire)) = reader.next_field()? else { return Ok(()) };
        let outcome = match number {
            // name, namespace, uid, resourceVersion
            1 | 3 | 5 | 6 => reader.str(wire).map(drop),
            _ => reader.skip(wire),
        };
        outcome.map_err(|error| error.within(number).within(METADATA))?;
        if number == MANAGED_FIELDS {
            managed(start, reader.offset());
        }
    };
    walk().map_err(|error: DecodeError| error.shifted(offset))
}

/// Merges several metadata fields: protobuf messages merge by concatenation.
fn join_metadata(message: &[u8], managed_fields: ManagedFields, out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new(message);
    while let Some((number, wire)) = reader.next_field()? {
        if number != METADATA {
            reader.skip(wire)?;
            continue;
        }
        let value = reader.bytes(wire)?;
        let start = reader.offset() - value.len();
        match managed_fields {
            ManagedFields::Drop => splice_metadata(value, start, out)?,
            ManagedFields::Keep => {
                check_metadata(value, start)?;
                out.extend_from_slice(value);
            }
        }
    }
    Ok(())
}

fn copy_other_fields(message: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new(message);
    loop {
        let start = reader.offset();
        let Some((number, wire)) = reader.next_field()? else { return Ok(()) };
        reader.skip(wire)?;
        if number != METADATA {
            out.extend_from_slice(&message[start..reader.offset()]);
        }
    }
}

/// Reads the value of the last length-delimited field with this number; malformed bytes count as absent.
pub(super) fn last_bytes(message: &[u8], number: u32) -> Option<&[u8]> {
    let mut reader = Reader::new(message);
    let mut last = None;
    while let Ok(Some((found, wire))) = reader.next_field() {
        if found == number && wire == WireType::Bytes {
            last = Some(reader.bytes(wire).ok()?);
        } else {
            reader.skip(wire).ok()?;
        }
    }
    last
}

//! Creates raw objects from protobuf messages: finds the metadata, and removes managed fields.

use super::{Encoding, RawObject, Span};
use crate::{
    DecodeError, ManagedFields, Problem,
    runtime::{Reader, Result, WireType},
};

/// The number of the metadata field, in every kind's message.
pub(super) const METADATA: u32 = 1;
const MANAGED_FIELDS: u32 = 17;
/// The fields that [`super::Identity`] reads: name, namespace, uid and resource version.
const IDENTITY: [u32; 4] = [1, 3, 5, 6];
const MAX_IDENTITY: usize = 6;
/// A one-byte key, and a length of up to 32 bits.
const PREFIX_ROOM: usize = 6;

pub(super) fn make(
    message: &[u8],
    encoding: Encoding,
    managed_fields: ManagedFields,
    scratch: &mut Vec<u8>,
) -> Result<RawObject> {
    // Reserves space for the key and length of the metadata, which are known afterwards.
    scratch.clear();
    scratch.resize(PREFIX_ROOM, 0);
    let metadata = find_metadata(message)?;
    let repeats = match &metadata {
        Metadata::None => return finish(message, Span::default(), encoding),
        Metadata::One { start, end, .. } => {
            let repeats = copy_metadata(&message[*start..*end], *start, managed_fields, scratch)?;
            if !repeats && scratch.len() - PREFIX_ROOM == end - start {
                return finish(message, span(*start, *end)?, encoding);
            }
            repeats
        }
        Metadata::Several => {
            join_metadata(message, managed_fields, scratch)?;
            true
        }
    };
    if repeats {
        keep_last_identity(scratch)?;
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

/// Writes the key and length of the metadata at the end of `room`, and returns their length.
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

/// The position of the metadata in a message.
enum Metadata {
    None,
    /// `key_start..end` is the whole field, `start..end` its value.
    One {
        key_start: usize,
        start: usize,
        end: usize,
    },
    /// Valid, but unused in practice: the parts must be merged.
    Several,
}

/// Walks all outermost fields, so that broken framing is detected immediately.
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

/// Copies the metadata, with or without its managed fields. Returns whether an identifying field occurs more than once.
fn copy_metadata(metadata: &[u8], offset: usize, managed_fields: ManagedFields, out: &mut Vec<u8>) -> Result<bool> {
    let mut copied = 0;
    let repeats = walk_metadata(metadata, offset, |start, end| {
        if managed_fields == ManagedFields::Drop {
            out.extend_from_slice(&metadata[copied..start]);
            copied = end;
        }
    })?;
    out.extend_from_slice(&metadata[copied..]);
    Ok(repeats)
}

/// Keeps the last occurrence of each identifying field, which is the valid one, because [`super::Identity`] reads the
/// first.
fn keep_last_identity(scratch: &mut Vec<u8>) -> Result<()> {
    let metadata = scratch.split_off(PREFIX_ROOM);
    let mut last = [0; MAX_IDENTITY + 1];
    each_extent(&metadata, |number, start, _| {
        if IDENTITY.contains(&number) {
            last[number as usize] = start;
        }
    })?;
    each_extent(&metadata, |number, start, end| {
        if !IDENTITY.contains(&number) || last[number as usize] == start {
            scratch.extend_from_slice(&metadata[start..end]);
        }
    })
}

/// Calls `field` with the number, start and end of each field.
fn each_extent(message: &[u8], mut field: impl FnMut(u32, usize, usize)) -> Result<()> {
    let mut reader = Reader::new(message);
    loop {
        let start = reader.offset();
        let Some((number, wire)) = reader.next_field()? else { return Ok(()) };
        reader.skip(wire)?;
        field(number, start, reader.offset());
    }
}

/// Walks all fields of the metadata, checks the identifying ones, and reports the extent of each managed field.
///
/// A malformed object is an error here, and not an empty name in [`super::Identity`]. Returns whether an identifying
/// field occurs more than once.
fn walk_metadata(metadata: &[u8], offset: usize, mut managed: impl FnMut(usize, usize)) -> Result<bool> {
    let mut reader = Reader::new(metadata);
    let (mut seen, mut repeats) = (0u8, false);
    let mut walk = || loop {
        let start = reader.offset();
        let Some((number, wire)) = reader.next_field()? else { return Ok(repeats) };
        let outcome = if IDENTITY.contains(&number) {
            repeats |= seen & 1 << number != 0;
            seen |= 1 << number;
            reader.str(wire).map(drop)
        } else {
            reader.skip(wire)
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
        copy_metadata(value, start, managed_fields, out)?;
    }
    Ok(())
}

fn copy_other_fields(message: &[u8], out: &mut Vec<u8>) -> Result<()> {
    each_extent(message, |number, start, end| {
        if number != METADATA {
            out.extend_from_slice(&message[start..end]);
        }
    })
}

/// Returns the value of the last length-delimited field with this number. Malformed bytes are treated as absent.
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

//! Creates raw objects from JSON text: finds the metadata, and removes managed fields.

use std::borrow::Cow;

use serde_json::Value;

use super::{Encoding, RawObject, Span, json_error};
use crate::{
    DecodeError, ManagedFields, Problem,
    json::{Members, skip_whitespace, unquote},
    runtime::Result,
};

pub(super) fn make(text: &[u8], managed_fields: ManagedFields, scratch: &mut Vec<u8>) -> Result<RawObject> {
    let text = text.trim_ascii();
    let Some(start) = metadata_start(text)? else { return finish(text, Span::default()) };
    let (managed, len) = find_managed(&text[start..]).map_err(|error| error.shifted(start))?;
    match managed {
        Some((from, to)) if managed_fields == ManagedFields::Drop => {
            scratch.clear();
            scratch.extend_from_slice(&text[..start + from]);
            scratch.extend_from_slice(&text[start + to..]);
            finish(scratch, span(start, start + len - (to - from))?)
        }
        _ => finish(text, span(start, start + len)?),
    }
}

/// Returns the position of the value of `metadata`.
///
/// It comes first in practice. Searching for a second one would cost more than everything else.
pub(super) fn metadata_start(text: &[u8]) -> Result<Option<usize>> {
    let mut members = Members::of(text);
    while let Some(key) = members.next_key()? {
        if key.text == "metadata" && text.get(key.value_start) != Some(&b'n') {
            return Ok(Some(key.value_start));
        }
        members.value(&key)?;
    }
    Ok(None)
}

fn finish(text: &[u8], metadata: Span) -> Result<RawObject> {
    span(0, text.len())?;
    Ok(RawObject { bytes: text.into(), metadata, encoding: Encoding::Json })
}

fn span(start: usize, end: usize) -> Result<Span> {
    Span::new(start, end).ok_or_else(|| DecodeError::new(Problem::TooLarge, start))
}

/// Checks the identifying members, and returns the extent of the managed fields with an adjacent comma, and the length
/// of the metadata.
fn find_managed(metadata: &[u8]) -> Result<(Option<(usize, usize)>, usize)> {
    let mut managed = None;
    let mut previous_end = None;
    let mut members = Members::of(metadata);
    while let Some(member) = members.next()? {
        let end = member.value_start + member.value.len();
        match &*member.key {
            "name" | "namespace" | "uid" | "resourceVersion"
                if member.value != b"null" && unquote(member.value).is_none() =>
            {
                let reason = format!("metadata.{} is not a string", member.key);
                return Err(DecodeError::new(Problem::Json(reason), member.value_start));
            }
            "managedFields" if managed.is_none() => {
                let next = skip_whitespace(metadata, end);
                managed = Some(match (previous_end, metadata.get(next)) {
                    (_, Some(b',')) => (member.key_start, skip_whitespace(metadata, next + 1)),
                    (Some(previous), _) => (previous, end),
                    (None, _) => (member.key_start, end),
                });
            }
            _ => {}
        }
        previous_end = Some(end);
    }
    Ok((managed, members.end()))
}

pub(super) fn parse(text: &[u8]) -> Result<Value> {
    serde_json::from_slice(text).map_err(|error| json_error(&error))
}

/// Returns a string without its quotes, or a number or boolean as it is.
pub(super) fn scalar_text(text: &[u8]) -> Option<Cow<'_, str>> {
    match text.first()? {
        b'"' => unquote(text),
        b'{' | b'[' | b'n' => None,
        _ => std::str::from_utf8(text).ok().map(Cow::Borrowed),
    }
}

//! Navigation in JSON text without parsing it: the end of a value, and the members of an object.
//!
//! Values are delimited, not validated: only brackets are counted and strings are skipped. The content is checked when
//! it is decoded. Nothing here is recursive, so nesting uses no stack.

mod blocks;
mod members;
mod scanner;

pub(crate) use members::{Elements, Members};
pub(crate) use scanner::{ValueScanner, skip_whitespace, value_end};

use std::borrow::Cow;

/// Returns the text of a JSON string, given with its quotes; `None` if it is not a well-formed string.
pub(crate) fn unquote(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(quoted).ok().map(Cow::Owned)
}

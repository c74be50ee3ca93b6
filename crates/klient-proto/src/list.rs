//! Splits the body of a list, chunk by chunk, into raw objects.
//!
//! At most one object and the rest of one chunk are in memory, never the whole body.

mod json;
mod protobuf;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;

use crate::{DecodeError, ManagedFields, Problem, RawObject, runtime::Result};

/// The options of splitting a body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SplitOptions {
    /// Whether objects keep `metadata.managedFields`. They are dropped by default, which saves half of the memory.
    pub managed_fields: ManagedFields,
    /// The largest object that is accepted, in bytes.
    pub max_object: usize,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self { managed_fields: ManagedFields::Drop, max_object: 64 << 20 }
    }
}

impl SplitOptions {
    /// Sets whether objects keep `metadata.managedFields`.
    pub fn managed_fields(mut self, managed_fields: ManagedFields) -> Self {
        self.managed_fields = managed_fields;
        self
    }

    /// Sets the largest object that is accepted, in bytes.
    pub fn max_object(mut self, bytes: usize) -> Self {
        self.max_object = bytes;
        self
    }
}

/// A splitter of a list body into objects, as its chunks arrive.
///
/// ```
/// use klient_proto::{ListSplitter, SplitOptions};
///
/// let body = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},
///                 "items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#;
/// let mut splitter = ListSplitter::json(SplitOptions::default());
/// let mut names = Vec::new();
/// for chunk in body.chunks(10) {
///     splitter.push(chunk, |item| names.push(item.map(|object| object.name().into_owned())))?;
/// }
/// let end = splitter.finish()?;
/// assert_eq!(names, [Ok("a".to_owned()), Ok("b".to_owned())]);
/// assert_eq!(end.metadata.resource_version.as_deref(), Some("7"));
/// # Ok::<(), klient_proto::DecodeError>(())
/// ```
pub struct ListSplitter {
    format: Format,
}

enum Format {
    Json(json::JsonList),
    Protobuf(protobuf::ProtobufList),
}

/// The metadata of a list.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ListEnd {
    /// The resource version, continue token and remaining count.
    pub metadata: ListMeta,
    /// The list's `apiVersion`; empty if absent.
    pub api_version: String,
    /// The list's kind, such as `PodList`; empty if absent.
    pub kind: String,
    /// The number of items, malformed ones included.
    pub items: usize,
}

impl ListSplitter {
    /// Creates a splitter of a JSON body.
    pub fn json(options: SplitOptions) -> Self {
        Self { format: Format::Json(json::JsonList::new(options)) }
    }

    /// Creates a splitter of a protobuf body.
    pub fn protobuf(options: SplitOptions) -> Self {
        Self { format: Format::Protobuf(protobuf::ProtobufList::new(options)) }
    }

    /// Splits a chunk and calls `sink` for each item that it completes.
    ///
    /// An item that is delimited but malformed is passed to `sink` as an `Err`, and splitting continues.
    ///
    /// # Errors
    ///
    /// Returns an error if the body itself is malformed, or if an item is larger than the limit. Splitting cannot
    /// continue.
    pub fn push(&mut self, chunk: &[u8], mut sink: impl FnMut(Result<RawObject>)) -> Result<()> {
        match &mut self.format {
            Format::Json(list) => list.push(chunk, &mut sink),
            Format::Protobuf(list) => list.push(chunk, &mut sink),
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is incomplete or is not a list.
    pub fn finish(self) -> Result<ListEnd> {
        match self.format {
            Format::Json(list) => list.finish(),
            Format::Protobuf(list) => list.finish(),
        }
    }
}

/// Rejects a body of another kind, such as a `Status`.
fn check_list_kind(kind: &str, offset: usize) -> Result<()> {
    if kind.is_empty() || kind.ends_with("List") {
        return Ok(());
    }
    let found = format!("{}, expected a list", crate::envelope::shorten(kind));
    Err(DecodeError::new(Problem::WrongKind(found), offset))
}

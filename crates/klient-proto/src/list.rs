//! Splits the body of a list, chunk by chunk, into raw objects.
//!
//! Holds at most one object and what is left of one chunk, whatever the boundaries; never the body.

mod json;
mod protobuf;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;

use crate::{DecodeError, ManagedFields, Problem, RawObject, runtime::Result};

/// How bodies are split.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SplitOptions {
    /// Whether objects keep `metadata.managedFields`. Dropped by default: half the memory, and few readers.
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

/// Splits a list body into objects as its chunks arrive.
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
    form: Form,
}

enum Form {
    Json(json::JsonList),
    Protobuf(protobuf::ProtobufList),
}

/// What a list says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ListEnd {
    /// Resource version, continue token and remaining count.
    pub metadata: ListMeta,
    /// The list's `apiVersion`; empty if it was left out.
    pub api_version: String,
    /// The list's kind, as `PodList`; empty if it was left out.
    pub kind: String,
    /// How many items there were, bad ones included.
    pub items: usize,
}

impl ListSplitter {
    /// Splits a JSON body.
    pub fn json(options: SplitOptions) -> Self {
        Self { form: Form::Json(json::JsonList::new(options)) }
    }

    /// Splits a protobuf body.
    pub fn protobuf(options: SplitOptions) -> Self {
        Self { form: Form::Protobuf(protobuf::ProtobufList::new(options)) }
    }

    /// Takes a chunk and calls `sink` for each item that it completes.
    ///
    /// An item that is delimited but malformed is an `Err` for `sink`, and the rest goes on.
    ///
    /// # Errors
    ///
    /// Returns an error if the body itself is malformed, or an item is larger than the limit: nothing more can be split.
    pub fn push(&mut self, chunk: &[u8], mut sink: impl FnMut(Result<RawObject>)) -> Result<()> {
        match &mut self.form {
            Form::Json(list) => list.push(chunk, &mut sink),
            Form::Protobuf(list) => list.push(chunk, &mut sink),
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is not complete, or is not a list.
    pub fn finish(self) -> Result<ListEnd> {
        match self.form {
            Form::Json(list) => list.finish(),
            Form::Protobuf(list) => list.finish(),
        }
    }
}

/// Rejects a body that is some other kind, such as a `Status`.
fn check_list_kind(kind: &str, offset: usize) -> Result<()> {
    if kind.is_empty() || kind.ends_with("List") {
        return Ok(());
    }
    let found = format!("{} where a list was expected", crate::envelope::shorten(kind));
    Err(DecodeError::new(Problem::WrongKind(found), offset))
}

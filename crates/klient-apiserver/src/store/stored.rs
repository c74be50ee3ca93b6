//! Stored objects, and changes of them.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use bytes::Bytes;
use klient_proto::{Codec, DecodeError, ManagedFields, RawObject};
use serde_json::Value;

use super::{CommitError, Expected, Write};
use crate::{builtin::versions, conversion::Conversion, negotiate::Projection, registry::Resource};

/// A stored object: its JSON, and the revision that wrote it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) revision: u64,
    raw: RawObject,
    /// The object in protobuf, encoded at the first request for it.
    protobuf: OnceLock<Bytes>,
    /// The object in other versions, as webhooks converted it.
    versions: Mutex<Vec<InVersion>>,
    /// Whether a webhook has converted the object to another version than it is stored in.
    is_converted: bool,
}

/// A stored object in another version, and the webhook that converted it.
type InVersion = (String, Weak<Conversion>, Arc<Stored>);

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Created,
    Updated,
    Deleted,
}

/// A committed write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: String,
    pub(crate) kind: ChangeKind,
    /// The object after the write, or the last state of a deleted object with the revision of the delete.
    pub(crate) object: Arc<Stored>,
    pub(crate) previous: Option<Arc<Stored>>,
    /// The change as a JSON watch event, encoded at the first request for it.
    json_event: OnceLock<Bytes>,
}

/// A committed write, and its object as it was stored.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) change: Arc<Change>,
    pub(crate) object: Value,
}

impl Stored {
    /// Encodes an object with its revision.
    pub(super) fn new(object: &mut Value, revision: u64) -> Result<Self, CommitError> {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return Err(CommitError::Invalid("the object has no metadata".to_owned()));
        };
        metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
        Self::from_json(&crate::order::to_vec(object), revision)
    }

    /// Returns an object that is in no table.
    pub(crate) fn computed(object: &Value) -> Option<Self> {
        Self::from_json(&crate::order::to_vec(object), 0).ok()
    }

    /// Returns a stored object in another version.
    pub(crate) fn converted(object: &Value, revision: u64) -> Option<Self> {
        let stored = Self::from_json(&crate::order::to_vec(object), revision).ok()?;
        Some(Self { is_converted: true, ..stored })
    }

    /// Returns the object in the version of a resource, which is that of a converted object.
    pub(crate) fn shown_as(&self, resource: &Resource) -> Value {
        if self.is_converted { self.value() } else { versions::present(resource, self.value()) }
    }

    /// Returns the object as a projection needs it: all but the object itself are about the version that is stored.
    pub(crate) fn shown_for(&self, resource: &Resource, projection: Projection) -> Value {
        if projection == Projection::Object || resource.hooks.stored_as.is_none() {
            self.shown_as(resource)
        } else {
            self.value()
        }
    }

    /// Returns the object's version.
    pub(crate) fn api_version(&self) -> Cow<'_, str> {
        #[derive(serde::Deserialize)]
        struct Head<'a> {
            #[serde(borrow, rename = "apiVersion")]
            api_version: Cow<'a, str>,
        }
        serde_json::from_slice(self.json()).map_or(Cow::Borrowed(""), |head: Head<'_>| head.api_version)
    }

    /// Returns the object in another version, if a webhook converted it before.
    pub(crate) fn known_in(&self, version: &str, by: &Arc<Conversion>) -> Option<Arc<Self>> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = versions.iter().find(|(known, webhook, _)| known == version && is_same(webhook, by));
        known.map(|(_, _, stored)| Arc::clone(stored))
    }

    /// Caches the object in another version, as long as the webhook does not change.
    pub(crate) fn keep_in(&self, version: &str, by: &Arc<Conversion>, stored: &Arc<Self>) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.retain(|(known, webhook, _)| known != version && is_same(webhook, by));
        versions.push((version.to_owned(), Arc::downgrade(by), Arc::clone(stored)));
    }

    /// Returns an object from JSON that contains its revision.
    pub(super) fn from_json(text: &[u8], revision: u64) -> Result<Self, CommitError> {
        let raw =
            RawObject::from_json(text, ManagedFields::Keep).map_err(|error| CommitError::Invalid(error.to_string()))?;
        Ok(Self { revision, raw, protobuf: OnceLock::new(), versions: Mutex::default(), is_converted: false })
    }

    /// Returns the object's JSON.
    pub(crate) fn json(&self) -> &[u8] {
        self.raw.bytes()
    }

    /// Returns the object in wire form, whose metadata can be read without parsing all of it.
    pub(crate) fn raw(&self) -> &RawObject {
        &self.raw
    }

    /// Returns the object in protobuf. Kinds with several versions must not be requested, because only one form is cached.
    pub(crate) fn protobuf(&self, codec: &Codec) -> Result<Bytes, DecodeError> {
        if let Some(known) = self.protobuf.get() {
            return Ok(known.clone());
        }
        let message = Bytes::from(klient_proto::from_value(&self.value(), codec)?);
        Ok(self.protobuf.get_or_init(|| message).clone())
    }

    /// Returns the parsed object, with its field sets as texts. Stored JSON was written by the server, so that it always parses.
    pub(crate) fn value(&self) -> Value {
        crate::managed::text::parse(self.raw.bytes()).unwrap_or_default()
    }
}

fn is_same(webhook: &Weak<Conversion>, other: &Arc<Conversion>) -> bool {
    webhook.upgrade().is_some_and(|webhook| Arc::ptr_eq(&webhook, other))
}

impl Change {
    /// Checks a write and returns its change.
    pub(super) fn make(
        key: &str,
        expected: Expected,
        write: Write,
        previous: Option<&Arc<Stored>>,
        revision: u64,
    ) -> Result<Committed, CommitError> {
        let fits = match expected {
            Expected::Absent => previous.is_none(),
            Expected::Revision(revision) => previous.is_some_and(|stored| stored.revision == revision),
        };
        if !fits {
            return Err(CommitError::Changed(previous.cloned()));
        }
        let (kind, mut object) = match write {
            Write::Put(object) if previous.is_none() => (ChangeKind::Created, object),
            Write::Put(object) => (ChangeKind::Updated, object),
            Write::Delete(object) => (ChangeKind::Deleted, object),
        };
        let stored = Arc::new(Stored::new(&mut object, revision)?);
        let (key, previous) = (key.to_owned(), previous.cloned());
        let change = Self { revision, key, kind, object: stored, previous, json_event: OnceLock::new() };
        Ok(Committed { change: Arc::new(change), object })
    }

    /// Returns the change with its objects in another version.
    pub(crate) fn with_objects(&self, object: Arc<Stored>, previous: Option<Arc<Stored>>) -> Self {
        Self {
            revision: self.revision,
            key: self.key.clone(),
            kind: self.kind,
            object,
            previous,
            json_event: OnceLock::new(),
        }
    }

    /// Returns the change as a JSON watch event, which is encoded once for all watches.
    pub(crate) fn json_event(&self) -> Bytes {
        let make = || {
            let kind = match self.kind {
                ChangeKind::Created => "ADDED",
                ChangeKind::Updated => "MODIFIED",
                ChangeKind::Deleted => "DELETED",
            };
            json_event(kind, self.object.json())
        };
        self.json_event.get_or_init(make).clone()
    }
}

/// Returns a JSON watch event with an object's JSON.
pub(crate) fn json_event(kind: &str, object: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(object.len() + 32);
    event.extend_from_slice(b"{\"type\":\"");
    event.extend_from_slice(kind.as_bytes());
    event.extend_from_slice(b"\",\"object\":");
    event.extend_from_slice(object);
    event.extend_from_slice(b"}\n");
    event.into()
}

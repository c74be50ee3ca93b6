//! Reads metadata in place, in either format.
//!
//! The identifying fields were checked when the raw object was created. Other malformed fields are treated as absent
//! here, and are errors when the object is decoded.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{
    Encoding,
    json::{metadata_start, parse},
    protobuf::{METADATA, last_bytes},
};
use crate::{
    json::{Elements, Members, unquote},
    runtime::{Message as _, Reader, WireType},
};

const NAME: u32 = 1;
const NAMESPACE: u32 = 3;
const UID: u32 = 5;
const RESOURCE_VERSION: u32 = 6;
const GENERATION: u32 = 7;
const CREATION_TIMESTAMP: u32 = 8;
const DELETION_TIMESTAMP: u32 = 9;
const LABELS: u32 = 11;
const ANNOTATIONS: u32 = 12;
const OWNER_REFERENCES: u32 = 13;
const FINALIZERS: u32 = 14;

/// The fields that identify an object and its version. Absent fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity<'a> {
    /// `metadata.name`.
    pub name: Cow<'a, str>,
    /// `metadata.namespace`.
    pub namespace: Cow<'a, str>,
    /// `metadata.uid`.
    pub uid: Cow<'a, str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Cow<'a, str>,
}

impl<'a> Identity<'a> {
    /// Reads the fields from an object's bare protobuf message.
    ///
    /// Malformed fields are empty; [`RawObject`](super::RawObject) checks them.
    pub fn of_protobuf(message: &'a [u8]) -> Self {
        Self::from_protobuf(last_bytes(message, METADATA).unwrap_or_default())
    }

    /// Reads the fields from an object's JSON text.
    ///
    /// Malformed fields are empty; [`RawObject`](super::RawObject) checks them.
    pub fn of_json(text: &'a [u8]) -> Self {
        let start = metadata_start(text).ok().flatten().unwrap_or(text.len());
        Self::from_json(&text[start..])
    }

    pub(super) fn read(metadata: &'a [u8], encoding: Encoding) -> Self {
        match encoding {
            Encoding::Json => Self::from_json(metadata),
            _ => Self::from_protobuf(metadata),
        }
    }

    fn from_protobuf(metadata: &'a [u8]) -> Self {
        let mut identity = Self::default();
        let mut reader = Reader::new(metadata);
        let mut wanted = 4;
        while wanted > 0
            && let Ok(Some((number, wire))) = reader.next_field()
        {
            let slot = match number {
                NAME => &mut identity.name,
                NAMESPACE => &mut identity.namespace,
                UID => &mut identity.uid,
                RESOURCE_VERSION => &mut identity.resource_version,
                _ if reader.skip(wire).is_ok() => continue,
                _ => break,
            };
            let Ok(text) = reader.str(wire) else { break };
            *slot = Cow::Borrowed(text);
            wanted -= 1;
        }
        identity
    }

    fn from_json(metadata: &'a [u8]) -> Self {
        let mut identity = Self::default();
        let mut members = Members::of(metadata);
        let mut wanted = 4;
        while wanted > 0
            && let Ok(Some(member)) = members.next()
        {
            let slot = match &*member.key {
                "name" => &mut identity.name,
                "namespace" => &mut identity.namespace,
                "uid" => &mut identity.uid,
                "resourceVersion" => &mut identity.resource_version,
                _ => continue,
            };
            wanted -= 1;
            if let Some(text) = unquote(member.value) {
                *slot = text;
            }
        }
        identity
    }
}

pub(super) fn generation(metadata: &[u8], encoding: Encoding) -> Option<i64> {
    if encoding == Encoding::Json {
        return std::str::from_utf8(member(metadata, "generation")?).ok()?.parse().ok();
    }
    let mut reader = Reader::new(metadata);
    let mut generation = 0;
    while let Ok(Some((number, wire))) = reader.next_field() {
        match number {
            GENERATION => generation = reader.int(wire).ok()?.cast_signed(),
            _ => reader.skip(wire).ok()?,
        }
    }
    // Go writes zero for kinds without a generation.
    (generation != 0).then_some(generation)
}

pub(super) fn creation_timestamp(metadata: &[u8], encoding: Encoding) -> Option<Timestamp> {
    timestamp(metadata, encoding, CREATION_TIMESTAMP, "creationTimestamp")
}

pub(super) fn deletion_timestamp(metadata: &[u8], encoding: Encoding) -> Option<Timestamp> {
    timestamp(metadata, encoding, DELETION_TIMESTAMP, "deletionTimestamp")
}

fn timestamp(metadata: &[u8], encoding: Encoding, number: u32, name: &str) -> Option<Timestamp> {
    if encoding == Encoding::Json {
        return unquote(member(metadata, name)?)?.parse().ok();
    }
    let bytes = last_bytes(metadata, number).filter(|bytes| !bytes.is_empty())?;
    let mut time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time::new();
    Reader::new(bytes).each_remaining_field(|number, wire, r| time.merge_field(number, wire, r)).ok()?;
    Some(time.0)
}

fn member<'a>(metadata: &'a [u8], name: &str) -> Option<&'a [u8]> {
    Members::of(metadata).find(name).ok()?
}

/// An iterator over labels or annotations.
pub struct MetadataEntries<'a> {
    source: EntrySource<'a>,
}

enum EntrySource<'a> {
    Json(Option<Members<'a>>),
    Protobuf { metadata: Reader<'a>, number: u32 },
}

impl<'a> MetadataEntries<'a> {
    pub(super) fn labels(metadata: &'a [u8], encoding: Encoding) -> Self {
        Self::read(metadata, encoding, LABELS, "labels")
    }

    pub(super) fn annotations(metadata: &'a [u8], encoding: Encoding) -> Self {
        Self::read(metadata, encoding, ANNOTATIONS, "annotations")
    }

    fn read(metadata: &'a [u8], encoding: Encoding, number: u32, name: &str) -> Self {
        let source = match encoding {
            Encoding::Json => EntrySource::Json(member(metadata, name).map(Members::of)),
            _ => EntrySource::Protobuf { metadata: Reader::new(metadata), number },
        };
        Self { source }
    }
}

impl<'a> Iterator for MetadataEntries<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            EntrySource::Json(members) => loop {
                let member = members.as_mut()?.next().ok()??;
                if let Some(value) = unquote(member.value) {
                    return Some((member.key, value));
                }
            },
            EntrySource::Protobuf { metadata, number } => {
                let (mut key, mut value) = ("", "");
                let mut entry = Reader::new(next_bytes(metadata, *number)?);
                entry
                    .each_remaining_field(|number, wire, r| {
                        match number {
                            1 => key = r.str(wire)?,
                            2 => value = r.str(wire)?,
                            _ => r.skip(wire)?,
                        }
                        Ok(())
                    })
                    .ok()?;
                Some((Cow::Borrowed(key), Cow::Borrowed(value)))
            }
        }
    }
}

/// Returns the next length-delimited field with this number.
fn next_bytes<'a>(reader: &mut Reader<'a>, number: u32) -> Option<&'a [u8]> {
    while let Ok(Some((found, wire))) = reader.next_field() {
        if found == number && wire == WireType::Bytes {
            return reader.bytes(wire).ok();
        }
        reader.skip(wire).ok()?;
    }
    None
}

/// A list in the metadata, item by item.
enum Items<'a> {
    Json(Option<Elements<'a>>),
    Protobuf { metadata: Reader<'a>, number: u32 },
}

impl<'a> Items<'a> {
    fn read(metadata: &'a [u8], encoding: Encoding, number: u32, name: &str) -> Self {
        match encoding {
            Encoding::Json => Self::Json(member(metadata, name).map(Elements::of)),
            _ => Self::Protobuf { metadata: Reader::new(metadata), number },
        }
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::Json(elements) => elements.as_mut()?.next().ok()?,
            Self::Protobuf { metadata, number } => next_bytes(metadata, *number),
        }
    }
}

/// An iterator over owner references.
pub struct OwnerReferences<'a> {
    items: Items<'a>,
}

impl<'a> OwnerReferences<'a> {
    pub(super) fn read(metadata: &'a [u8], encoding: Encoding) -> Self {
        Self { items: Items::read(metadata, encoding, OWNER_REFERENCES, "ownerReferences") }
    }
}

impl Iterator for OwnerReferences<'_> {
    type Item = OwnerReference;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let item = self.items.next()?;
            if let Items::Json(_) = self.items {
                if let Some(owner) = parse(item).ok().and_then(|value| serde_json::from_value(value).ok()) {
                    return Some(owner);
                }
            } else {
                let mut owner = OwnerReference::new();
                let mut reader = Reader::new(item);
                if reader.each_remaining_field(|number, wire, r| owner.merge_field(number, wire, r)).is_ok() {
                    return Some(owner);
                }
            }
        }
    }
}

/// An iterator over a list of strings.
pub struct Strings<'a> {
    items: Items<'a>,
}

impl<'a> Strings<'a> {
    pub(super) fn finalizers(metadata: &'a [u8], encoding: Encoding) -> Self {
        Self { items: Items::read(metadata, encoding, FINALIZERS, "finalizers") }
    }
}

impl<'a> Iterator for Strings<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let item = self.items.next()?;
            let text = match self.items {
                Items::Json(_) => unquote(item),
                Items::Protobuf { .. } => std::str::from_utf8(item).ok().map(Cow::Borrowed),
            };
            if text.is_some() {
                return text;
            }
        }
    }
}

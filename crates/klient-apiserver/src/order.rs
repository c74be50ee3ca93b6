//! The order of fields in JSON. Objects of built-in kinds have the order of Go's structs, which starts with `kind`. Custom objects are maps
//! in Go, whose keys are in alphabetical order.
//!
//! The layout of a kind is built when the first object of the kind is written. Afterwards, an object is written in one pass without
//! lookups: the fields of an object and those of its layout are both sorted by name, and are merged.

mod documents;
mod json;
mod structs;

use std::{
    collections::HashMap,
    sync::{OnceLock, PoisonError, RwLock},
};

use klient_proto::{
    Codec,
    descriptor::{Descriptor, Field, Shape, Type},
};
use serde_json::{Value, value::RawValue};

use self::json::{Object, write_list};

/// Returns the JSON of an object, a list or a document of discovery. Its layout follows from its kind.
pub(crate) fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(CAPACITY);
    write_by_kind(&mut out, value);
    out
}

/// Returns the JSON of an object in lines.
pub(crate) fn to_vec_pretty(value: &Value) -> Vec<u8> {
    indent(&to_vec(value))
}

/// Breaks JSON without white space into lines.
fn indent(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    for (at, &byte) in text.iter().enumerate() {
        if is_quoted {
            out.push(byte);
            is_quoted = byte != b'"' || is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                if !matches!(text.get(at + 1), Some(b'}' | b']')) {
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !matches!(out.last(), Some(b'{' | b'[')) {
                    line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => {
                is_quoted = byte == b'"';
                out.push(byte);
            }
        }
    }
    out
}

/// The fields of an object in the order in which they are written.
struct Layout {
    fields: Vec<Place>,
    /// The indices of `fields`, sorted by name.
    by_name: Vec<u16>,
}

/// A field of a layout.
struct Place {
    name: &'static str,
    inner: Inner,
}

/// The layout of a field's value.
enum Inner {
    /// A scalar, or a value whose keys are in alphabetical order.
    Plain,
    /// An object with a layout, or a list of such objects.
    Message(Lazy),
    /// A map to objects with a layout.
    Map(Lazy),
    /// A schema inside of a schema.
    Own,
    /// A set of fields.
    FieldSet,
    /// An object that has a kind of its own.
    ByKind,
    /// A fixed layout.
    Fixed(Box<Layout>),
}

/// The layout of a message, which can contain itself.
struct Lazy {
    descriptor: fn() -> &'static Descriptor,
    layout: OnceLock<&'static Layout>,
}

impl Lazy {
    fn new(descriptor: fn() -> &'static Descriptor) -> Self {
        Self { descriptor, layout: OnceLock::new() }
    }

    fn get(&self) -> &'static Layout {
        self.layout.get_or_init(|| of_descriptor((self.descriptor)()))
    }
}

impl Layout {
    fn new(fields: Vec<Place>) -> Self {
        let mut by_name: Vec<u16> = (0..).take(fields.len()).collect();
        by_name.sort_by_key(|index| fields[usize::from(*index)].name);
        Self { fields, by_name }
    }

    /// Returns the layout of a value, if it is a built-in kind.
    fn of(value: &Value) -> Option<&'static Self> {
        let kind = value.get("kind").and_then(Value::as_str)?;
        let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        roots().get(kind)?.iter().find(|root| root.version == version).map(Root::layout)
    }

    fn place(&self, index: u16) -> &Place {
        &self.fields[usize::from(index)]
    }
}

/// A kind of objects or lists.
struct Root {
    version: &'static str,
    of: RootKind,
    layout: OnceLock<Layout>,
}

enum RootKind {
    Object(&'static Codec),
    List(&'static Codec),
    Document(documents::Fields),
}

impl Root {
    fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| {
            let mut fields: Vec<Place> = KIND.map(Place::plain).into();
            match self.of {
                RootKind::Object(codec) => fields = places((codec.descriptor)()),
                RootKind::List(codec) => {
                    fields.push(Place { name: "metadata", inner: documents::inner(documents::LIST_METADATA) });
                    fields.push(Place { name: "items", inner: Inner::Message(Lazy::new(codec.descriptor)) });
                }
                RootKind::Document(document) => fields.extend(documents::places(document)),
            }
            Layout::new(fields)
        })
    }
}

/// Returns all kinds by name.
fn roots() -> &'static HashMap<String, Vec<Root>> {
    static ROOTS: OnceLock<HashMap<String, Vec<Root>>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots: HashMap<String, Vec<Root>> = HashMap::new();
        let mut add = |kind: String, version, of| {
            roots.entry(kind).or_default().push(Root { version, of, layout: OnceLock::new() });
        };
        for (kind, version, fields) in documents::DOCUMENTS {
            add((*kind).to_owned(), version, RootKind::Document(fields));
        }
        for codec in Codec::all() {
            add(codec.kind.to_owned(), codec.api_version, RootKind::Object(codec));
            add(format!("{}List", codec.kind), codec.api_version, RootKind::List(codec));
        }
        roots
    })
}

impl Place {
    fn plain(name: &'static str) -> Self {
        Self { name, inner: Inner::Plain }
    }
}

/// Returns the layout of a message. Each is built once and never freed: there are as many as types.
fn of_descriptor(descriptor: &'static Descriptor) -> &'static Layout {
    static LAYOUTS: RwLock<Option<HashMap<usize, &'static Layout>>> = RwLock::new(None);
    let address = std::ptr::from_ref(descriptor).addr();
    let known = LAYOUTS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.as_ref().and_then(|known| known.get(&address)) {
        return known;
    }
    drop(known);
    let layout: &'static Layout = Box::leak(Box::new(Layout::new(places(descriptor))));
    let mut known = LAYOUTS.write().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().entry(address).or_insert(layout)
}

/// Returns the fields of a message in the order of Go's struct.
fn places(descriptor: &'static Descriptor) -> Vec<Place> {
    // Objects inside of others, such as the claims of a stateful set, can have a kind, too.
    let has_kind = descriptor.fields.iter().any(|field| field.name == "metadata");
    let mut places: Vec<Place> = if has_kind { KIND.map(Place::plain).into() } else { Vec::new() };
    flatten(descriptor.fields, &mut places);
    if let Ok(found) = structs::STRUCTS.binary_search_by_key(&descriptor.name, |(name, _)| name) {
        let order = structs::STRUCTS[found].1;
        let rank = |place: &Place| match KIND.contains(&place.name) && has_kind {
            true => 0,
            false => order.iter().position(|name| *name == place.name).map_or(usize::MAX, |at| at + 1),
        };
        places.sort_by_key(rank);
    }
    places
}

fn flatten(fields: &'static [Field], places: &mut Vec<Place>) {
    for field in fields {
        let inner = match (field.ty, field.shape) {
            (Type::Embedded(inner), _) => {
                flatten(inner, places);
                continue;
            }
            (Type::Message(descriptor), Shape::Map) => Inner::Map(Lazy::new(descriptor)),
            (Type::Message(descriptor), _) => Inner::Message(Lazy::new(descriptor)),
            (Type::SchemaOrArray | Type::SchemaOrBool | Type::SchemaOrStrings, Shape::One) => Inner::Own,
            (Type::Json, _) if field.name == "fieldsV1" => Inner::FieldSet,
            _ => Inner::Plain,
        };
        places.push(Place { name: field.name, inner });
    }
}

/// Writes a value in the order of a layout.
fn write_in_order(out: &mut Vec<u8>, value: &Value, layout: &Layout) {
    match value {
        Value::Object(fields) => {
            let mut slots = [None; MAX_FIELDS];
            let mut others = Vec::new();
            let mut places = layout.by_name.iter().copied().peekable();
            for (name, value) in fields {
                while places.next_if(|at| layout.place(*at).name < name.as_str()).is_some() {}
                let slot = places.next_if(|at| layout.place(*at).name == name).map(usize::from);
                match slot.and_then(|at| slots.get_mut(at)) {
                    Some(slot) => *slot = Some((name, value)),
                    None => others.push((name, value)),
                }
            }
            let mut object = Object::begin(out);
            for (place, slot) in layout.fields.iter().zip(slots) {
                let Some((name, value)) = slot else { continue };
                write_field(object.key(name), value, &place.inner, layout);
            }
            for (name, value) in others {
                json::write(object.key(name), value);
            }
            object.end();
        }
        Value::Array(items) => write_list(out, items, |out, value| write_in_order(out, value, layout)),
        value => json::write(out, value),
    }
}

/// Writes the value of a field. `own` is the layout that the field belongs to.
fn write_field(out: &mut Vec<u8>, value: &Value, inner: &Inner, own: &Layout) {
    match (inner, value) {
        (Inner::Plain, _) => json::write(out, value),
        (Inner::FieldSet, _) => write_field_set(out, value),
        (Inner::Map(lazy), Value::Object(entries)) => {
            let mut object = Object::begin(out);
            for (name, value) in entries {
                write_in_order(object.key(name), value, lazy.get());
            }
            object.end();
        }
        (Inner::Map(_), _) => json::write(out, value),
        (Inner::Message(lazy), _) => write_in_order(out, value, lazy.get()),
        (Inner::Own, _) => write_in_order(out, value, own),
        (Inner::ByKind, _) => write_by_kind(out, value),
        (Inner::Fixed(layout), _) => write_in_order(out, value, layout),
    }
}

/// Writes an object that has a kind of its own, or a list of such objects.
fn write_by_kind(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Array(items) => write_list(out, items, write_by_kind),
        value => match Layout::of(value) {
            Some(layout) => write_in_order(out, value, layout),
            None => write_alphabetical(out, value, Part::Object),
        },
    }
}

/// A part of a custom object that leads to its field sets.
#[derive(Clone, Copy)]
enum Part {
    Object,
    Metadata,
    Entry,
}

/// Writes a custom object, or a part of it.
fn write_alphabetical(out: &mut Vec<u8>, value: &Value, part: Part) {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Array(entries) if matches!(part, Part::Entry) => {
            return write_list(out, entries, |out, entry| write_alphabetical(out, entry, Part::Entry));
        }
        value => return json::write(out, value),
    };
    let mut object = Object::begin(out);
    for (name, value) in fields {
        let out = object.key(name);
        match (part, name.as_str()) {
            (Part::Object, "metadata") => write_alphabetical(out, value, Part::Metadata),
            (Part::Object, "items") if is_list(fields) => write_by_kind(out, value),
            (Part::Metadata, "managedFields") => write_alphabetical(out, value, Part::Entry),
            (Part::Entry, "fieldsV1") => write_field_set(out, value),
            _ => json::write(out, value),
        }
    }
    object.end();
}

fn is_list(fields: &serde_json::Map<String, Value>) -> bool {
    fields.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
}

/// Writes a field set, which is its own JSON.
fn write_field_set(out: &mut Vec<u8>, value: &Value) {
    match value.as_str().filter(|text| serde_json::from_str::<&RawValue>(text).is_ok()) {
        Some(text) => out.extend_from_slice(text.trim().as_bytes()),
        None => json::write(out, value),
    }
}

/// The first fields of objects.
const KIND: [&str; 2] = ["kind", "apiVersion"];
/// The most fields that a layout can have. Further fields are written last.
const MAX_FIELDS: usize = 64;
/// The size of a small object.
const CAPACITY: usize = 1024;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(value: &Value) -> String {
        String::from_utf8(to_vec(value)).unwrap()
    }

    #[test]
    fn built_in_objects_have_the_order_of_go_structs() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"creationTimestamp": null, "uid": "u",
            "name": "a", "managedFields": [{"time": "t", "manager": "m", "fieldsV1": "{\"f:b\":{}}"}]},
            "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "name": "http", "odd": 1}]}});
        assert_eq!(
            text(&service),
            r#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","uid":"u","creationTimestamp":null,"managedFields":[{"manager":"m","time":"t","fieldsV1":{"f:b":{}}}]},"spec":{"ports":[{"name":"http","port":80,"odd":1}],"clusterIP":"10.0.0.1","type":"ClusterIP"}}"#
        );
    }

    #[test]
    fn lines_are_those_of_a_pretty_printer() {
        let value = json!({"a": [1, {"b": "x\\\"{[,:"}, [], {}], "c": {"d": null, "e": "\\"}, "f": "\u{e9}"});
        assert_eq!(indent(value.to_string().as_bytes()), serde_json::to_vec_pretty(&value).unwrap());
    }

    #[test]
    fn custom_objects_have_alphabetical_order() {
        let widget = json!({"kind": "Widget", "apiVersion": "x.invalid/v1", "metadata": {"uid": "u", "name": "a"}});
        assert_eq!(text(&widget), r#"{"apiVersion":"x.invalid/v1","kind":"Widget","metadata":{"name":"a","uid":"u"}}"#);
    }

    #[test]
    fn schemas_contain_schemas_in_order() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec":
            {"versions": [{"schema": {"openAPIV3Schema": {"type": "object", "description": "d", "properties":
                {"b": {"items": {"type": "string", "description": "d"}, "type": "array"}, "a": {"type": "string"}}}}}]}});
        assert_eq!(
            text(&definition),
            r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","spec":{"versions":[{"schema":{"openAPIV3Schema":{"description":"d","type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"description":"d","type":"string"}}}}}}]}}"#
        );
    }

    #[test]
    fn lists_and_tables_have_the_order_of_go_structs() {
        let list = json!({"apiVersion": "v1", "items": [{"metadata": {"uid": "u", "name": "a"}}], "kind": "PodList",
            "metadata": {"continue": "c", "resourceVersion": "1"}});
        assert_eq!(
            text(&list),
            r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"c"},"items":[{"metadata":{"name":"a","uid":"u"}}]}"#
        );
        let table = json!({"apiVersion": "meta.k8s.io/v1", "columnDefinitions": [{"type": "string", "name": "Name"}],
            "kind": "Table", "metadata": {}, "rows": [{"object": {"apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadata", "metadata": {"uid": "u", "name": "a"}}, "cells": ["a"]}]});
        assert_eq!(
            text(&table),
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[{"name":"Name","type":"string"}],"rows":[{"cells":["a"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","uid":"u"}}}]}"#
        );
    }

    #[test]
    fn every_layout_fits_and_knows_all_fields() {
        let (mut seen, mut unknown) = (std::collections::HashSet::new(), Vec::new());
        let mut left: Vec<&'static Descriptor> = Codec::all().iter().map(|codec| (codec.descriptor)()).collect();
        while let Some(descriptor) = left.pop() {
            if !seen.insert(std::ptr::from_ref(descriptor).addr()) {
                continue;
            }
            let layout = of_descriptor(descriptor);
            assert!(layout.fields.len() <= MAX_FIELDS, "{} has {}", descriptor.name, layout.fields.len());
            let ordered = structs::STRUCTS.iter().find(|(name, _)| *name == descriptor.name);
            for place in &layout.fields {
                let is_known = |names: &[&str]| names.contains(&place.name) || KIND.contains(&place.name);
                if ordered.is_some_and(|(_, names)| !is_known(names)) {
                    unknown.push(format!("{}.{}", descriptor.name, place.name));
                }
                if let Inner::Message(lazy) | Inner::Map(lazy) = &place.inner {
                    left.push((lazy.descriptor)());
                }
            }
        }
        assert!(seen.len() > 500, "{}", seen.len());
        // The real server that responses are compared with does not have the fields of newer versions.
        let newer = [
            "ClusterTrustBundleProjection.user",
            "JobSpec.scheduling",
            "NodeSpec.podPreemptionPolicy",
            "PodSpec.evictionResponders",
            "PodStatus.volumeHealth",
            "PoolStatus.partitionSummary",
            "PoolStatus.shareableSummary",
            "TokenRequestSpec.attestations",
            "VolumeMount.bindMountOptions",
        ];
        unknown.retain(|field| !newer.contains(&field.as_str()));
        assert_eq!(unknown, Vec::<String>::new());
        assert!(structs::STRUCTS.is_sorted_by_key(|(name, _)| name));
    }
}

//! Joins the three inputs into one description per message, and the minors into one description for all.
//!
//! Invariant: every field of every k8s-openapi struct that has a protobuf message is in the model, or
//! generation fails and names the field.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use super::{
    go_types::{self, GoStruct},
    modules::{GoModules, MINORS},
    rust_types::{RustField, RustShape, RustType},
};

pub(crate) type Minors = BTreeSet<u32>;

/// A message of one minor.
pub(crate) struct Message {
    pub(crate) items: Vec<Item>,
    pub(crate) has_default: bool,
    /// A newtype around an empty JSON object.
    pub(crate) empty_json: bool,
    pub(crate) resource: Option<(String, String)>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    Field(Field),
    /// A message whose fields belong to the outer struct.
    Embedded {
        number: u32,
        items: Vec<Item>,
    },
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) ident: String,
    pub(crate) json_name: String,
    pub(crate) shape: Shape,
    pub(crate) kind: FieldKind,
    /// `true` if Go writes a zero value in protobuf but omits it in JSON.
    pub(crate) zero_is_absent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    One,
    List,
    Map,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FieldKind {
    /// A variant of the runtime's `Type` without data.
    Plain(&'static str),
    /// A message, by path below k8s-openapi's root.
    Message(String),
}

/// An item with the minors that have it.
pub(crate) struct Versioned<T> {
    pub(crate) minors: Minors,
    pub(crate) item: T,
}

pub(crate) enum MergedItem {
    Field(Field),
    Embedded { number: u32, items: Vec<Versioned<MergedItem>> },
}

pub(crate) struct MergedMessage {
    pub(crate) minors: Minors,
    pub(crate) items: Vec<Versioned<MergedItem>>,
    pub(crate) has_default: bool,
    pub(crate) empty_json: bool,
    pub(crate) resource: Option<(String, String)>,
}

const META: &str = "apimachinery::pkg::apis::meta::v1";
const EXTENSIONS: &str = "apiextensions_apiserver::pkg::apis::apiextensions::v1";

/// Returns the `Type` of a message that has a hand-written codec in the runtime.
fn special(path: &str) -> Option<&'static str> {
    let kinds = [
        (META, "Time", "Time"),
        (META, "MicroTime", "MicroTime"),
        (META, "FieldsV1", "Json"),
        ("apimachinery::pkg::runtime", "RawExtension", "Json"),
        ("apimachinery::pkg::api::resource", "Quantity", "Quantity"),
        ("apimachinery::pkg::util::intstr", "IntOrString", "IntOrString"),
        (EXTENSIONS, "JSON", "Json"),
        (EXTENSIONS, "JSONSchemaPropsOrArray", "SchemaOrArray"),
        (EXTENSIONS, "JSONSchemaPropsOrBool", "SchemaOrBool"),
        (EXTENSIONS, "JSONSchemaPropsOrStringArray", "SchemaOrStrings"),
    ];
    let (module, name) = path.rsplit_once("::")?;
    kinds.iter().find(|kind| (kind.0, kind.1) == (module, name)).map(|kind| kind.2)
}

/// Builds the model of one minor, by path below k8s-openapi's root.
pub(crate) fn of_minor(
    pool: &DescriptorPool,
    modules: &GoModules,
    types: &BTreeMap<String, RustType>,
) -> Result<BTreeMap<String, Message>> {
    let go = go_structs(modules)?;
    let builder = Builder { go, types };
    let mut messages = BTreeMap::new();
    for message in pool.all_messages() {
        let path = rust_path(message.full_name());
        let Some(ty) = types.get(&path) else { continue };
        // `Patch` names the body of a PATCH request; it is never a protobuf message on the wire.
        if special(&path).is_some() || path == "apimachinery::pkg::apis::meta::v1::Patch" {
            continue;
        }
        let built = builder.message(&path, &message, ty).with_context(|| path.clone())?;
        messages.insert(path, built);
    }
    for (path, ty) in types {
        if ty.resource.is_some() && !messages.contains_key(path) {
            bail!("{path} is a resource without a protobuf message");
        }
    }
    Ok(messages)
}

/// Returns the Go structs of all packages, including aliases, by path below k8s-openapi's root.
fn go_structs(modules: &GoModules) -> Result<BTreeMap<String, GoStruct>> {
    let path = |import: &str, name: &str| rust_path(&format!("{import}.{name}").replace('/', ".").replace('-', "_"));
    let mut structs = BTreeMap::new();
    let mut aliases = Vec::new();
    for (import, folder) in modules.proto_packages()? {
        let package = go_types::read_package(&folder)?;
        structs.extend(package.structs.into_iter().map(|(name, fields)| (path(&import, &name), fields)));
        aliases.extend(package.aliases.into_iter().map(|(name, (from, to))| (path(&import, &name), path(&from, &to))));
    }
    for (alias, target) in aliases {
        if let Some(fields) = structs.get(&target).cloned() {
            structs.insert(alias, fields);
        }
    }
    Ok(structs)
}

/// Converts `k8s.io.api.core.v1.Pod` to `api::core::v1::Pod`.
fn rust_path(full_name: &str) -> String {
    full_name.trim_start_matches("k8s.io.").replace('.', "::")
}

struct Builder<'a> {
    go: BTreeMap<String, GoStruct>,
    types: &'a BTreeMap<String, RustType>,
}

impl Builder<'_> {
    fn message(&self, path: &str, message: &MessageDescriptor, ty: &RustType) -> Result<Message> {
        let (has_default, resource) = (ty.has_default, ty.resource.clone());
        match &ty.shape {
            RustShape::Struct(fields) => {
                let mut left: BTreeMap<String, RustField> = fields.clone();
                let items = self.items(path, message, &mut left)?;
                // `apiVersion` and `kind` are in the envelope, not in the message.
                left.retain(|name, _| name != "apiVersion" && name != "kind");
                if let Some(name) = left.keys().next() {
                    bail!("field {name} has no protobuf field");
                }
                Ok(Message { items, has_default, empty_json: false, resource })
            }
            RustShape::Json if message.fields().len() == 0 => {
                Ok(Message { items: Vec::new(), has_default, empty_json: true, resource })
            }
            _ => bail!("expected a struct or a type with a hand-written codec"),
        }
    }

    /// Returns the items of a message, and removes their fields from `left`, the fields of the struct without an item.
    fn items(
        &self,
        path: &str,
        message: &MessageDescriptor,
        left: &mut BTreeMap<String, RustField>,
    ) -> Result<Vec<Item>> {
        let go = self.go.get(path).with_context(|| format!("no Go struct for {path}"))?;
        let mut items = Vec::new();
        for field in message.fields() {
            let Some(go_field) = go.get(&field.number()) else {
                bail!("field {} is not in the Go struct", field.name());
            };
            if go_field.embedded {
                let Kind::Message(inner) = field.kind() else { bail!("{} is not a message", field.name()) };
                let inner_items = self.items(&rust_path(inner.full_name()), &inner, left)?;
                items.push(Item::Embedded { number: field.number(), items: inner_items });
                continue;
            }
            let Some(rust) = left.remove(&go_field.json_name) else { continue };
            let (shape, kind) = self.kind(&field, &rust).with_context(|| field.name().to_owned())?;
            let scalar = ["String", "bool", "i32", "i64", "f64", "ByteString"]
                .iter()
                .any(|scalar| rust.ty == format!("Option<{scalar}>"));
            items.push(Item::Field(Field {
                number: field.number(),
                ident: rust.ident,
                json_name: go_field.json_name.clone(),
                shape,
                kind,
                zero_is_absent: scalar && !go_field.pointer && go_field.omit_empty,
            }));
        }
        items.sort();
        Ok(items)
    }

    fn kind(&self, field: &FieldDescriptor, rust: &RustField) -> Result<(Shape, FieldKind)> {
        if field.is_map() {
            let Kind::Message(entry) = field.kind() else { bail!("map field has no entry message") };
            let key = entry.map_entry_key_field();
            if !matches!(key.kind(), Kind::String) {
                bail!("map keys are not strings");
            }
            let value = if rust.ty.ends_with("Vec<String>>>") || rust.ty.ends_with("Vec<String>>") {
                FieldKind::Plain("StringList")
            } else {
                self.scalar_or_message(&entry.map_entry_value_field())?
            };
            return Ok((Shape::Map, value));
        }
        if field.is_list() {
            return Ok((Shape::List, self.scalar_or_message(field)?));
        }
        if rust.ty == "Vec<String>" {
            return Ok((Shape::One, FieldKind::Plain("StringList")));
        }
        Ok((Shape::One, self.scalar_or_message(field)?))
    }

    fn scalar_or_message(&self, field: &FieldDescriptor) -> Result<FieldKind> {
        Ok(FieldKind::Plain(match field.kind() {
            Kind::String => "String",
            Kind::Bytes => "Bytes",
            Kind::Bool => "Bool",
            Kind::Int32 | Kind::Int64 => "Int",
            Kind::Double => "Double",
            Kind::Message(message) => {
                let path = rust_path(message.full_name());
                if let Some(kind) = special(&path) {
                    kind
                } else if self.types.contains_key(&path) {
                    return Ok(FieldKind::Message(path));
                } else {
                    bail!("{path} is not in k8s-openapi");
                }
            }
            other => bail!("unexpected protobuf type {other:?}"),
        }))
    }
}

/// Merges the minors. An item that is the same in several minors appears once.
pub(crate) fn merge(minors: &[(u32, BTreeMap<String, Message>)]) -> Result<BTreeMap<String, MergedMessage>> {
    let paths: BTreeSet<&String> = minors.iter().flat_map(|(_, messages)| messages.keys()).collect();
    let mut merged = BTreeMap::new();
    for path in paths {
        let having: Vec<(u32, &Message)> =
            minors.iter().filter_map(|(minor, messages)| Some((*minor, messages.get(path)?))).collect();
        let (_, newest) = having[having.len() - 1];
        if having
            .iter()
            .any(|(_, message)| (message.empty_json, &message.resource) != (newest.empty_json, &newest.resource))
        {
            bail!("{path} is another kind of message in another minor");
        }
        let items: Vec<(u32, &[Item])> = having.iter().map(|(minor, message)| (*minor, &*message.items)).collect();
        let message = MergedMessage {
            minors: having.iter().map(|(minor, _)| *minor).collect(),
            items: merge_items(&items),
            has_default: having.iter().all(|(_, message)| message.has_default),
            empty_json: newest.empty_json,
            resource: newest.resource.clone(),
        };
        merged.insert(path.clone(), message);
    }
    Ok(merged)
}

fn merge_items(minors: &[(u32, &[Item])]) -> Vec<Versioned<MergedItem>> {
    let mut fields: BTreeMap<&Field, Minors> = BTreeMap::new();
    let mut embedded: BTreeMap<u32, Vec<(u32, &[Item])>> = BTreeMap::new();
    for (minor, items) in minors {
        for item in *items {
            match item {
                Item::Field(field) => drop(fields.entry(field).or_default().insert(*minor)),
                Item::Embedded { number, items } => embedded.entry(*number).or_default().push((*minor, items)),
            }
        }
    }
    let mut merged: Vec<Versioned<MergedItem>> = fields
        .into_iter()
        .map(|(field, minors)| Versioned { minors, item: MergedItem::Field(field.clone()) })
        .collect();
    merged.extend(embedded.into_iter().map(|(number, parts)| Versioned {
        minors: parts.iter().map(|(minor, _)| *minor).collect(),
        item: MergedItem::Embedded { number, items: merge_items(&parts) },
    }));
    merged.sort_by_key(|versioned| match &versioned.item {
        MergedItem::Field(field) => field.number,
        MergedItem::Embedded { number, .. } => *number,
    });
    merged
}

/// Returns the `#[cfg(...)]` for `minors` inside an item that is in the minors `of`. It is empty if both are equal.
pub(crate) fn cfg(minors: &Minors, of: &Minors) -> Result<String> {
    if minors == of {
        return Ok(String::new());
    }
    let (Some(first), Some(last)) = (minors.first(), minors.last()) else { bail!("item is in no minor") };
    let range: Minors = of.range(first..=last).copied().collect();
    if &range != minors {
        bail!("item is in the minors {minors:?}, which are not consecutive");
    }
    let from = (Some(first) != of.first()).then(|| format!("k8s_from = \"{first}\""));
    let until = (Some(last) != of.last()).then(|| format!("k8s_until = \"{last}\""));
    Ok(match (from, until) {
        (Some(from), Some(until)) => format!("#[cfg(all({from}, {until}))] "),
        (Some(one), None) | (None, Some(one)) => format!("#[cfg({one})] "),
        (None, None) => String::new(),
    })
}

/// Returns all minors.
pub(crate) fn all_minors() -> Minors {
    MINORS.into_iter().collect()
}

//! Normalisation of built-in objects, as Go decodes and encodes them.
//!
//! Unknown fields are removed and reported. Zero values that Go omits are omitted, structs that Go
//! always writes are written, and quantities and times have their canonical form.

use klient_core::Quantity;
use klient_proto::descriptor::{Descriptor, Field, Shape as Occurrence, Type};
use serde_json::{Map, Value};

use super::{Reading, type_word, unstructured};
use crate::registry::{self, Shape, TypeDef};

/// Normalises an object. Returns a warning for each removed field.
///
/// # Errors
///
/// Returns Go's error message if a value has the wrong type.
pub(crate) fn normalise(
    object: &mut Value,
    descriptor: &'static Descriptor,
    types: &'static TypeDef,
    reading: Reading,
) -> Result<Vec<String>, String> {
    let mut walk = Walk { reading, unknown: Vec::new() };
    let Value::Object(fields) = object else { return Err("it is not an object".to_owned()) };
    let location = Location { parent: None, step: Step::Root, owner: descriptor.name };
    walk.message(fields, descriptor.fields, Some(types), &location)?;
    Ok(walk.unknown.into_iter().map(|path| format!("unknown field \"{path}\"")).collect())
}

struct Walk {
    reading: Reading,
    unknown: Vec<String>,
}

/// The path of a value, and the Go struct that has it as a field.
///
/// Only messages need the text of a path. It is a chain on the stack until then, because most objects have no problems.
struct Location<'a> {
    parent: Option<&'a Location<'a>>,
    step: Step<'a>,
    owner: &'a str,
}

/// The last part of a path.
enum Step<'a> {
    Root,
    Name(&'a str),
    Index(usize),
    /// The same path as the parent's.
    Same,
}

impl<'a> Location<'a> {
    fn below(&'a self, step: Step<'a>) -> Self {
        Self { parent: Some(self), step, owner: self.owner }
    }

    /// Returns whether an empty list here is not the same as an absent one.
    fn keeps_empty(&self, name: &str) -> bool {
        // A pod cannot have claims in its resources, not even none. Those of its containers can.
        let is_of_pod = || self.parent.is_some_and(|parent| parent.owner == "PodSpec");
        KEPT_LISTS.contains(&(self.owner, name))
            || ((self.owner, name) == ("ResourceRequirements", "claims") && is_of_pod())
    }

    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    fn path(&self) -> String {
        let mut path = self.parent.map(Location::path).unwrap_or_default();
        match self.step {
            Step::Root | Step::Same => {}
            Step::Name(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
        path
    }
}

impl Walk {
    fn message(
        &mut self,
        object: &mut Map<String, Value>,
        fields: &'static [Field],
        types: Option<&'static TypeDef>,
        location: &Location<'_>,
    ) -> Result<(), String> {
        let mut unknown = Vec::new();
        let mut absent = Vec::new();
        for (name, value) in object.iter_mut() {
            let is_type = matches!(name.as_str(), "apiVersion" | "kind");
            // Objects inside of others, such as the claims of a stateful set, can have a kind, too.
            let is_kept = || types.is_some_and(|types| types.kind.is_some() && types.fields.contains_key(name));
            if is_type && find(fields, name).is_none() && (location.is_root() || is_kept()) {
                continue;
            }
            let Some(field) = find(fields, name) else {
                self.unknown.push(location.below(Step::Name(name)).path());
                unknown.push(name.clone());
                continue;
            };
            let known = types.and_then(|types| types.fields.get(name));
            if value.is_null() {
                absent.push(name.clone());
                continue;
            }
            self.field(value, field, known, &location.below(Step::Name(name)))?;
            let is_kept = value.is_array() && location.keeps_empty(name);
            let is_unnamed = name == "name" && value == "" && REFERENCES.contains(&location.owner);
            if is_unnamed || (!is_kept && is_left_out(value, field, known)) {
                absent.push(name.clone());
            }
        }
        for name in unknown.into_iter().chain(absent) {
            object.remove(&name);
        }
        let unlisted = ALWAYS.iter().filter(|(owner, _)| *owner == location.owner).map(|(_, name)| *name);
        for name in types.iter().flat_map(|types| &types.required).map(String::as_str).chain(unlisted) {
            let zero = match types.and_then(|types| types.fields.get(name)).map(|field| &field.shape) {
                Some(Shape::Text) => Value::from(""),
                Some(Shape::Int32 | Shape::Int64) => Value::from(0),
                Some(Shape::Bool) => Value::Bool(false),
                Some(Shape::Ref(name)) if name.ends_with(".Quantity") => Value::from("0"),
                _ => continue,
            };
            let is_nil = NILS.contains(&(location.owner, name));
            if !object.contains_key(name) && !is_nil && find(fields, name).is_some_and(|field| !field.zero_is_absent) {
                object.insert(name.to_owned(), zero);
            }
        }
        for (owner, name) in NULL_LISTS {
            if owner == location.owner && !object.contains_key(name) {
                object.insert(name.to_owned(), Value::Null);
            }
        }
        for (name, known) in types.iter().flat_map(|types| types.always()) {
            if !object.contains_key(name)
                && let Some(field) = find(fields, name)
            {
                let mut value = Value::Object(Map::new());
                self.field(&mut value, field, Some(known), &location.below(Step::Name(name)))?;
                object.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        value: &mut Value,
        field: &'static Field,
        known: Option<&'static registry::Field>,
        location: &Location<'_>,
    ) -> Result<(), String> {
        let shape = known.map(|known| &known.shape);
        match field.shape {
            Occurrence::One => self.value(value, field.ty, shape, location),
            Occurrence::List => {
                let items = match value {
                    Value::Array(items) => items,
                    other => return Err(self.mismatch(other, &format!("[]{}", go_name(field.ty)), location)),
                };
                let inner = match shape {
                    Some(Shape::List(inner)) => Some(&**inner),
                    _ => None,
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, field.ty, inner, &location.below(Step::Index(index)))?;
                }
                Ok(())
            }
            Occurrence::Map => {
                let entries = match value {
                    Value::Object(entries) => entries,
                    other => return Err(self.mismatch(other, "map[string]string", location)),
                };
                let inner = match shape {
                    Some(Shape::Map(inner)) => Some(&**inner),
                    _ => None,
                };
                for (key, entry) in entries.iter_mut() {
                    // Go's errors name the key for fields below it, and not for the entry itself.
                    let step = match field.ty {
                        Type::Message(_) => Step::Name(key),
                        _ => Step::Same,
                    };
                    self.value(entry, field.ty, inner, &location.below(step))?;
                }
                Ok(())
            }
        }
    }

    fn value(
        &mut self,
        value: &mut Value,
        ty: Type,
        shape: Option<&'static Shape>,
        location: &Location<'_>,
    ) -> Result<(), String> {
        // Null in a list or a map is the zero value.
        if value.is_null() {
            *value = zero(ty);
            if value.is_null() {
                return Ok(());
            }
        }
        match ty {
            Type::String if !value.is_string() => Err(self.mismatch(value, "string", location)),
            Type::Bool if !value.is_boolean() => Err(self.mismatch(value, "bool", location)),
            Type::Int => self.integer(value, shape, location),
            Type::Double if !value.is_number() => Err(self.mismatch(value, "float64", location)),
            Type::Bytes => self.bytes(value, location),
            Type::IntOrString if !value.is_string() => match self.reading {
                Reading::Json => self.integer(value, Some(&Shape::Int32), location),
                Reading::Unstructured => unstructured::int_or_string(value),
            },
            Type::Quantity => quantity(value),
            Type::Time | Type::MicroTime => match value {
                Value::String(_) => time(value, matches!(ty, Type::MicroTime)),
                _ if self.reading == Reading::Unstructured => Err(unstructured::unreadable(value, "string")),
                _ => Err(self.mismatch(value, "string", location)),
            },
            Type::SchemaOrBool if !value.is_boolean() && !value.is_object() => {
                Err("boolean or JSON schema expected".to_owned())
            }
            // Go reads anything else as neither of both.
            Type::SchemaOrArray if !value.is_array() && !value.is_object() => {
                *value = Value::Null;
                Ok(())
            }
            Type::Message(descriptor) => {
                let descriptor = descriptor();
                let types = match shape {
                    Some(Shape::Ref(name)) => registry::types().get(name),
                    _ => None,
                };
                match value {
                    Value::Object(object) => {
                        let at = Location { owner: descriptor.name, ..location.below(Step::Same) };
                        self.message(object, descriptor.fields, types, &at)
                    }
                    other => Err(self.mismatch(other, &format!("v1.{}", descriptor.name), location)),
                }
            }
            _ => Ok(()),
        }
    }

    fn integer(&self, value: &mut Value, shape: Option<&Shape>, location: &Location<'_>) -> Result<(), String> {
        let (name, fits): (_, fn(i64) -> bool) = match shape {
            Some(Shape::Int32) => ("int32", |number| i32::try_from(number).is_ok()),
            _ => ("int64", |_| true),
        };
        if value.as_i64().is_some_and(fits) {
            return Ok(());
        }
        match (self.reading, &*value) {
            (Reading::Unstructured, _) => unstructured::integer(value, name),
            (Reading::Json, Value::Number(number)) => Err(format!(
                "json: cannot unmarshal number {number} into Go struct field {}.{} of type {name}",
                location.owner,
                without_indexes(&location.path())
            )),
            (Reading::Json, other) => Err(self.mismatch(other, name, location)),
        }
    }

    fn bytes(&self, value: &mut Value, location: &Location<'_>) -> Result<(), String> {
        match (self.reading, &*value) {
            (Reading::Json, Value::String(text)) => base64(text),
            (Reading::Json, other) => Err(self.mismatch(other, "[]uint8", location)),
            (Reading::Unstructured, Value::String(text)) => {
                base64(text).map_err(|why| format!("error decoding from json: {why}"))
            }
            (Reading::Unstructured, _) => unstructured::bytes(value),
        }
    }

    fn mismatch(&self, value: &Value, expected: &str, location: &Location<'_>) -> String {
        if self.reading == Reading::Unstructured {
            return unstructured::mismatch(value, expected);
        }
        let path = without_indexes(&location.path());
        format!(
            "json: cannot unmarshal {} into Go struct field {}.{path} of type {expected}",
            type_word(value),
            location.owner
        )
    }
}

/// Lists that Go writes as null where they are absent.
const NULL_LISTS: [(&str, &str); 8] = [
    ("AllocatedDeviceStatus", "conditions"),
    ("ContainerImage", "names"),
    ("CSINodeDriver", "topologyKeys"),
    ("ResourcePolicyRule", "namespaces"),
    ("PodFailurePolicy", "rules"),
    ("SuccessPolicy", "rules"),
    ("PodFailurePolicyOnExitCodesRequirement", "values"),
    ("ProjectedVolumeSource", "sources"),
];
/// Lists that are not the same as absent ones where they are empty.
const KEPT_LISTS: [(&str, &str); 3] =
    [("SuccessPolicy", "rules"), ("PodFailurePolicyOnExitCodesRequirement", "values"), ("HPAScalingRules", "policies")];
/// The references to other objects whose name Go omits where it is empty.
const REFERENCES: [&str; 8] = [
    "LocalObjectReference",
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
];
/// Fields that Go always writes, although the documents of the real server do not require them.
const ALWAYS: [(&str, &str); 10] = [
    ("NodeRuntimeHandler", "name"),
    ("PodDisruptionBudgetStatus", "currentHealthy"),
    ("PodDisruptionBudgetStatus", "desiredHealthy"),
    ("PodDisruptionBudgetStatus", "disruptionsAllowed"),
    ("PodDisruptionBudgetStatus", "expectedPods"),
    ("PriorityClass", "value"),
    ("ResourceFieldSelector", "divisor"),
    ("StatefulSetOrdinals", "start"),
    ("StatefulSetSpec", "serviceName"),
    ("StatefulSetStatus", "availableReplicas"),
];
/// Required fields that are pointers in Go, so that an absent one is not empty.
const NILS: [(&str, &str); 1] = [("HTTPIngressPath", "pathType")];

fn find(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    fields.iter().find_map(|field| match field.ty {
        Type::Embedded(inner) => find(inner, name),
        _ => (field.name == name).then_some(field),
    })
}

/// Returns whether Go omits a field with this value.
fn is_left_out(value: &Value, field: &Field, known: Option<&registry::Field>) -> bool {
    match value {
        Value::Array(items) => items.is_empty() && field.shape == Occurrence::List,
        Value::Object(entries) => {
            entries.is_empty() && field.shape == Occurrence::Map && !known.is_some_and(|known| known.always)
        }
        Value::String(text) => field.zero_is_absent && text.is_empty(),
        Value::Bool(value) => field.zero_is_absent && !value,
        Value::Number(number) => field.zero_is_absent && number.as_f64() == Some(0.0),
        Value::Null => true,
    }
}

/// Returns the zero value of a type, or null if it has none or Go writes it as null.
fn zero(ty: Type) -> Value {
    match ty {
        Type::String => Value::from(""),
        Type::Bool => Value::Bool(false),
        Type::Int | Type::Double | Type::IntOrString => Value::from(0),
        Type::Quantity => Value::from("0"),
        Type::Message(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

fn quantity(value: &mut Value) -> Result<(), String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(QUANTITY_RULE.to_owned()),
    };
    let parsed: Quantity =
        text.parse().map_err(|_| if text.is_empty() { QUANTITY_EMPTY.to_owned() } else { QUANTITY_RULE.to_owned() })?;
    *value = Value::String(parsed.to_string());
    Ok(())
}

/// Returns Go's name of a type.
fn go_name(ty: Type) -> String {
    match ty {
        Type::String => "string".to_owned(),
        Type::Message(descriptor) => format!("v1.{}", descriptor().name),
        _ => String::new(),
    }
}

fn base64(text: &str) -> Result<(), String> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    // Line breaks are ignored.
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match STANDARD.decode(text.as_bytes()) {
        Ok(_) => Ok(()),
        Err(base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _)) => {
            Err(format!("illegal base64 data at input byte {at}"))
        }
        Err(_) => Err(format!("illegal base64 data at input byte {}", text.len() / 4 * 4)),
    }
}

pub(super) fn time(value: &mut Value, micro: bool) -> Result<(), String> {
    let Value::String(text) = &*value else { return Ok(()) };
    // Most times are canonical already: this one has no fraction and no offset.
    if !micro && text.len() == "2006-01-02T15:04:05Z".len() && klient_core::parse_time(text).is_ok() {
        return Ok(());
    }
    let formatted = if micro {
        klient_core::parse_micro_time(text).map(|time| klient_core::format_micro_time(&time))
    } else {
        klient_core::parse_time(text).map(|time| klient_core::format_time(&time))
    };
    *value = Value::String(formatted.map_err(|_| {
        let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
        // A time without the fraction that it must have is read up to its seconds.
        if let Some((seconds, rest)) = text.split_at_checked("2006-01-02T15:04:05".len())
            && micro
            && klient_core::parse_time(&format!("{seconds}Z")).is_ok()
        {
            return format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \".000000\"");
        }
        format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{text}\" as \"2006\"")
    })?);
    Ok(())
}

/// Returns a path without list indices, which Go's messages do not have.
fn without_indexes(path: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

const QUANTITY_RULE: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const QUANTITY_EMPTY: &str = "quantity must be non-empty";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: &str, mut object: Value, reading: Reading) -> Result<Value, String> {
        let types = registry::types().of_kind("", "v1", kind).unwrap();
        let codec = klient_proto::Codec::find("v1", kind).unwrap();
        normalise(&mut object, (codec.descriptor)(), types, reading).map(|_| object)
    }

    #[test]
    fn nulls_in_lists_and_maps_are_zero_values() {
        let container = json!({"name": "c", "args": [null], "resources": {"limits": {"cpu": null}}, "env": [null]});
        let pod = json!({"metadata": {"labels": {"a": null}}, "spec": {"containers": [container]}});
        for reading in [Reading::Json, Reading::Unstructured] {
            let read = read("Pod", pod.clone(), reading).unwrap();
            assert_eq!(read["metadata"]["labels"], json!({"a": ""}));
            let expected =
                json!({"name": "c", "args": [""], "resources": {"limits": {"cpu": "0"}}, "env": [{"name": ""}]});
            assert_eq!(read["spec"]["containers"], json!([expected]));
        }
    }

    #[test]
    fn invalid_bytes_have_the_error_of_their_reader() {
        let why = "illegal base64 data at input byte 1";
        for (value, by_json, by_converter) in [
            (json!("a!"), why.to_owned(), format!("error decoding from json: {why}")),
            (
                json!({}),
                "json: cannot unmarshal object into Go struct field Secret.data of type []uint8".to_owned(),
                "cannot restore slice from map".to_owned(),
            ),
        ] {
            let secret = json!({"data": {"a": value}});
            assert_eq!(read("Secret", secret.clone(), Reading::Json).unwrap_err(), by_json);
            assert_eq!(read("Secret", secret, Reading::Unstructured).unwrap_err(), by_converter);
        }
    }

    #[test]
    fn whole_floats_are_integers_for_the_converter_only() {
        let pod = json!({"spec": {"containers": [], "priority": 5.0}});
        assert_eq!(read("Pod", pod.clone(), Reading::Unstructured).unwrap()["spec"]["priority"], json!(5));
        let error = read("Pod", pod, Reading::Json).unwrap_err();
        assert_eq!(error, "json: cannot unmarshal number 5.0 into Go struct field PodSpec.spec.priority of type int32");
    }
}

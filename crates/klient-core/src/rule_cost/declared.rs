//! The declarations of a schema: the types of fields, and the sizes of their values.

use serde_json::{Value, json};

use super::{LARGEST_REQUEST, RESERVED_WORDS, types::Type};

/// A schema, as rules see it.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) shape: Shape,
    /// The highest number of characters, bytes, items or entries; 0 for other values, and for keys of maps.
    pub(super) most: u64,
    /// The number of bytes of the shortest JSON form.
    pub(super) least_json: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Simple(Type<'static>),
    List(Box<Declared>),
    Map { keys: Box<Declared>, values: Box<Declared> },
    Object(Vec<(String, Declared)>),
}

impl Declared {
    /// Returns what a schema declares; `None` if rules cannot see its values.
    pub(super) fn of(schema: &Value, is_root: bool) -> Option<Self> {
        let longest_text = LARGEST_REQUEST - 2;
        let characters = schema["maxLength"].as_u64();
        // Each character has up to four bytes.
        let bound = characters.map(|characters| characters.saturating_mul(4));
        if schema["x-kubernetes-int-or-string"] == true {
            return Some(Self::simple(Type::Dyn, bound.unwrap_or(longest_text), 1));
        }
        Some(match schema["type"].as_str()? {
            "array" => {
                let items = Self::of(schema.get("items")?, false)?;
                let most = schema["maxItems"].as_u64();
                let most = most.unwrap_or_else(|| (LARGEST_REQUEST - 2) / (items.least_json + 1));
                Self { shape: Shape::List(Box::new(items)), most, least_json: 2 }
            }
            "object" if schema["additionalProperties"].is_object() => {
                let values = Box::new(Self::of(&schema["additionalProperties"], false)?);
                let most = schema["maxProperties"].as_u64();
                let most = most.unwrap_or_else(|| (LARGEST_REQUEST - 2) / (values.least_json + 6));
                let keys = Box::new(Self::simple(Type::Text, 0, 2));
                Self { shape: Shape::Map { keys, values }, most, least_json: 2 }
            }
            "object" => Self::object(schema, is_root || schema["x-kubernetes-embedded-resource"] == true),
            "string" => match schema["format"].as_str() {
                Some("byte") => Self::simple(Type::Bytes, characters.unwrap_or(longest_text), 2),
                Some("duration") => Self::simple(Type::Duration, 32, 3),
                Some("date") => Self::simple(Type::Timestamp, 12, 12),
                Some("date-time") => Self::simple(Type::Timestamp, 32, 21),
                _ => {
                    let values = schema["enum"].as_array().filter(|values| !values.is_empty());
                    let longest =
                        values.map(|values| values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0));
                    let most = bound.or(longest.map(|longest| longest as u64)).unwrap_or(longest_text);
                    Self::simple(Type::Text, most, 2)
                }
            },
            "boolean" => Self::simple(Type::Bool, 0, 4),
            "number" => Self::simple(Type::Double, 0, 1),
            "integer" => Self::simple(Type::Int, 0, 1),
            _ => return None,
        })
    }

    fn simple(kind: Type<'static>, most: u64, least_json: u64) -> Self {
        Self { shape: Shape::Simple(kind), most, least_json }
    }

    fn object(schema: &Value, is_resource: bool) -> Self {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut least_json = 2;
        let mut fields = Vec::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let Some(declared) = Self::of(property, false) else { continue };
            if required.contains(&name.as_str()) && property["default"].is_null() {
                least_json += name.len() as u64 + declared.least_json + 4;
            }
            fields.push((name.clone(), declared));
        }
        if is_resource && !has_metadata(schema) {
            let text = json!({"type": "string"});
            let metadata = json!({"type": "object", "properties": {"name": text, "generateName": text}});
            for (name, schema) in [("kind", &text), ("apiVersion", &text), ("metadata", &metadata)] {
                fields.retain(|(known, _)| known != name);
                fields.extend(Self::of(schema, false).map(|declared| (name.to_owned(), declared)));
            }
        }
        Self { shape: Shape::Object(fields), most: 0, least_json }
    }

    /// Returns the type of the values.
    pub(super) fn kind(&self) -> Type<'_> {
        match &self.shape {
            Shape::Simple(kind) => kind.clone(),
            Shape::List(items) => Type::list(items.kind()),
            Shape::Map { keys, values } => Type::map(keys.kind(), values.kind()),
            Shape::Object(_) => Type::Object(self),
        }
    }

    /// Returns a field, by its name in CEL: characters that CEL does not allow in names are escaped.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        let Shape::Object(fields) = &self.shape else { return None };
        let unescaped = name
            .replace("__dot__", ".")
            .replace("__dash__", "-")
            .replace("__slash__", "/")
            .replace("__underscores__", "__");
        // A word of the language is between underscores.
        let word = unescaped.strip_prefix("__").and_then(|name| name.strip_suffix("__"));
        let found = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, declared)| declared);
        found(&unescaped).or_else(|| word.and_then(found))
    }

    /// Returns what a path of fields, items, keys and values leads to.
    pub(super) fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |declared, step| match (step.as_str(), &declared.shape) {
            ("@items" | "@values", Shape::List(items)) => Some(items.as_ref()),
            ("@items" | "@values", Shape::Map { values, .. }) => Some(values.as_ref()),
            ("@keys", Shape::Map { keys, .. }) => Some(keys.as_ref()),
            // The size of a field whose name is a word of the language is found by its escaped name only.
            (name, _) => declared.field(name).filter(|_| !RESERVED_WORDS.contains(&name)),
        })
    }
}

fn has_metadata(schema: &Value) -> bool {
    let properties = &schema["properties"];
    let metadata = &properties["metadata"];
    properties["kind"]["type"] == "string"
        && properties["apiVersion"]["type"] == "string"
        && metadata["type"] == "object"
        && ["name", "generateName"].iter().all(|name| metadata["properties"][name]["type"] == "string")
}

//! Mutations of valid objects, driven by the types of their fields: each gives an object that may be invalid.

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::{Map, Value, json};

use crate::objects::Random;

/// A valid object, and where it is created.
pub struct Base {
    pub kind: String,
    pub path: String,
    pub weight: u64,
    pub object: Value,
    pub status: Option<Value>,
    type_name: String,
    /// The names of fields that stay as they are.
    fixed: Vec<String>,
}

/// Returns the valid objects of `valid.json`.
pub fn bases() -> Vec<Base> {
    let list: Vec<Value> = serde_json::from_str(include_str!("valid.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list.into_iter()
        .map(|item| Base {
            kind: text(&item["kind"]),
            path: text(&item["path"]),
            weight: item["weight"].as_u64().unwrap_or(1),
            type_name: text(&item["type"]),
            fixed: item["fixed"].as_array().into_iter().flatten().map(text).collect(),
            object: item["object"].clone(),
            status: item.get("status").cloned(),
        })
        .collect()
}

impl Base {
    /// Returns a mutated object, and the places that were changed. Only fields below `part` change if it is given.
    pub fn mutated(&self, random: &mut Random, object: &Value, part: Option<&str>) -> (Value, String) {
        let mut object = object.clone();
        let count = if random.chance(25) { 2 } else { 1 };
        let mut changed = Vec::new();
        for _ in 0..count {
            changed.push(self.mutate(random, &mut object, part));
        }
        (object, changed.join(" and "))
    }

    fn mutate(&self, random: &mut Random, object: &mut Value, part: Option<&str>) -> String {
        let mut places = Vec::new();
        self.places(object, &json!({"ref": self.type_name}), "", part, &mut places);
        // A first mutation can have removed everything that may change.
        if places.is_empty() {
            return "nothing".to_owned();
        }
        let (pointer, shape) = random.pick(&places);
        let Some(value) = object.pointer_mut(&pointer) else { return pointer };
        if random.chance(8) && !pointer.is_empty() && pointer != "/metadata" {
            remove(object, &pointer);
            return format!("{pointer} removed");
        }
        let what = self.change(random, value, &shape);
        format!("{pointer} {what}")
    }

    /// Collects the values of an object with their shapes.
    fn places(&self, value: &Value, shape: &Value, at: &str, part: Option<&str>, found: &mut Vec<(String, Value)>) {
        let is_root = at.is_empty();
        if !is_root || part.is_none() {
            found.push((at.to_owned(), shape.clone()));
        }
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let is_other = is_root && part.is_some_and(|part| part != name);
                    let is_identity = is_root && (name == "apiVersion" || name == "kind");
                    let is_name = at == "/metadata" && SYSTEM.contains(&name.as_str());
                    if is_other || is_identity || is_name || self.fixed.contains(name) {
                        continue;
                    }
                    let Some(inner_shape) = field_shape(shape, name) else { continue };
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    self.places(inner, &inner_shape, &format!("{at}/{escaped}"), part, found);
                }
            }
            Value::Array(items) => {
                let inner_shape = shape.get("list").cloned().unwrap_or(json!("any"));
                for (index, item) in items.iter().enumerate() {
                    self.places(item, &inner_shape, &format!("{at}/{index}"), part, found);
                }
            }
            _ => {}
        }
    }

    fn change(&self, random: &mut Random, value: &mut Value, shape: &Value) -> String {
        match (&mut *value, shape) {
            (Value::Array(items), _) => match random.pick(&[0, 1, 1, 2, 3]) {
                0 => {
                    items.clear();
                    "emptied".to_owned()
                }
                1 if !items.is_empty() => {
                    let item = random.pick(items);
                    items.push(item);
                    "with a duplicate".to_owned()
                }
                2 if items.len() > 1 => {
                    items.reverse();
                    "reversed".to_owned()
                }
                _ => {
                    let inner = shape.get("list").cloned().unwrap_or(json!("string"));
                    let item = self.sample(random, &inner, 0);
                    let told = format!("with {item}");
                    items.push(item);
                    told
                }
            },
            (Value::Object(fields), shape) if shape.get("map").is_some() => {
                let inner = shape["map"].clone();
                let key = random.pick(&["Bad Key", "a/b/c", "", "ok", "kubernetes.io/x", "-x", "..", "cpu", "pods"]);
                let entry = self.sample(random, &inner, 0);
                let told = format!("with {key:?}: {entry}");
                fields.insert(key.to_owned(), entry);
                told
            }
            (Value::Object(fields), shape) => {
                let known = fields_of(shape);
                let absent: Vec<(String, Value)> = known
                    .into_iter()
                    .filter(|(name, _)| !fields.contains_key(name) && !self.fixed.contains(name))
                    .filter(|(name, _)| !is_system(shape, name))
                    .collect();
                if absent.is_empty() || random.chance(10) {
                    fields.clear();
                    return "cleared".to_owned();
                }
                let (name, shape) = random.pick(&absent);
                let sample = self.sample(random, &shape, 0);
                let told = format!("with {name}: {sample}");
                fields.insert(name, sample);
                told
            }
            (Value::String(inner), _) if inner.starts_with(['[', '{']) && random.chance(80) => {
                *inner = changed_text(random, inner);
                format!("= {value}")
            }
            (_, shape) => {
                *value = self.sample(random, shape, 0);
                format!("= {value}")
            }
        }
    }

    /// Returns a value of a shape, which is often invalid.
    fn sample(&self, random: &mut Random, shape: &Value, depth: usize) -> Value {
        if let Some(inner) = shape.get("list") {
            let count = random.pick(&[0, 1, 1, 2]);
            return (0..count).map(|_| self.sample(random, inner, depth + 1)).collect();
        }
        if let Some(inner) = shape.get("map") {
            let key = random.pick(&["app", "a.b/c", "Bad Key", "cpu", "storage"]);
            return json!({key: self.sample(random, inner, depth + 1)});
        }
        match shape.as_str().unwrap_or_default() {
            "string" => json!(text(random)),
            "int32" => random.pick(&[0, -1, 1, 2, 101, 65_536, 100_001, i32::MAX].map(|number| json!(number))),
            "int64" | "integer" => random.pick(&[0, -1, 1, 5, 3601, 1 << 33].map(|number: i64| json!(number))),
            "boolean" => json!(random.chance(50)),
            "quantity" => json!(random.pick(&["0", "-1", "1", "1.5", "100m", "64Mi", "3Gi", "2M"])),
            "int-or-string" => random.pick(&[
                json!(0),
                json!(-1),
                json!(80),
                json!(65_536),
                json!("0%"),
                json!("150%"),
                json!("50%"),
                json!("web"),
                json!("Bad_Port"),
                json!("10"),
            ]),
            "date-time" => json!(random.pick(&["2026-01-02T03:04:05Z", "2025-01-02T03:04:05Z"])),
            "byte" => json!(random.pick(&["", "YQ==", "e30=", "WzFd"])),
            "number" => json!(random.pick(&[0, 1, 3])),
            "any" | "object" => random.pick(&[json!({}), json!({"type": "string"}), json!("x"), json!(1)]),
            _ => self.sample_object(random, shape, depth),
        }
    }

    fn sample_object(&self, random: &mut Random, shape: &Value, depth: usize) -> Value {
        let is_quantity = shape["ref"].as_str().is_some_and(|name| name.ends_with(".Quantity"));
        let leaf = shape["ref"].as_str().and_then(|name| types().get(name)).and_then(|known| known.get("is"));
        if is_quantity {
            return self.sample(random, &json!("quantity"), depth);
        }
        if let Some(leaf) = leaf {
            return self.sample(random, leaf, depth);
        }
        let mut known: Vec<(String, Value)> = fields_of(shape).into_iter().collect();
        known.retain(|(name, _)| !self.fixed.contains(name) && !is_system(shape, name));
        let mut object = Map::new();
        if depth < 3 && !known.is_empty() {
            for _ in 0..random.pick(&[0, 1, 1, 2, 3]) {
                let (name, shape) = random.pick(&known);
                object.insert(name, self.sample(random, &shape, depth + 1));
            }
        }
        Value::Object(object)
    }
}

/// Returns a text: a word that some field knows, or one that breaks a rule.
fn text(random: &mut Random) -> String {
    match random.pick(&[0, 0, 0, 1, 1, 2, 3]) {
        0 => random.pick(&WORDS).to_owned(),
        1 => random.pick(&BAD).to_owned(),
        2 => random.pick(&["x".repeat(64), "x".repeat(16), "x".repeat(254), "a".repeat(63) + ".b"]),
        _ => String::new(),
    }
}

/// Returns JSON with another value in one place, or cut off.
fn changed_text(random: &mut Random, text: &str) -> String {
    let Ok(mut document) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let mut pointers = Vec::new();
    pointers_of(&document, "", &mut pointers);
    let pointer = random.pick(&pointers);
    match random.pick(&[0, 1, 2, 2, 2, 2, 3]) {
        0 => return text.chars().take(text.len() / 2).collect(),
        1 => remove(&mut document, &pointer),
        2 => {
            let values = [
                json!(null),
                json!(""),
                json!("x"),
                json!("0.5"),
                json!(" 1Gi "),
                json!("-1"),
                json!(0),
                json!(-1),
                json!(7),
                json!(1.5),
                json!(1i64 << 40),
                json!(true),
                json!({}),
                json!([]),
                json!([null]),
                json!({"a": null}),
                json!("2026-01-02T03:04:05+02:00"),
            ];
            if let Some(value) = document.pointer_mut(&pointer) {
                *value = random.pick(&values);
            }
        }
        _ => {
            // Go does not look at the case of names.
            if let Some(Value::Object(fields)) = document.pointer_mut(&pointer) {
                let old = std::mem::take(fields);
                fields.extend(old.into_iter().map(|(name, value)| (name.to_uppercase(), value)));
            }
        }
    }
    document.to_string()
}

/// Collects the pointers to all values of a document.
fn pointers_of(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| {
            pointers_of(inner, &format!("{at}/{name}"), found);
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, inner)| {
            pointers_of(inner, &format!("{at}/{index}"), found);
        }),
        _ => {}
    }
}

fn remove(object: &mut Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
    let name = name.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.remove(&name)),
        Some(Value::Array(items)) => {
            if let Ok(index) = name.parse::<usize>() {
                items.remove(index);
            }
        }
        _ => {}
    }
}

fn types() -> &'static Map<String, Value> {
    static TYPES: OnceLock<Map<String, Value>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let document: Value = serde_json::from_str(include_str!("../../src/registry/kubernetes.json")).unwrap();
        document["types"].as_object().unwrap().clone()
    })
}

/// Returns whether a field of metadata is left as it is.
fn is_system(shape: &Value, name: &str) -> bool {
    shape["ref"].as_str().is_some_and(|of| of.ends_with(".ObjectMeta")) && SYSTEM.contains(&name)
}

/// Returns the shape of a field, without the rules of its merge.
fn plain(shape: &Value) -> Value {
    shape.get("is").unwrap_or(shape).clone()
}

fn fields_of(shape: &Value) -> BTreeMap<String, Value> {
    let known = shape["ref"].as_str().and_then(|name| types().get(name));
    let fields = known.and_then(|known| known["fields"].as_object()).into_iter().flatten();
    fields.map(|(name, shape)| (name.clone(), plain(shape))).collect()
}

fn field_shape(shape: &Value, name: &str) -> Option<Value> {
    if let Some(inner) = shape.get("map") {
        return Some(inner.clone());
    }
    fields_of(shape).remove(name)
}

/// Metadata that is not mutated.
const SYSTEM: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];
const WORDS: [&str; 48] = [
    "a",
    "main",
    "scratch",
    "claim",
    "Always",
    "Never",
    "OnFailure",
    "None",
    "Default",
    "In",
    "NotIn",
    "Exists",
    "Equal",
    "Gt",
    "NoExecute",
    "windows",
    "linux",
    "Localhost",
    "RuntimeDefault",
    "TCP",
    "UDP",
    "IPv4",
    "IPv6",
    "SingleStack",
    "PreferDualStack",
    "Cluster",
    "Local",
    "NodePort",
    "LoadBalancer",
    "ClusterIP",
    "ExternalName",
    "Indexed",
    "NonIndexed",
    "Recreate",
    "OnDelete",
    "Block",
    "ReadWriteOncePod",
    "ServiceAccount",
    "User",
    "Role",
    "Utilization",
    "Value",
    "Object",
    "metadata.name",
    "limits.memory",
    "1.2.3.4",
    "10.0.0.0/8",
    "example.com/x",
];
const BAD: [&str; 22] = [
    "UPPER",
    "under_score",
    "a.b",
    "-dash",
    "dash-",
    "has space",
    "../up",
    "/abs",
    "a/b/c",
    "*.example.com",
    "*",
    "ünïcode",
    "01.2.3.4",
    "10.0.0.1/8",
    "300.1.1.1",
    "1.2.3",
    "a=b",
    "..",
    "0-3,2",
    "* * * *",
    "61 * * * *",
    "@never",
];

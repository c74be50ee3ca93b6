//! The documents of custom kinds.
//!
//! Paths are those of a custom kind that was recorded from the real server, with its names replaced. Schemas are built from the
//! definition.

use serde_json::{Map, Value, json};

use super::{folded::Folded, schema};
use crate::registry::{Resource, Schema};

/// Returns the document of version 3 for the custom kinds of one group version.
pub(super) fn version_three(kinds: &[&Resource]) -> Value {
    let mut merged = Value::Null;
    for kind in kinds {
        let document = kind_version_three(kind);
        if merged.is_null() {
            merged = document;
            continue;
        }
        for pointer in ["/paths", "/components/schemas"] {
            if let (Some(Value::Object(known)), Some(Value::Object(new))) =
                (merged.pointer_mut(pointer), document.pointer(pointer))
            {
                known.extend(new.clone());
            }
        }
    }
    merged
}

/// Returns a custom kind's entries of a section of the document of version 2: `paths` or `definitions`.
pub(super) fn version_two(kind: &Resource, section: &str) -> Map<String, Value> {
    let mut template = template(kind, "v2");
    keep_subresources(kind, &mut template["paths"]);
    let own = schema_of(kind).map(|schema| schema::version_two(schema, &template["definitions"][model(kind)]));
    set_model(kind, own, &mut template["definitions"]);
    match template[section].take() {
        Value::Object(entries) => entries,
        _ => Map::new(),
    }
}

fn kind_version_three(kind: &Resource) -> Value {
    let mut document = template(kind, "v3");
    keep_subresources(kind, &mut document["paths"]);
    if kind.subresource("scale").is_none()
        && let Value::Object(schemas) = &mut document["components"]["schemas"]
    {
        schemas.retain(|name, _| !name.starts_with("io.k8s.api.autoscaling."));
    }
    let schemas = &mut document["components"]["schemas"];
    let own = schema_of(kind).map(|schema| schema::version_three(schema, &schemas[model(kind)]));
    set_model(kind, own, schemas);
    document
}

/// Replaces the recorded schema of a kind. Without a schema, objects can have any fields.
fn set_model(kind: &Resource, own: Option<Value>, schemas: &mut Value) {
    let identity = json!([{"group": kind.group, "kind": kind.kind, "version": kind.version}]);
    let mut model_schema = own.unwrap_or_else(|| json!({"type": "object"}));
    model_schema["x-kubernetes-group-version-kind"] = identity;
    schemas[model(kind)] = model_schema;
    let fields: Vec<Value> = match &kind.schema {
        Schema::Custom(schema) => {
            schema.selectable.iter().map(|path| json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)})).collect()
        }
        Schema::BuiltIn(_) => Vec::new(),
    };
    if !fields.is_empty() {
        for name in [model(kind), list_model(kind)] {
            schemas[name]["x-kubernetes-selectable-fields"] = json!(fields);
        }
    }
}

fn schema_of(kind: &Resource) -> Option<&Value> {
    match &kind.schema {
        Schema::Custom(schema) => schema.structural(),
        Schema::BuiltIn(_) => None,
    }
}

/// Removes the paths of subresources that a kind does not have.
fn keep_subresources(kind: &Resource, paths: &mut Value) {
    let Value::Object(paths) = paths else { return };
    paths.retain(|path, _| match path.rsplit_once("/{name}/") {
        Some((_, subresource)) => kind.subresource(subresource).is_some(),
        None => true,
    });
}

/// Returns the recorded document for the scope of a kind, with the names of the kind.
fn template(kind: &Resource, version: &str) -> Value {
    let scope = if kind.namespaced { "namespaced" } else { "cluster" };
    let mut text = Folded::recorded().text(&format!("custom/{scope}/{version}")).unwrap_or_default();
    let (group, group_version) = (operation_word(&kind.group, false), operation_word(&kind.version, false));
    let tag = format!("{group}_{group_version}");
    let upper = operation_word(&kind.group, true) + &operation_word(&kind.version, true);
    for (placeholder, name) in [
        ("zgroupInvalid_vzversion", tag.as_str()),
        ("ZgroupInvalidVzversion", &upper),
        ("invalid.zgroup.vzversion", &model_prefix(kind)),
        ("zgroup.invalid", &kind.group),
        ("vzversion", &kind.version),
        ("zplurals", &kind.plural),
        (" a Zkind", &format!("{}{}", article(&kind.kind), kind.kind)),
        ("Zkind", &kind.kind),
        ("Zlist", &kind.list_kind),
    ] {
        text = text.replace(placeholder, name);
    }
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the name of a kind's model: the group in reverse order, the version and the kind.
fn model(kind: &Resource) -> String {
    format!("{}.{}", model_prefix(kind), kind.kind)
}

fn list_model(kind: &Resource) -> String {
    format!("{}.{}", model_prefix(kind), kind.list_kind)
}

fn model_prefix(kind: &Resource) -> String {
    let reversed: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}", reversed.join("."), kind.version)
}

/// Returns a name without the characters that operation ids cannot have. The letter after each of them is upper case.
fn operation_word(name: &str, upper_first: bool) -> String {
    let mut upper = upper_first;
    let mut word = String::new();
    for (at, c) in name.strip_suffix(".k8s.io").unwrap_or(name).char_indices() {
        let is_kept = c.is_alphabetic() || c == '_' || (at != 0 && c.is_numeric());
        match (is_kept, upper) {
            (false, _) => upper = true,
            (true, true) => {
                word.extend(c.to_uppercase());
                upper = false;
            }
            (true, false) => word.push(c),
        }
    }
    word
}

/// Returns the article before a kind, between spaces. Plurals have none.
fn article(kind: &str) -> &'static str {
    let is_plural = kind.ends_with('s') && !kind.ends_with("ss");
    let starts_with_vowel = kind.starts_with(|c: char| "aeiou".contains(c.to_ascii_lowercase()));
    match (is_plural, starts_with_vowel) {
        (true, _) => " ",
        (false, true) => " an ",
        (false, false) => " a ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_words_have_only_letters_and_digits() {
        assert_eq!(operation_word("klient.invalid", true), "KlientInvalid");
        assert_eq!(operation_word("resource.k8s.io", false), "resource");
        assert_eq!(operation_word("my-group.example.com", false), "myGroupExampleCom");
        assert_eq!(operation_word("v1beta1", true), "V1beta1");
    }

    #[test]
    fn articles_follow_the_first_letter() {
        assert_eq!([article("Ingress"), article("Pod"), article("Gears")], [" an ", " a ", " "]);
    }
}

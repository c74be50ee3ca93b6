//! Writes the table of built-in kinds from a real API server's documents: `cargo xtask registry` runs this.
//!
//! Resources come from its discovery documents, their columns from its tables, types from its OpenAPI documents. One line
//! per entry, in order, so that a new version of Kubernetes is a readable diff.

#![allow(clippy::print_stdout)]

use std::{collections::BTreeMap, error::Error, fmt::Write as _};

use klient::{Client, request::media_type};
use serde_json::{Map, Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let output = std::env::args().nth(1).ok_or("usage: registry <file>")?;
    let rest = Client::infer()?.rest();
    let version: Value = rest.get().path("/version").value().await?;
    let mut groups = Vec::new();
    let mut descriptions = Vec::new();
    for path in ["/api", "/apis"] {
        let found: Value = rest.get().path(path).accept(media_type::AGGREGATED_DISCOVERY).value().await?;
        for group in list(&found["items"]) {
            let name = text(&group["metadata"]["name"]);
            for version in list(&group["versions"]) {
                let version_name = text(&version["version"]);
                let group_version = if name.is_empty() {
                    format!("/api/{version_name}")
                } else {
                    format!("/apis/{name}/{version_name}")
                };
                // Only unaggregated discovery has storage version hashes.
                let legacy: Value = rest.get().path(&group_version).value().await?;
                let mut resources = resources(list(&version["resources"]), list(&legacy["resources"]));
                for resource in
                    resources.iter_mut().filter(|resource| list(&resource["verbs"]).contains(&json!("list")))
                {
                    let path = format!("{group_version}/{}", text(&resource["plural"]));
                    let table: Value = rest.get().path(path).accept(TABLE).value().await?;
                    resource["columns"] = columns(list(&table["columnDefinitions"]), &mut descriptions);
                }
                groups.push(json!({"group": name, "version": version_name, "resources": resources}));
            }
        }
    }
    let index: Value = rest.get().path("/openapi/v3").value().await?;
    let mut types = BTreeMap::new();
    for path in index["paths"].as_object().into_iter().flat_map(Map::keys) {
        let document: Value = rest.get().path(format!("/openapi/v3/{path}")).value().await?;
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            types.insert(name.clone(), type_of(schema));
        }
    }
    let mut out = format!("{{\"version\":{version},\n\"groups\":[\n");
    join(&mut out, groups.iter().map(Value::to_string))?;
    out.push_str("],\n\"descriptions\":[\n");
    join(&mut out, descriptions.iter().map(Value::to_string))?;
    out.push_str("],\n\"types\":{\n");
    join(&mut out, types.iter().map(|(name, value)| format!("{}:{value}", json!(name))))?;
    out.push_str("}}\n");
    std::fs::write(&output, &out)?;
    println!("{output}: {} group versions, {} types, {} bytes", groups.len(), types.len(), out.len());
    Ok(())
}

fn join(out: &mut String, lines: impl Iterator<Item = String>) -> std::fmt::Result {
    for (index, line) in lines.enumerate() {
        write!(out, "{}{line}", if index == 0 { "" } else { ",\n" })?;
    }
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the discovery of each resource without empty values.
fn resources(found: &[Value], legacy: &[Value]) -> Vec<Value> {
    let describe = |resource: &Value| {
        let mut out = Map::new();
        out.insert("plural".to_owned(), resource["resource"].clone());
        out.insert("singular".to_owned(), resource["singularResource"].clone());
        out.insert("kind".to_owned(), resource["responseKind"]["kind"].clone());
        out.insert("namespaced".to_owned(), json!(resource["scope"] == "Namespaced"));
        for name in ["verbs", "shortNames", "categories"] {
            if let Some(values) = resource.get(name) {
                out.insert(name.to_owned(), values.clone());
            }
        }
        let subresources: Vec<Value> = list(&resource["subresources"])
            .iter()
            .map(|sub| {
                let kind = &sub["responseKind"];
                json!({"name": sub["subresource"], "group": kind["group"], "version": kind["version"],
                    "kind": kind["kind"], "verbs": sub["verbs"]})
            })
            .collect();
        if !subresources.is_empty() {
            out.insert("subresources".to_owned(), json!(subresources));
        }
        if let Some(hash) =
            legacy.iter().find(|old| old["name"] == resource["resource"]).and_then(|old| old.get("storageVersionHash"))
        {
            out.insert("storageVersionHash".to_owned(), hash.clone());
        }
        Value::Object(out)
    };
    found.iter().map(describe).collect()
}

/// Returns columns in short form: name, type, format, index of the description, and priority.
fn columns(found: &[Value], descriptions: &mut Vec<Value>) -> Value {
    let short = |column: &Value| {
        let description = &column["description"];
        let at = descriptions.iter().position(|known| known == description).unwrap_or_else(|| {
            descriptions.push(description.clone());
            descriptions.len() - 1
        });
        json!([column["name"], column["type"], column["format"], at, column["priority"]])
    };
    Value::Array(found.iter().map(short).collect())
}

/// Returns a schema in short form: `fields` with their types, or the type itself if it has none.
fn type_of(schema: &Value) -> Value {
    let mut out = Map::new();
    match schema["properties"].as_object() {
        Some(properties) => {
            let fields: Map<String, Value> =
                properties.iter().map(|(name, field)| (name.clone(), field_of(field))).collect();
            out.insert("fields".to_owned(), json!(fields));
        }
        None => drop(out.insert("is".to_owned(), shape(schema))),
    }
    if let Some(required) = schema.get("required") {
        out.insert("required".to_owned(), required.clone());
    }
    if schema["x-kubernetes-map-type"] == "atomic" {
        out.insert("atomic".to_owned(), json!(true));
    }
    let kinds = list(&schema["x-kubernetes-group-version-kind"]);
    // Options have dozens of kinds. Only API objects have exactly one.
    if let [kind] = kinds {
        out.insert("kind".to_owned(), json!([kind["group"], kind["version"], kind["kind"]]));
    }
    Value::Object(out)
}

fn field_of(field: &Value) -> Value {
    let mut out = Map::new();
    out.insert("is".to_owned(), shape(field));
    for (from, to) in [
        ("x-kubernetes-patch-merge-key", "mergeKey"),
        ("x-kubernetes-patch-strategy", "strategy"),
        ("x-kubernetes-list-type", "list"),
        ("x-kubernetes-list-map-keys", "keys"),
        ("x-kubernetes-map-type", "map"),
        ("default", "default"),
    ] {
        if let Some(value) = field.get(from).filter(|value| !is_zero(value)) {
            out.insert(to.to_owned(), value.clone());
        }
    }
    // A struct and not a pointer in Go: present even if it is empty.
    if field["default"] == json!({}) && field.get("allOf").is_some() {
        out.insert("always".to_owned(), json!(true));
    }
    if out.len() == 1 { shape(field) } else { Value::Object(out) }
}

/// Returns whether a default is Go's zero value.
fn is_zero(value: &Value) -> bool {
    *value == json!("") || *value == json!(0) || *value == json!(false) || *value == json!({})
}

/// Returns the short form of a type: a name for a scalar, or `{"ref"}`, `{"list"}` or `{"map"}`.
fn shape(schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str()) {
        return json!({"ref": reference.rsplit('/').next()});
    }
    if schema.get("oneOf").is_some() {
        return schema.get("format").cloned().unwrap_or_else(|| json!("quantity"));
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("array"), _) => json!({"list": shape(&schema["items"])}),
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            json!({"map": shape(&schema["additionalProperties"])})
        }
        (Some("string"), Some(format @ ("date-time" | "byte"))) => json!(format),
        (Some("integer"), Some(format)) => json!(format),
        (Some(name), _) => json!(name),
        (None, _) => json!("any"),
    }
}

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

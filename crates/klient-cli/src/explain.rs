//! `klient explain`: the documentation of a kind and its fields, from the server's OpenAPI documents.

use std::{error::Error, io, io::Write as _};

use clap::Args;
use klient::client::discovery::{CachedDiscovery, DiscoveryClient, OpenApiClient, RestMapper};
use serde_json::Value;

use crate::cluster::Cluster;

/// The options of `klient explain`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: Cluster,
    /// The kind and a path of fields: pods.spec.containers
    #[arg(value_name = "KIND[.FIELD...]")]
    path: String,
}

/// Prints the documentation.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let client = arguments.cluster.client()?;
    let mapper = RestMapper::new(CachedDiscovery::in_memory(DiscoveryClient::new(client.clone())));
    let (kind, path) = arguments.path.split_once('.').unwrap_or((&arguments.path, ""));
    let resource = mapper.resolve(kind).await?.resource;
    let document = OpenApiClient::new(client).value(&resource.group_version()).await?;
    let root = root(&document, &resource.group, &resource.version, &resource.kind)
        .ok_or_else(|| format!("the server does not describe {}", resource.group_resource()))?;
    let mut schema = resolved(&document, root);
    let mut field = root;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let fields = below(&document, schema);
        field = &fields["properties"][name];
        if field.is_null() {
            return Err(format!("field {name:?} does not exist in {}", arguments.path).into());
        }
        schema = resolved(&document, field);
    }
    let mut out = io::stdout().lock();
    writeln!(out, "KIND:     {}\nVERSION:  {}\n", resource.kind, resource.group_version())?;
    if !path.is_empty() {
        writeln!(out, "FIELD:    {path} <{}>\n", type_of(&document, field))?;
    }
    let description =
        [field, schema].iter().find_map(|schema| schema["description"].as_str()).unwrap_or("no description");
    writeln!(out, "DESCRIPTION:\n  {}", wrapped(description))?;
    let fields = below(&document, schema);
    let required = fields["required"].as_array().map_or(&[][..], Vec::as_slice);
    if let Some(properties) = fields["properties"].as_object() {
        writeln!(out, "\nFIELDS:")?;
        for (name, field) in properties {
            let is_required = if required.iter().any(|required| required == name) { " (required)" } else { "" };
            writeln!(out, "  {name} <{}>{is_required}", type_of(&document, field))?;
        }
    }
    Ok(())
}

/// Returns the schema of a kind.
fn root<'a>(document: &'a Value, group: &str, version: &str, kind: &str) -> Option<&'a Value> {
    let schemas = document["components"]["schemas"].as_object()?;
    schemas.values().find(|schema| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.into_iter().flatten().any(|of| of["group"] == group && of["version"] == version && of["kind"] == kind)
    })
}

/// Follows the reference of a schema.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    match reference.and_then(|reference| reference.strip_prefix("#/components/schemas/")) {
        Some(name) => &document["components"]["schemas"][name],
        None => schema,
    }
}

/// Returns the schema that has the fields: that of the items of a list, or of the values of a map.
fn below<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match (&schema["items"], &schema["additionalProperties"]) {
        (items @ Value::Object(_), _) => resolved(document, items),
        (_, values @ Value::Object(_)) => resolved(document, values),
        _ => schema,
    }
}

fn type_of(document: &Value, field: &Value) -> String {
    let schema = resolved(document, field);
    match (schema["type"].as_str().unwrap_or("Object"), &schema["items"], &schema["additionalProperties"]) {
        (_, items @ Value::Object(_), _) => format!("[]{}", type_of(document, items)),
        (_, _, values @ Value::Object(_)) => format!("map[string]{}", type_of(document, values)),
        ("object", ..) => "Object".to_owned(),
        (scalar, ..) => scalar.to_owned(),
    }
}

/// Breaks a text into lines of readable length.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 && length + word.len() + 1 > WIDTH {
            out.push_str("\n  ");
            length = 0;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += word.chars().count();
    }
    out
}

const WIDTH: usize = 100;

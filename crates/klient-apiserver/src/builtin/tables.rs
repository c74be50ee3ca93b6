//! Tables: objects as rows for people to read, as `kubectl get` shows them.

mod cells;

use serde_json::{Value, json};

use crate::registry::{Resource, Schema};

/// One column.
struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
}

/// A table of objects.
pub(crate) fn table(resource: &Resource, objects: &[Value], metadata: &Value, with_columns: bool) -> Value {
    let now = jiff::Timestamp::now();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| json!({"cells": cells::row(resource, object, now), "object": crate::answer::partial(object)}))
        .collect();
    whole(resource, &rows, metadata, with_columns)
}

/// A bookmark as a table.
pub(crate) fn bookmark(resource: &Resource, object: &Value, metadata: &Value) -> Value {
    let row = json!({"cells": [], "object": crate::answer::partial(object)});
    whole(resource, &[row], metadata, false)
}

fn whole(resource: &Resource, rows: &[Value], metadata: &Value, with_columns: bool) -> Value {
    let mut head = json!({});
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = metadata.get(name) {
            head[name] = value.clone();
        }
    }
    let columns: Vec<Value> = if with_columns {
        columns(resource)
            .into_iter()
            .map(|column| {
                json!({"name": column.name, "type": column.kind, "format": column.format,
                    "description": column.description, "priority": column.priority})
            })
            .collect()
    } else {
        Vec::new()
    };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": head, "columnDefinitions": columns, "rows": rows})
}

fn columns(resource: &Resource) -> Vec<Column> {
    let column = |name: &str, kind: &str, format: &str, priority: i64| Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: format.to_owned(),
        description: String::new(),
        priority,
    };
    let mut columns = vec![column("Name", "string", "name", 0)];
    match &resource.schema {
        Schema::Custom(schema) if schema.columns.is_empty() => columns.push(column("Age", "date", "", 0)),
        Schema::Custom(schema) => columns.extend(schema.columns.iter().map(|custom| Column {
            name: custom.name.clone(),
            kind: custom.kind.clone(),
            format: custom.format.clone(),
            description: custom.description.clone(),
            priority: custom.priority,
        })),
        Schema::BuiltIn(_) => {
            columns.extend(
                cells::built_in(resource).iter().map(|(name, kind, priority)| column(name, kind, "", *priority)),
            );
        }
    }
    columns
}

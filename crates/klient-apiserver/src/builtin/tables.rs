//! Tables: objects as rows, as `kubectl get` prints them.

pub(super) mod cells;
mod path;
pub(super) mod pods;
pub(super) mod rare;

use serde_json::{Value, json};

use super::versions;
use crate::{
    negotiate::Include,
    registry::{Resource, Schema, TableColumn},
};

/// Returns a table of objects.
pub(crate) fn table(
    resource: &Resource,
    objects: &[Value],
    metadata: &Value,
    include: Include,
    with_columns: bool,
) -> Value {
    let now = jiff::Timestamp::now();
    let row = |object: &Value| {
        let object = &*versions::unconverted(resource, object);
        let shown = match include {
            Include::Nothing => Value::Null,
            Include::Metadata => {
                let mut object = object.clone();
                (resource.hooks.row_metadata)(&mut object);
                crate::response::partial(&object)
            }
            Include::Object if resource.hooks.stored_as.is_some() => versions::convert(resource, object.clone()),
            Include::Object => object.clone(),
        };
        let mut row = json!({"cells": cells::row(resource, object, now), "object": shown});
        if let Some(condition) = (resource.hooks.row_condition)(object) {
            row["conditions"] = json!([condition]);
        }
        row
    };
    let mut head = json!({});
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        // Lists of custom objects have an empty `continue`; tables of them have none.
        if let Some(value) = metadata.get(name).filter(|value| **value != json!("")) {
            head[name] = value.clone();
        }
    }
    let columns: Value =
        if with_columns { columns(resource).iter().map(TableColumn::definition).collect() } else { Value::Null };
    let rows: Vec<Value> = objects.iter().map(row).collect();
    // The real server's tables of kinds without columns of their own have no list of rows if it would be empty.
    let is_plain = resource.columns.iter().any(|column| column.name == "Created At");
    let rows = if rows.is_empty() && is_plain { Value::Null } else { Value::Array(rows) };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": head, "columnDefinitions": columns, "rows": rows})
}

fn columns(resource: &Resource) -> Vec<TableColumn> {
    let Schema::Custom(schema) = &resource.schema else { return resource.columns.clone() };
    let common = crate::registry::common_columns();
    let mut columns = common[..1].to_vec();
    if schema.columns.is_empty() {
        columns.extend(common[1..].iter().map(|age| TableColumn { kind: "date".to_owned(), ..age.clone() }));
    }
    columns.extend(schema.columns.iter().map(|custom| TableColumn {
        name: custom.name.clone(),
        kind: custom.kind.clone(),
        format: custom.format.clone(),
        description: if custom.description.is_empty() {
            format!("Custom resource definition column (in JSONPath format): {}", custom.path)
        } else {
            custom.description.clone()
        },
        priority: custom.priority,
    }));
    columns
}

impl TableColumn {
    fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": self.description,
            "priority": self.priority})
    }
}

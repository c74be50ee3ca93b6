//! `klient get`: objects of a cluster, as the table that the server prints, or in full.

use std::{
    error::Error,
    io::{self, Write},
};

use clap::{Args, ValueEnum};
use klient::{
    client::{Pager, RestRequest},
    options::ListOptions,
    request::Target,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cluster::{Selected, Selection},
    output,
};

/// The options of `klient get`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// The output format
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Table,
    Wide,
    Name,
    Json,
    Yaml,
}

/// Prints the objects.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let selected = arguments.selection.find().await?;
    let mut out = io::stdout().lock();
    match arguments.output {
        Format::Table | Format::Wide => {
            let rows = table(arguments, &selected).await?;
            if rows.len() < 2 {
                let scope = match &selected.target {
                    Target::Namespace(namespace) => format!(" in namespace {namespace:?}"),
                    _ => String::new(),
                };
                output::print_note(&format!("no {} found{scope}", selected.resource.group_resource()));
                return Ok(());
            }
            output::columns(&mut out, &rows)?;
        }
        Format::Name => {
            for object in objects(arguments, &selected).await? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                writeln!(out, "{}/{name}", selected.resource.group_resource())?;
            }
        }
        Format::Json => serde_json::to_writer_pretty(&mut out, &whole(arguments, &selected).await?)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))?,
        Format::Yaml => write!(out, "{}", serde_saphyr::to_string(&whole(arguments, &selected).await?)?)?,
    }
    Ok(())
}

/// Returns the named objects, or all objects if none are named.
async fn objects(arguments: &Arguments, selected: &Selected) -> Result<Vec<Value>, Box<dyn Error>> {
    let api = selected.api();
    let mut objects = Vec::new();
    for name in &selected.names {
        objects.push(serde_json::to_value(api.get(name).await?)?);
    }
    if selected.names.is_empty() {
        for object in Pager::new(api, options(arguments)).all().await?.items {
            objects.push(serde_json::to_value(object)?);
        }
    }
    Ok(objects)
}

/// Returns one named object as it is, and several objects as a list.
async fn whole(arguments: &Arguments, selected: &Selected) -> Result<Value, Box<dyn Error>> {
    let mut objects = objects(arguments, selected).await?;
    if selected.names.len() == 1 {
        return Ok(objects.swap_remove(0));
    }
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": objects}))
}

fn options(arguments: &Arguments) -> ListOptions {
    let selection = &arguments.selection;
    let mut options = ListOptions::default();
    if let Some(selector) = &selection.selector {
        options = options.labels(selector);
    }
    if let Some(selector) = &selection.field_selector {
        options = options.fields(selector);
    }
    options
}

/// A table, as the server prints it for people.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(default)]
    priority: i32,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<Value>,
    #[serde(default)]
    object: Value,
}

/// Returns the header and a row for each object.
async fn table(arguments: &Arguments, selected: &Selected) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let of = |name: Option<&String>| -> RestRequest {
        let mut request = selected.client.rest().get().resource(&selected.resource).accept(TABLE);
        if let Target::Namespace(namespace) = &selected.target {
            request = request.namespace(namespace);
        }
        match name {
            Some(name) => request.name(name.clone()),
            None => request.options(|query| options(arguments).append_query(query)),
        }
    };
    let mut tables: Vec<Table> = Vec::new();
    for name in &selected.names {
        tables.push(of(Some(name)).value().await?);
    }
    if selected.names.is_empty() {
        tables.push(of(None).value().await?);
    }
    let everywhere = matches!(selected.target, Target::AllNamespaces);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for table in tables {
        let shown: Vec<bool> = table
            .column_definitions
            .iter()
            .map(|column| column.priority == 0 || arguments.output == Format::Wide)
            .collect();
        let chosen =
            |cells: Vec<String>| cells.into_iter().zip(&shown).filter(|(_, shown)| **shown).map(|(cell, _)| cell);
        if rows.is_empty() {
            let names = table.column_definitions.iter().map(|column| column.name.to_uppercase()).collect();
            let namespace = everywhere.then(|| "NAMESPACE".to_owned());
            rows.push(namespace.into_iter().chain(chosen(names)).collect());
        }
        for row in table.rows {
            let namespace = everywhere.then(|| text(&row.object["metadata"]["namespace"]));
            rows.push(namespace.into_iter().chain(chosen(row.cells.iter().map(text).collect())).collect());
        }
    }
    Ok(rows)
}

fn text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        Value::Null => "<none>".to_owned(),
        other => other.to_string(),
    }
}

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

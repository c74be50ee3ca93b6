//! `klient watch`: the events of an informer, line by line. It survives failures of the server and the network.

use std::{
    error::Error,
    io::{self, Write},
};

use clap::{Args, ValueEnum};
use klient::{
    ObjectKey, SharedInformer,
    informer::{Event, InformerState, Tombstone},
    object::DynamicObject,
};
use serde_json::{Value, json};

use crate::{cluster::Selection, output};

/// The options of `klient watch`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// The output format: one line per change, or one JSON document per line
    #[arg(long, short, value_enum, default_value_t = Format::Lines)]
    output: Format,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Lines,
    Json,
}

/// Prints events until the command is interrupted.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let selected = arguments.selection.find().await?;
    let mut builder = SharedInformer::builder(selected.api()).on_error(|error| output::print_error(error));
    if let Some(selector) = &arguments.selection.selector {
        builder = builder.labels(selector);
    }
    if let Some(selector) = &arguments.selection.field_selector {
        builder = builder.fields(selector);
    }
    let informer = builder.build();
    let mut events = informer.events();
    let mut states = informer.states();
    informer.start();
    let secret = selected.resource.kind == "Secret";
    let mut out = io::stdout().lock();
    let interrupted = klient::shutdown::signal();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            event = events.next() => {
                let Some(event) = event else { return Ok(()) };
                if selected.names.is_empty() || selected.names.iter().any(|name| name == event.key().name()) {
                    show(&mut out, &event, arguments.output, secret)?;
                }
            }
            () = &mut interrupted => return Ok(()),
            _ = states.changed() => {
                let state = *states.borrow_and_update();
                if let Some(warning) = warning(state) {
                    output::print_note(&format!("warning: {}: {warning}", selected.resource.group_resource()));
                }
            }
        }
    }
}

/// Returns a warning about a state in which no events arrive.
fn warning(state: InformerState) -> Option<&'static str> {
    match state {
        InformerState::Stale { .. } => Some("disconnected from the server, output may be stale"),
        InformerState::Denied => Some("the server denies access, retrying"),
        InformerState::NotServed => Some("the server does not serve this resource, retrying"),
        _ => None,
    }
}

fn show(
    out: &mut impl Write,
    event: &Event<DynamicObject>,
    format: Format,
    secret: bool,
) -> Result<(), Box<dyn Error>> {
    let what = match event {
        Event::Added { in_initial_list: true, .. } => "FOUND",
        Event::Added { .. } => "ADDED",
        Event::Updated { .. } => "CHANGED",
        Event::Deleted(Tombstone::Final(_)) => "DELETED",
        Event::Deleted(Tombstone::LastKnown(_)) => "VANISHED",
    };
    let object = event.object();
    if format == Format::Json {
        let object = serde_json::to_value(&*object.decode()?)?;
        writeln!(out, "{}", json!({"type": what, "object": object}))?;
    } else {
        let key: &ObjectKey = event.key();
        let changes = match event {
            Event::Updated { old, new } => {
                let (old, new) = (serde_json::to_value(&*old.decode()?)?, serde_json::to_value(&*new.decode()?)?);
                difference(&old, &new, secret)
            }
            _ => String::new(),
        };
        writeln!(out, "{}", format!("{what:9} {key} {} {changes}", object.resource_version()).trim_end())?;
    }
    out.flush()?;
    Ok(())
}

/// Returns the first few fields that differ, with their values if these are short and not secret.
fn difference(old: &Value, new: &Value, secret: bool) -> String {
    let mut changes = Vec::new();
    compare("", old, new, &mut changes);
    changes.retain(|(path, ..)| path != "metadata.resourceVersion" && !path.starts_with("metadata.managedFields"));
    let more = changes.len().saturating_sub(SHOWN);
    let mut texts: Vec<String> = changes
        .iter()
        .take(SHOWN)
        .map(|(path, old, new)| {
            let value = |value: &Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let (old, new) = (value(old), value(new));
            let plain = !secret && old.len() <= SHORT && new.len() <= SHORT;
            if plain { format!("{path}: {old} -> {new}") } else { path.clone() }
        })
        .collect();
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    texts.join(", ")
}

fn compare<'a>(
    path: &str,
    old: &'a Value,
    new: &'a Value,
    changes: &mut Vec<(String, Option<&'a Value>, Option<&'a Value>)>,
) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => compare(&below(name), old, new, changes),
                    (old, new) => changes.push((below(name), old, new)),
                }
            }
        }
        (old, new) if old != new => changes.push((path.to_owned(), Some(old), Some(new))),
        _ => {}
    }
}

/// The number of changed fields that are shown per object.
const SHOWN: usize = 5;
/// The length up to which values are shown.
const SHORT: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_shows_short_values_except_of_secrets() {
        let old =
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1, "image": "x"}, "data": {"a": "1"}});
        let new = json!({"metadata": {"resourceVersion": "2"}, "spec": {"replicas": 2}, "data": {"a": "1", "b": "y".repeat(50)}});
        assert_eq!(difference(&old, &new, false), "data.b, spec.image: \"x\" -> nothing, spec.replicas: 1 -> 2");
        assert_eq!(difference(&old, &new, true), "data.b, spec.image, spec.replicas");
    }

    #[test]
    fn difference_counts_further_changes() {
        let of = |value: i32| (0..9).map(|n| (format!("f{n}"), json!(value))).collect::<serde_json::Map<_, _>>().into();
        assert!(difference(&of(1), &of(2), false).ends_with("f4: 1 -> 2, and 4 more"));
    }
}

//! `klient apply`, `delete` and `wait`.

use std::{error::Error, io::Read as _, path::PathBuf, time::Duration};

use clap::Args;
use klient::{
    Api,
    client::discovery::{CachedDiscovery, DiscoveryClient, RestMapper},
    object::DynamicObject,
    request::Target,
    resource::GroupVersionKind,
    wait::{Until, wait_for},
};
use serde_json::Value;

use crate::{
    cluster::{Namespaced, Selected, Selection},
    output,
};

/// The options of `klient apply`.
#[derive(Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    place: Namespaced,
    /// The file with YAML or JSON documents, or - for the input
    #[arg(long, short, required = true)]
    filename: Vec<PathBuf>,
    /// The name of the manager that owns the applied fields
    #[arg(long, default_value = "klient")]
    field_manager: String,
    /// Take fields over from other managers
    #[arg(long)]
    force_conflicts: bool,
    /// Check everything on the server, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// The options of `klient delete`.
#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    selection: Selection,
    /// Seconds that objects get to shut down
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u64>,
    /// Do not wait until the objects are gone
    #[arg(long)]
    no_wait: bool,
    /// Missing objects are no error
    #[arg(long)]
    ignore_not_found: bool,
}

/// The options of `klient wait`.
#[derive(Args)]
pub(crate) struct Wait {
    #[command(flatten)]
    selection: Selection,
    /// What to wait for: create, delete, condition=Ready or condition=Ready=False
    #[arg(long = "for", value_name = "STATE")]
    state: String,
    /// The time limit: 30s, 5m, 2h
    #[arg(long, value_parser = output::duration, default_value = "30s")]
    timeout: Duration,
}

/// Applies each document by server-side apply.
pub(crate) async fn apply(arguments: &Apply) -> Result<(), Box<dyn Error>> {
    let client = arguments.place.cluster.client()?;
    let mapper = RestMapper::new(CachedDiscovery::in_memory(DiscoveryClient::new(client.clone())));
    for document in documents(&arguments.filename)? {
        let version = document["apiVersion"].as_str().unwrap_or_default();
        let kind = document["kind"].as_str().unwrap_or_default();
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::new(group.to_owned(), version.to_owned(), kind.to_owned());
        let resource = mapper.resource_for_kind(&gvk).await?;
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let target = if resource.is_namespaced() {
            let namespace = document["metadata"]["namespace"].as_str().map(str::to_owned);
            Target::Namespace(namespace.unwrap_or_else(|| arguments.place.namespace(&client)))
        } else {
            Target::Cluster
        };
        let shown = format!("{}/{name}", resource.group_resource());
        let api: Api<DynamicObject> = Api::dynamic(client.clone(), resource, target);
        let mut request = api.apply(&document).manager(&arguments.field_manager);
        if arguments.force_conflicts {
            request = request.force();
        }
        if arguments.dry_run {
            request = request.dry_run();
        }
        request.await?;
        output::line(format_args!("{shown} applied{}", if arguments.dry_run { " (dry run)" } else { "" }))?;
    }
    Ok(())
}

/// Deletes objects, and waits until they are gone.
pub(crate) async fn delete(arguments: &Delete) -> Result<(), Box<dyn Error>> {
    let selected = arguments.selection.find().await?;
    let api = selected.api();
    for name in names(&arguments.selection, &selected).await? {
        let mut request = api.delete(&name);
        if let Some(seconds) = arguments.grace_period {
            request = request.grace_period(Duration::from_secs(seconds));
        }
        match request.await {
            Err(error) if error.is_not_found() && arguments.ignore_not_found => continue,
            deleted => drop(deleted?),
        }
        if !arguments.no_wait {
            wait_for(&api, &name, &Until::absent(), Duration::MAX).await?;
        }
        output::line(format_args!("{}/{name} deleted", selected.resource.group_resource()))?;
    }
    Ok(())
}

/// Waits for a state of each object.
pub(crate) async fn wait(arguments: &Wait) -> Result<(), Box<dyn Error>> {
    let selected = arguments.selection.find().await?;
    let api = selected.api();
    for name in names(&arguments.selection, &selected).await? {
        wait_for(&api, &name, &state(&arguments.state)?, arguments.timeout).await?;
        output::line(format_args!("{}/{name} reached {}", selected.resource.group_resource(), arguments.state))?;
    }
    Ok(())
}

/// Returns the names of objects: those that were given, or those that the selector matches.
async fn names(selection: &Selection, selected: &Selected) -> Result<Vec<String>, Box<dyn Error>> {
    if !selected.names.is_empty() {
        return Ok(selected.names.clone());
    }
    let selector = selection.selector.as_deref().ok_or("name the objects, or select them with --selector")?;
    let list = selected.api().list().labels(selector).await?;
    Ok(list.into_iter().filter_map(|object| object.metadata.name).collect())
}

fn state(text: &str) -> Result<Until<DynamicObject>, Box<dyn Error>> {
    match text.split_once('=') {
        None if text == "delete" => Ok(Until::absent()),
        None if text == "create" => Ok(Until::exists()),
        Some(("condition", condition)) => {
            let (type_, status) = condition.split_once('=').unwrap_or((condition, "True"));
            Ok(Until::condition(type_, status))
        }
        _ => {
            Err(format!("{text:?} is not a state: use create, delete, condition=TYPE or condition=TYPE=STATUS").into())
        }
    }
}

/// Reads the documents of files.
fn documents(files: &[PathBuf]) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut documents = Vec::new();
    for file in files {
        let text = if file.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        } else {
            std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?
        };
        let parsed: Vec<Value> =
            serde_saphyr::from_multiple(&text).map_err(|error| format!("{} is not YAML: {error}", file.display()))?;
        for document in parsed.into_iter().filter(|document| !document.is_null()) {
            match document["items"].as_array() {
                Some(items) if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => {
                    documents.extend(items.iter().cloned());
                }
                _ => documents.push(document),
            }
        }
    }
    Ok(documents)
}

//! Server-side apply.

use klient_core::{
    Quoted, Status, StatusCause, StatusReason,
    fields::{Conflict, Duplicates, ManagedSet, PathElement, Typed, UpdateError, Updater},
};
use serde_json::Value;

use super::{
    Writer,
    entries::{Identity, Managed},
    last_applied, schema,
    update::{STRIPPED, update_managed, without_entries, zero},
    versions::Versions,
};
use crate::{
    Result, builtin,
    decode::{self, FieldValidation},
    metadata,
    registry::{Groups, Resource},
};

/// An applied configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied<'a> {
    pub(crate) configuration: &'a Value,
    /// Whether fields are taken from other managers.
    pub(crate) force: bool,
}

/// The body of an apply request.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) object: Value,
    /// The messages about duplicate keys.
    duplicates: Vec<String>,
}

impl Configuration {
    /// Parses a body, which is YAML or JSON.
    pub(crate) fn parse(body: &[u8]) -> Result<Self> {
        let bad = |why: &dyn std::fmt::Display| Box::new(Status::bad_request(format!("error decoding YAML: {why}")));
        let text = std::str::from_utf8(body).map_err(|_| bad(&"yaml: invalid leading UTF-8 octet"))?;
        let (value, duplicates) = match decode::parse_strictly(body) {
            Ok((value, duplicates)) if duplicates.is_empty() => (value, duplicates),
            // Messages about duplicate keys name their lines, in JSON, too.
            _ => decode::parse_yaml_text(text)
                .map_err(|why| bad(&format_args!("error converting YAML to JSON: {why}")))?,
        };
        let object = match value {
            Value::Object(mut fields) => {
                if let Some(Value::String(version)) = fields.get_mut("apiVersion") {
                    *version = decode::without_empty_group(std::mem::take(version));
                }
                Value::Object(fields)
            }
            Value::Null => Value::Object(serde_json::Map::new()),
            other => {
                let what = decode::type_word(&other);
                let why = format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
                return Err(bad(&format!("error unmarshaling JSON: while decoding JSON: {why}")));
            }
        };
        Ok(Self { object, duplicates })
    }

    /// Rejects duplicate keys of a configuration that was merged, or returns warnings about them, depending on the field validation.
    pub(crate) fn enforce(&self, validation: FieldValidation) -> Result<&[String]> {
        match validation {
            FieldValidation::Ignore => Ok(&[]),
            FieldValidation::Strict if !self.duplicates.is_empty() => {
                let why = format!("yaml: unmarshal errors:\n  {}", self.duplicates.join("\n  "));
                let message = format!("error strict decoding YAML: error converting YAML to JSON: {why}");
                Err(Box::new(Status::bad_request(message)))
            }
            FieldValidation::Warn | FieldValidation::Strict => Ok(&self.duplicates),
        }
    }
}

/// Returns the object that results from an applied configuration, with its entries.
///
/// `live` is the stored object, or an empty one if there is none.
///
/// # Errors
///
/// Returns the real server's response if the configuration is of another kind or does not fit the schema, or if other managers own
/// fields that it would change.
pub(crate) fn apply(
    groups: &Groups,
    resource: &Resource,
    live: &Value,
    applied: Applied<'_>,
    writer: &Writer,
) -> Result<Value> {
    let configuration = applied.configuration;
    let mut managed = Managed::decode(&live["metadata"]["managedFields"])
        .map_err(|why| internal(format!("failed to decode managed fields: {why}")))?;
    check_kind(resource, configuration)?;
    if managed.sets.is_empty() {
        let before = Writer { manager: BEFORE_FIRST_APPLY.to_owned(), ..writer.clone() };
        managed = first_managers(groups, resource, live, managed, &before)
            .map_err(|why| internal(format!("failed to create manager for existing fields: {why}")))?;
    }
    if configuration["metadata"].get("managedFields").is_some_and(|entries| !entries.is_null()) {
        return Err(Box::new(Status::bad_request("metadata.managedFields must be nil")));
    }
    let merge = Merge::new(groups, resource, live, configuration, writer)?;
    let (new, managed) = match merge.run(managed.clone(), applied.force) {
        Err(UpdateError::Conflicts(conflicts)) => {
            let left = if writer.manager == last_applied::MANAGER {
                last_applied::conflicts(resource, live, conflicts)
            } else {
                conflicts
            };
            if !left.is_empty() {
                return Err(conflict(&left));
            }
            merge.run(managed, true).map_err(failed)?
        }
        result => result.map_err(failed)?,
    };
    let mut object = match new {
        Some(new) => complete(resource, new, configuration)?,
        None => without_entries(live),
    };
    if writer.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, configuration);
    }
    super::set_entries(&mut object, managed.encode());
    Ok(object)
}

/// Returns an object with the fields of a configuration merged into it. The owners of fields stay as they are.
///
/// # Errors
///
/// Returns the real server's message if the configuration does not fit the schema.
pub(crate) fn merged(resource: &Resource, object: &Value, configuration: Value) -> std::result::Result<Value, String> {
    let schema = schema::of(resource).ok_or_else(|| "the kind has no schema".to_owned())?;
    let configuration = Typed::new(&schema.schema, schema.root, configuration, Duplicates::Refused)
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let object = Typed::new(&schema.schema, schema.root, object.clone(), Duplicates::Allowed)
        .map_err(|why| format!("failed to convert original object to typed object: {why}"))?;
    let merged = object.merge(&configuration).map_err(|why| format!("failed to merge patch: {why}"))?;
    Ok(merged.into_value())
}

/// Returns the managers of an object that has none: one that owns all fields.
fn first_managers(
    groups: &Groups,
    resource: &Resource,
    live: &Value,
    managed: Managed,
    writer: &Writer,
) -> std::result::Result<Managed, String> {
    let schema = schema::of(resource).ok_or_else(|| "the kind has no schema".to_owned())?;
    let name = describe(live);
    let live = Typed::new(&schema.schema, schema.root, without_entries(live), Duplicates::Allowed)
        .map_err(|why| format!("failed to convert new object ({name}) to smd typed: {why}"))?;
    let zero = zero(resource, &schema);
    update_managed(groups, resource, &zero, &live, managed, writer)
        .ok_or_else(|| "failed to compare the object with an empty one".to_owned())
}

/// The typed objects of an apply.
struct Merge<'a> {
    versions: Versions<'a>,
    live: Typed,
    configuration: Typed,
    writer: &'a Writer,
}

impl<'a> Merge<'a> {
    fn new(
        groups: &'a Groups,
        resource: &'a Resource,
        live: &Value,
        configuration: &Value,
        writer: &'a Writer,
    ) -> Result<Self> {
        let schema = schema::of(resource).ok_or_else(|| internal("the kind has no schema".to_owned()))?;
        let name = describe(configuration);
        let configuration = Typed::new(&schema.schema, schema.root, configuration.clone(), Duplicates::Refused)
            .map_err(|why| internal(format!("failed to create typed patch object ({name}): {why}")))?;
        let name = describe(live);
        let live = Typed::new(&schema.schema, schema.root, without_entries(live), Duplicates::Allowed)
            .map_err(|why| internal(format!("failed to create typed live object ({name}): {why}")))?;
        Ok(Self {
            versions: Versions { groups, resource, conversions: &writer.conversions },
            live,
            configuration,
            writer,
        })
    }

    /// Returns the new object, or nothing if it did not change, and its managers.
    fn run(&self, managed: Managed, force: bool) -> std::result::Result<(Option<Value>, Managed), UpdateError> {
        let ignored = self.versions.ignored(&self.writer.subresource, &managed.sets);
        let updater = Updater { converter: &self.versions, ignored: &ignored };
        let identifier = Identity::apply(&self.writer.manager, &self.writer.subresource).identifier();
        let version = self.versions.resource.api_version();
        let Managed { sets, mut times } = managed;
        let (new, mut sets) = updater.apply(&self.live, &self.configuration, &version, sets, &identifier, force)?;
        if let Some(own) = sets.remove(&identifier) {
            let set = own.set.difference(&STRIPPED);
            if !set.is_empty() {
                sets.insert(identifier.clone(), ManagedSet { set, ..own });
            }
        }
        // A configuration that changes nothing leaves the time as it is.
        if new.is_some() {
            times.insert(identifier, self.writer.time.clone());
        }
        Ok((new.map(Typed::into_value), Managed { sets, times }))
    }
}

/// Returns a merged object as it is stored: normalised, and with defaults, which have no owner.
fn complete(resource: &Resource, mut object: Value, configuration: &Value) -> Result<Value> {
    decode::convert(resource, &mut object).map_err(|why| {
        let (name, kind) = (describe(configuration), kind_text(configuration));
        internal(format!(
            "failed to convert new object ({name}) to proper version: unable to convert unstructured object to {kind}: {why}"
        ))
    })?;
    builtin::complete(resource, &mut object);
    Ok(object)
}

/// Checks that a configuration is of the kind and version of the request.
pub(crate) fn check_kind(resource: &Resource, configuration: &Value) -> Result<()> {
    let text = |name: &str| configuration[name].as_str().unwrap_or_default();
    if (text("apiVersion"), text("kind")) == (resource.api_version().as_str(), resource.kind.as_str()) {
        return Ok(());
    }
    Err(Box::new(Status::bad_request(format!("invalid object type: {}", kind_text(configuration)))))
}

/// Returns the kind of an object as Go prints it.
fn kind_text(object: &Value) -> String {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let group_version = match version.matches('/').count() {
        0 => format!("/{version}"),
        1 => version.to_owned(),
        // Go parses no such version.
        _ => "/".to_owned(),
    };
    format!("{group_version}, Kind={}", text("kind"))
}

/// Returns namespace, name and kind of an object, as errors show them.
fn describe(object: &Value) -> String {
    format!("{}/{}; {}", metadata::text(object, "namespace"), metadata::text(object, "name"), kind_text(object))
}

fn internal(message: String) -> Box<Status> {
    Box::new(Status::failure(StatusReason::Unknown, 500, message))
}

fn failed(error: UpdateError) -> Box<Status> {
    match error {
        UpdateError::Conflicts(conflicts) => conflict(&conflicts),
        UpdateError::Invalid(why) => internal(why),
    }
}

/// Returns the error for fields that other managers own.
fn conflict(conflicts: &[Conflict]) -> Box<Status> {
    let path = |path: &[PathElement]| path.iter().map(ToString::to_string).collect::<String>();
    let message = match conflicts {
        [one] => {
            format!("Apply failed with 1 conflict: conflict with {}: {}", manager_text(&one.manager), path(&one.path))
        }
        several => {
            let mut lines = Vec::new();
            let mut last = None;
            for conflict in several {
                if last != Some(&conflict.manager) {
                    lines.push(format!("conflicts with {}:", manager_text(&conflict.manager)));
                    last = Some(&conflict.manager);
                }
                lines.push(format!("- {}", path(&conflict.path)));
            }
            format!("Apply failed with {} conflicts: {}", several.len(), lines.join("\n"))
        }
    };
    let cause = |conflict: &Conflict| {
        let text = format!("conflict with {}", manager_text(&conflict.manager));
        StatusCause::new("FieldManagerConflict", path(&conflict.path), text)
    };
    Box::new(Status::apply_conflict(conflicts.iter().map(cause).collect(), message))
}

/// Returns a manager as errors name it.
fn manager_text(identifier: &str) -> String {
    let identity = Identity::of(identifier);
    let mut text = Quoted(&identity.manager).to_string();
    if !identity.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", Quoted(&identity.subresource)));
    }
    if !identity.api_version.is_empty() {
        text.push_str(&format!(" using {}", identity.api_version));
    }
    text
}

/// The manager of fields that were written before anything was applied, if their managers are not known.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

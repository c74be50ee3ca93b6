//! Custom resource definitions: validation, acceptance of names, and deletion with all objects.

mod approval;
mod conversion;
mod names;
mod versions;

use std::{collections::HashSet, sync::Arc};

use klient_core::StatusCause;
use serde_json::{Value, json};

pub(super) use self::conversion::validate_url;
use self::versions::Common;
use crate::{
    bootstrap::restored,
    causes::Causes,
    custom, metadata,
    registry::Resource,
    server::Core,
    store::{Change, ChangeKind, CommitError, Expected, Stored, Write},
};

/// The finalizer that keeps a definition until its objects are deleted.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn before_create(object: &mut Value) {
    let stored: Vec<Value> = versions(object)
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .take(1)
        .collect();
    object["status"] =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
    prune_defaults(object);
}

pub(super) fn before_update(object: &mut Value, old: &Value) {
    let mut stored = old["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    let version = versions(object).iter().find(|version| version["storage"] == true);
    if let Some(version) = version.filter(|version| !stored.contains(&version["name"])) {
        stored.push(version["name"].clone());
    }
    object["status"]["storedVersions"] = json!(stored);
    prune_defaults(object);
}

/// Removes fields that metadata does not have from defaults with embedded resources. The real server's validation does that, too.
fn prune_defaults(object: &mut Value) {
    for version in object["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            custom::defaults::prune_metadata(schema, custom::defaults::Defaults::AroundMetadata);
        }
    }
}

/// Sets names that follow from the kind, the conversion, and the stored version.
pub(super) fn fill(object: &mut Value) {
    let names = &mut object["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    if names["singular"].as_str().is_none_or(str::is_empty) {
        names["singular"] = json!(kind.to_lowercase());
    }
    if !kind.is_empty() && names["listKind"].as_str().is_none_or(str::is_empty) {
        names["listKind"] = json!(format!("{kind}List"));
    }
    if object["spec"].get("conversion").is_none() {
        object["spec"]["conversion"] = json!({"strategy": "None"});
    }
    if object["status"].is_object() && object["status"]["storedVersions"].as_array().is_none_or(Vec::is_empty) {
        let version = versions(object).iter().find(|version| version["storage"] == true);
        object["status"]["storedVersions"] = version.map(|version| version["name"].clone()).into_iter().collect();
    }
}

fn versions(object: &Value) -> &[Value] {
    object["spec"]["versions"].as_array().map_or(&[], Vec::as_slice)
}

/// Validates a definition.
pub(super) fn validate(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = &object["spec"];
    let expected = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    for field in ["generateName", "name"] {
        let name = metadata::text(object, field);
        if old.is_none() && name != expected && !name.is_empty() {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            causes.add(|| StatusCause::invalid(format!("metadata.{field}"), name, detail));
        }
    }
    names::group_and_scope(spec, causes);
    let list = versions(object);
    let common = Common::of(list);
    let keeps_unknown = spec["preserveUnknownFields"] == true;
    if keeps_unknown && list.iter().any(|version| versions::has_defaults(&version["schema"])) {
        let detail = "must be false in order to use defaults in the schema";
        causes.add(|| StatusCause::invalid("spec.preserveUnknownFields", true, detail));
    }
    versions::validate(list, &common, causes);
    names::names(&spec["names"], causes);
    let has_status = list.iter().any(|version| version["subresources"].get("status").is_some());
    versions::validate_common(&common, has_status, causes);
    conversion::validate(object, old, causes);
    versions::stored(object, causes);
    approval::validate(object, old, causes);
    if keeps_unknown && old.is_none_or(|old| old["spec"]["preserveUnknownFields"] != true) {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.add(|| StatusCause::invalid("spec.preserveUnknownFields", true, detail));
    }
    if let Some(old) = old {
        let is_established = is_established(old);
        for (field, pointer, is_fixed) in [
            ("spec.scope", "/spec/scope", is_established),
            ("spec.names.kind", "/spec/names/kind", is_established),
            ("spec.group", "/spec/group", true),
            ("spec.names.plural", "/spec/names/plural", true),
        ] {
            if is_fixed && old.pointer(pointer) != object.pointer(pointer) {
                let value = object.pointer(pointer).cloned().unwrap_or_default();
                causes.add(|| StatusCause::invalid(field, value, "field is immutable"));
            }
        }
    }
}

fn validate_schema(schema: &Value, has_status: bool, path: &str, causes: &mut Causes) {
    let path = format!("{path}.openAPIV3Schema");
    let Some(schema) = schema.get("openAPIV3Schema") else { return };
    if has_status {
        custom::root::check(schema, &path, causes);
    }
    causes.extend(custom::structural::validate(schema, &path));
}

fn validate_subresources(subresources: &Value, path: &str, causes: &mut Causes) {
    let Some(scale) = subresources.get("scale") else { return };
    let path = format!("{path}.scale");
    for (name, roots) in [
        ("specReplicasPath", &[".spec."][..]),
        ("statusReplicasPath", &[".status."]),
        ("labelSelectorPath", &[".spec.", ".status."]),
    ] {
        let value = text(&scale[name]);
        if value.is_empty() {
            if name != "labelSelectorPath" {
                causes.add(|| StatusCause::required(format!("{path}.{name}"), ""));
            }
        } else if !value.starts_with('.') {
            let detail = "must be a simple json path starting with .";
            causes.add(|| StatusCause::invalid(format!("{path}.{name}"), value, detail));
        } else if !roots.iter().any(|root| value.starts_with(root)) {
            let names: Vec<&str> = roots.iter().map(|root| root.trim_end_matches('.')).collect();
            let either = if names.len() > 1 { "either " } else { "" };
            let detail = format!("should be a json path under {either}{}", names.join(" or "));
            causes.add(|| StatusCause::invalid(format!("{path}.{name}"), value, &detail));
        }
    }
}

fn validate_columns(columns: &Value, path: &str, causes: &mut Causes) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        validate_column(column, &format!("{path}[{index}]"), causes);
    }
}

/// Validates a column of tables.
fn validate_column(column: &Value, path: &str, causes: &mut Causes) {
    let (kind, format, json_path) = (text(&column["type"]), text(&column["format"]), text(&column["jsonPath"]));
    if text(&column["name"]).is_empty() {
        causes.add(|| StatusCause::required(format!("{path}.name"), ""));
    }
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        causes.add(|| StatusCause::required(format!("{path}.type"), &types));
    } else if !COLUMN_TYPES.contains(&kind.as_str()) {
        causes.add(|| StatusCause::invalid(format!("{path}.type"), kind, &types));
    }
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format.as_str()) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        causes.add(|| StatusCause::invalid(format!("{path}.format"), format, &detail));
    }
    if json_path.is_empty() {
        causes.add(|| StatusCause::required(format!("{path}.JSONPath"), ""));
    } else if !json_path.starts_with('.') {
        let detail = "must be a simple json path starting with .";
        causes.add(|| StatusCause::invalid(format!("{path}.JSONPath"), json_path, detail));
    }
}

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Marks a definition as terminating, and adds the finalizer that keeps it until its objects are deleted.
pub(super) fn terminating(object: &mut Value) {
    let since = object["metadata"]["deletionTimestamp"].clone();
    let condition = json!({"type": "Terminating", "status": "True", "lastTransitionTime": since,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"});
    if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
        conditions.push(condition);
    }
    let mut finalizers: Vec<String> = metadata::finalizers(object).map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let fields = metadata::of(object);
    fields.insert("finalizers".to_owned(), json!(finalizers));
    // Unlike other kinds, the deletion does not change the generation, and there is no grace period.
    fields.insert("generation".to_owned(), json!(generation - 1));
    fields.remove("deletionGracePeriodSeconds");
}

pub(super) async fn after_change(core: &Arc<Core>, change: &Arc<Change>) {
    let definition = change.object.value();
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
    match change.kind {
        ChangeKind::Deleted => {
            core.registry.replace_custom(group, plural, Vec::new());
            core.store.drop_table(&crate::registry::table_name(group, plural));
            accept_others(core, group).await;
        }
        _ if metadata::is_deleting(&definition) => {
            core.registry.replace_custom(group, plural, served(&definition));
            core.collector.empty_definition(&change.key);
        }
        ChangeKind::Created => accept(core, &change.key, &change.object).await,
        ChangeKind::Updated => {
            let old = change.previous.as_ref().map(|stored| stored.value()).unwrap_or_default();
            let is_accepted_again = old["spec"]["names"] != definition["spec"]["names"]
                || approval::of(&old) != approval::of(&definition)
                || (!is_established(&definition) && conversion::has_valid_bundle(&definition));
            if is_accepted_again {
                accept(core, &change.key, &change.object).await;
                accept_others(core, group).await;
            } else {
                core.registry.replace_custom(group, plural, served(&definition));
            }
            if old["spec"] != definition["spec"] {
                core.store.end_watches(&crate::registry::table_name(group, plural));
            }
        }
    }
    restored::api_services(core, change).await;
}

/// Accepts the definitions of a group whose names were in use before.
async fn accept_others(core: &Arc<Core>, group: &str) {
    for stored in core.store.list(TABLE, "").objects {
        let definition = stored.value();
        let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
        let mut refused = conditions.filter(|found| found["type"] == "NamesAccepted" && found["status"] == "False");
        if definition["spec"]["group"] == group && refused.next().is_some() {
            accept(core, metadata::text(&definition, "name"), &stored).await;
        }
    }
}

/// Accepts a definition's names and serves its kinds.
async fn accept(core: &Arc<Core>, key: &str, stored: &Arc<Stored>) {
    let table: Arc<str> = Arc::from(TABLE);
    let mut stored = Arc::clone(stored);
    loop {
        let mut definition = stored.value();
        let (accepted, conflict) = accepted_names(core, key, &definition);
        let now = metadata::time(core.clock.now());
        let condition = |kind: &str, status: bool, reason: &str, message: &str| {
            json!({"type": kind, "status": if status { "True" } else { "False" }, "lastTransitionTime": now,
                "reason": reason, "message": message})
        };
        let established = match conversion::has_valid_bundle(&definition) {
            true => condition("Established", true, "InitialNamesAccepted", "the initial names have been accepted"),
            false => condition("Established", false, "InvalidCABundle", "The conversion webhook CABundle is invalid"),
        };
        let mut conditions = match &conflict {
            None => vec![condition("NamesAccepted", true, "NoConflicts", "no conflicts found"), established],
            Some((reason, message)) => vec![
                condition("NamesAccepted", false, reason, message),
                condition("Established", false, "NotAccepted", "not all names are accepted"),
            ],
        };
        let known = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for condition in &mut conditions {
            let same = known.iter().find(|old| old["type"] == condition["type"]);
            // An established definition stays established.
            let stays = |known: &&Value| {
                known["status"] == condition["status"] || (known["type"] == "Established" && known["status"] == "True")
            };
            if let Some(known) = same.filter(stays) {
                *condition = known.clone();
            }
        }
        let mut before = definition.clone();
        conditions.extend(approval::condition(&definition, &known, &now));
        definition["status"]["conditions"] = json!(conditions);
        definition["status"]["acceptedNames"] = accepted;
        super::record_status(core, "apiextensions.k8s.io", "customresourcedefinitions", &mut before, &mut definition);
        let write = Write::Put(definition);
        match core.store.commit(&table, key, Expected::Revision(stored.revision), write).await {
            Ok(accepted) => {
                let definition = accepted.object;
                let group = definition["spec"]["group"].as_str().unwrap_or_default();
                let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
                core.registry.replace_custom(group, plural, served(&definition));
                return;
            }
            Err(CommitError::Changed(Some(newer))) => stored = newer,
            Err(_) => return,
        }
    }
}

/// Returns the resources of a definition: none before its names are accepted.
pub(crate) fn served(definition: &Value) -> Vec<Arc<Resource>> {
    if is_established(definition) { custom::resources(definition) } else { Vec::new() }
}

/// Returns whether a definition's names were accepted once.
fn is_established(definition: &Value) -> bool {
    has_condition(definition, "Established")
}

/// Returns whether a condition of a definition is true.
pub(crate) fn has_condition(definition: &Value, kind: &str) -> bool {
    let mut conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|found| found["type"] == kind && found["status"] == "True")
}

/// Returns a definition whose objects are being deleted, or are deleted. The finalizer is removed in the latter case.
pub(crate) fn emptied(core: &Core, definition: &Value, is_done: bool) -> Value {
    let (status, reason, message) = match is_done {
        false => ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"),
        true => ("False", "InstanceDeletionCompleted", "removed all instances"),
    };
    let mut new = definition.clone();
    let conditions = new["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|found| found["type"] == "Terminating") {
        if condition["status"] != status {
            condition["lastTransitionTime"] = json!(metadata::time(core.clock.now()));
        }
        condition["status"] = json!(status);
        condition["reason"] = json!(reason);
        condition["message"] = json!(message);
    }
    let mut before = definition.clone();
    super::record_status(core, "apiextensions.k8s.io", "customresourcedefinitions", &mut before, &mut new);
    new
}

/// Returns the accepted names of a definition, and the last conflict with another definition of its group.
fn accepted_names(core: &Core, key: &str, definition: &Value) -> (Value, Option<(&'static str, String)>) {
    let (mut resources, mut kinds) = (HashSet::new(), HashSet::new());
    for stored in core.store.list(TABLE, "").objects {
        let other = stored.value();
        if metadata::text(&other, "name") == key || other["spec"]["group"] != definition["spec"]["group"] {
            continue;
        }
        let names = &other["status"]["acceptedNames"];
        let short = names["shortNames"].as_array().into_iter().flatten();
        resources.extend([&names["plural"], &names["singular"]].into_iter().chain(short).map(text));
        kinds.extend([&names["kind"], &names["listKind"]].map(text));
    }
    let names = &definition["spec"]["names"];
    let mut accepted = json!({"plural": "", "kind": ""});
    let mut conflict = None;
    for (field, reason, taken) in [
        ("plural", "PluralConflict", &resources),
        ("singular", "SingularConflict", &resources),
        ("shortNames", "ShortNamesConflict", &resources),
        ("kind", "KindConflict", &kinds),
        ("listKind", "ListKindConflict", &kinds),
    ] {
        let Some(asked) = names.get(field) else { continue };
        let all = asked.as_array().map_or(std::slice::from_ref(asked), Vec::as_slice);
        match all.iter().map(text).find(|name| taken.contains(name)) {
            Some(name) => conflict = Some((reason, format!("{name:?} is already in use"))),
            None => accepted[field] = asked.clone(),
        }
    }
    if let Some(categories) = names.get("categories") {
        accepted["categories"] = categories.clone();
    }
    (accepted, conflict)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";

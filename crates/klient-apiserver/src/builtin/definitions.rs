//! Custom resource definitions: validation, acceptance of names, and deletion with all objects.

use std::{collections::HashSet, sync::Arc};

use klient_core::StatusCause;
use serde_json::{Value, json};

use crate::{
    custom, metadata,
    registry::Resource,
    server::Core,
    store::{Change, ChangeKind, CommitError, Expected, Write},
};

/// The finalizer that keeps a definition until its objects are deleted.
pub(super) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn before_create(object: &mut Value) {
    fill(object);
    let stored: Vec<Value> = versions(object)
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    object["status"] =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
}

pub(super) fn before_update(object: &mut Value, old: &Value) {
    fill(object);
    let mut stored = old["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    for version in versions(object).iter().filter(|version| version["storage"] == true) {
        if !stored.contains(&version["name"]) {
            stored.push(version["name"].clone());
        }
    }
    object["status"]["storedVersions"] = json!(stored);
}

fn fill(object: &mut Value) {
    let names = &mut object["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    if names["singular"].as_str().is_none_or(str::is_empty) {
        names["singular"] = json!(kind.to_lowercase());
    }
    if names["listKind"].as_str().is_none_or(str::is_empty) {
        names["listKind"] = json!(format!("{kind}List"));
    }
    if object["spec"].get("conversion").is_none() {
        object["spec"]["conversion"] = json!({"strategy": "None"});
    }
}

fn versions(object: &Value) -> &[Value] {
    object["spec"]["versions"].as_array().map_or(&[], Vec::as_slice)
}

/// Validates a definition.
pub(super) fn validate(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let spec = &object["spec"];
    let expected = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    if metadata::text(object, "name") != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.push(StatusCause::invalid("metadata.name", metadata::text(object, "name"), detail));
    }
    for (field, value) in [
        ("spec.group", &spec["group"]),
        ("spec.scope", &spec["scope"]),
        ("spec.names.plural", &spec["names"]["plural"]),
        ("spec.names.kind", &spec["names"]["kind"]),
    ] {
        if value.as_str().is_none_or(str::is_empty) {
            causes.push(StatusCause::required(field, ""));
        }
    }
    let storages = versions(object).iter().filter(|version| version["storage"] == true).count();
    if storages != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.push(StatusCause::invalid("spec.versions", spec["versions"].clone(), detail));
    }
    for (index, version) in versions(object).iter().enumerate() {
        if version["schema"].get("openAPIV3Schema").is_none() {
            causes.push(StatusCause::required(
                format!("spec.versions[{index}].schema.openAPIV3Schema"),
                "schemas are required",
            ));
        }
    }
    let group = text(&spec["group"]);
    let guarded = group == "k8s.io" || group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
    if guarded && object["metadata"]["annotations"].get("api-approved.kubernetes.io").is_none() {
        let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
        causes.push(StatusCause::required("metadata.annotations[api-approved.kubernetes.io]", detail));
    }
    if let Some(old) = old {
        for (field, pointer) in
            [("spec.scope", "/spec/scope"), ("spec.group", "/spec/group"), ("spec.names.plural", "/spec/names/plural")]
        {
            if old.pointer(pointer) != object.pointer(pointer) {
                let value = object.pointer(pointer).cloned().unwrap_or_default();
                causes.push(StatusCause::invalid(field, value, "field is immutable"));
            }
        }
    }
}

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
        }
        _ if metadata::is_deleting(&definition) => core.collector.empty_definition(&change.key),
        ChangeKind::Created => accept(core, change).await,
        ChangeKind::Updated => core.registry.replace_custom(group, plural, served(&definition)),
    }
}

/// Accepts a definition's names and serves its kinds.
async fn accept(core: &Arc<Core>, change: &Arc<Change>) {
    let table: Arc<str> = Arc::from(TABLE);
    let mut stored = Arc::clone(&change.object);
    loop {
        let mut definition = stored.value();
        let (accepted, conflict) = accepted_names(core, &change.key, &definition);
        let now = metadata::time(core.clock.now());
        let condition = |kind: &str, status: bool, reason: &str, message: &str| {
            json!({"type": kind, "status": if status { "True" } else { "False" }, "lastTransitionTime": now,
                "reason": reason, "message": message})
        };
        let conditions = match &conflict {
            None => vec![
                condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
                condition("Established", true, "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            Some((reason, message)) => vec![
                condition("NamesAccepted", false, reason, message),
                condition("Established", false, "NotAccepted", "not all names are accepted"),
            ],
        };
        definition["status"]["conditions"] = json!(conditions);
        definition["status"]["acceptedNames"] = accepted;
        let write = Write::Put(definition);
        match core.store.commit(&table, &change.key, Expected::Revision(stored.revision), write).await {
            Ok(accepted) => {
                let definition = accepted.object.value();
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
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    let mut holds = conditions.filter(|found| found["type"] == "Established" && found["status"] == "True");
    if holds.next().is_some() { custom::resources(definition) } else { Vec::new() }
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

const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";

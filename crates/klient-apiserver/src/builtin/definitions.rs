//! Custom resource definitions: accepted, served, and ended with all their objects.

use std::sync::Arc;

use klient_core::StatusCause;
use serde_json::{Value, json};

use crate::{
    custom, metadata,
    server::Core,
    store::{Change, ChangeKind, CommitError, Expected, Write},
};

/// What keeps a definition until its objects are gone.
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

/// What is wrong with a definition.
pub(super) fn validate(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
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

/// A definition that is being deleted keeps itself until its objects are gone.
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
    // Unlike other kinds, this one does not count its deletion, and has no grace period.
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
        ChangeKind::Updated => core.registry.replace_custom(group, plural, custom::resources(&definition)),
    }
}

/// Accepts a definition's names and serves its kinds.
async fn accept(core: &Arc<Core>, change: &Arc<Change>) {
    let table: Arc<str> = Arc::from("customresourcedefinitions.apiextensions.k8s.io");
    let mut stored = Arc::clone(&change.object);
    loop {
        let mut definition = stored.value();
        let conflict = conflict(core, &definition);
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
        if conflict.is_none() {
            definition["status"]["acceptedNames"] = definition["spec"]["names"].clone();
        }
        let write = Write::Put(definition);
        match core.store.commit(&table, &change.key, Expected::Revision(stored.revision), write).await {
            Ok(accepted) => {
                if conflict.is_none() {
                    let definition = accepted.object.value();
                    let group = definition["spec"]["group"].as_str().unwrap_or_default();
                    let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
                    core.registry.replace_custom(group, plural, custom::resources(&definition));
                }
                return;
            }
            Err(CommitError::Changed(Some(newer))) => stored = newer,
            Err(_) => return,
        }
    }
}

/// Which of a definition's names another kind of its group has already.
fn conflict(core: &Core, definition: &Value) -> Option<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, names) = (text(&definition["spec"]["group"]), &definition["spec"]["names"]);
    let groups = core.registry.groups();
    let others: Vec<_> = groups
        .versions
        .iter()
        .filter(|version| version.group == group)
        .flat_map(|version| &version.resources)
        .filter(|resource| resource.plural != text(&names["plural"]))
        .collect();
    let short: Vec<String> = names["shortNames"].as_array().into_iter().flatten().map(text).collect();
    others.iter().find_map(|other| {
        if short.iter().any(|name| other.short_names.contains(name)) {
            Some(("ShortNamesConflict".to_owned(), format!("{:?} is already in use", short[0])))
        } else if other.kind == text(&names["kind"]) {
            Some(("KindConflict".to_owned(), format!("{:?} is already in use", other.kind)))
        } else {
            None
        }
    })
}

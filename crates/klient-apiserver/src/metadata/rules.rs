//! Validation of metadata.

use klient_core::StatusCause;
use serde_json::Value;

use super::formats::{self, Problems};
use crate::{builtin::NameRule, registry::Resource};

/// Validates the metadata of an object. `old` is the stored object in an update.
pub(crate) fn check(resource: &Resource, object: &Value, old: Option<&Value>, uid: Option<&str>) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let metadata = &object["metadata"];
    if old.is_none() {
        prefix(resource.hooks.names, metadata, &mut causes);
        name(resource, metadata, &mut causes);
    } else {
        prefix(NameRule::PathSegment, metadata, &mut causes);
    }
    labels(&metadata["labels"], &mut causes);
    annotations(&metadata["annotations"], &mut causes);
    owners(&metadata["ownerReferences"], &mut causes);
    finalizers_and_uid(resource, metadata, old, uid, &mut causes);
    if old.is_some() && resource.hooks.checks_prefix_again {
        check_prefix(resource.hooks.names, object, &mut causes);
    }
    causes
}

/// Validates the prefix of generated names of an object by the rule for names.
pub(crate) fn check_prefix(rule: NameRule, object: &Value, causes: &mut Vec<StatusCause>) {
    prefix(rule, &object["metadata"], causes);
}

fn prefix(rule: NameRule, metadata: &Value, causes: &mut Vec<StatusCause>) {
    let Some(prefix) = metadata["generateName"].as_str().filter(|prefix| !prefix.is_empty()) else { return };
    let problems = match rule {
        // A segment of a path may end with anything.
        NameRule::PathSegment => {
            formats::segment_problems(prefix).into_iter().filter(|why| !why.starts_with("may not be")).collect()
        }
        NameRule::WholeSegment => formats::segment_problems(prefix),
        _ => name_problems(rule, &formats::masked_prefix(prefix)),
    };
    for why in problems {
        causes.push(StatusCause::invalid("metadata.generateName", prefix, &why));
    }
}

/// Returns warnings about valid metadata of a custom kind.
pub(crate) fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before: Vec<&str> = old.into_iter().flat_map(super::finalizers).collect();
    let new = super::finalizers(object).filter(|name| !before.contains(name) && !is_good_finalizer(name));
    let told = new.map(|name| {
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
        )
    });
    told.collect()
}

fn is_good_finalizer(name: &str) -> bool {
    name.contains('/') || matches!(name, "orphan" | "foregroundDeletion" | "kubernetes")
}

fn name(resource: &Resource, metadata: &Value, causes: &mut Vec<StatusCause>) {
    let name = metadata["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(StatusCause::required("metadata.name", "name or generateName is required"));
        return;
    }
    for why in name_problems(resource.hooks.names, name) {
        causes.push(StatusCause::invalid("metadata.name", name, &why));
    }
}

fn name_problems(rule: NameRule, name: &str) -> Problems {
    match rule {
        NameRule::Subdomain => formats::subdomain_problems(name),
        NameRule::Label => formats::label_problems(name),
        NameRule::PathSegment | NameRule::WholeSegment => formats::segment_problems(name),
    }
}

fn labels(labels: &Value, causes: &mut Vec<StatusCause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        qualified_name("metadata.labels", key, causes);
        let value = value.as_str().unwrap_or_default();
        for why in formats::label_value_problems(value) {
            causes.push(StatusCause::invalid("metadata.labels", value, &why));
        }
    }
}

fn annotations(annotations: &Value, causes: &mut Vec<StatusCause>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        for why in formats::qualified_name_problems(&key.to_lowercase()) {
            causes.push(StatusCause::invalid("metadata.annotations", key.as_str(), &why));
        }
    }
    if size > MAX_ANNOTATIONS {
        causes.push(StatusCause::too_long("metadata.annotations", MAX_ANNOTATIONS));
    }
}

fn owners(owners: &Value, causes: &mut Vec<StatusCause>) {
    let mut controllers: Vec<String> = Vec::new();
    for owner in owners.as_array().into_iter().flatten() {
        let field = |name: &str| format!("metadata.ownerReferences.{name}");
        for (name, what) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            let given = owner[name].as_str().unwrap_or_default();
            if given.is_empty() {
                causes.push(StatusCause::invalid(field(name), given, what));
            }
        }
        let is_event =
            owner["kind"] == "Event" && matches!(owner["apiVersion"].as_str(), Some("v1" | "events.k8s.io/v1"));
        if is_event {
            let detail =
                format!("{} is disallowed from being an owner", owner["apiVersion"].as_str().unwrap_or_default());
            causes.push(StatusCause::invalid("metadata.ownerReferences", owner.clone(), &detail));
        }
        if owner["controller"] == true {
            let text = |name: &str| owner[name].as_str().unwrap_or_default().to_owned();
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        // The order is that of Go's fields, which is not alphabetical.
        let shown: Vec<String> = owners.as_array().into_iter().flatten().map(owner_text).collect();
        let message = format!("Invalid value: [{}]: {detail}", shown.join(","));
        causes.push(StatusCause::new("FieldValueInvalid", "metadata.ownerReferences", message));
    }
}

fn finalizers_and_uid(
    resource: &Resource,
    metadata: &Value,
    old: Option<&Value>,
    uid: Option<&str>,
    causes: &mut Vec<StatusCause>,
) {
    let of = |metadata: &Value| -> Vec<String> {
        let list = metadata["finalizers"].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let now = of(metadata);
    now.iter().for_each(|name| qualified_name("metadata.finalizers", name, causes));
    let has = |name: &str| now.iter().any(|known| known == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(StatusCause::invalid("metadata.finalizers", now.clone(), detail));
    }
    if let Some(old) = old.filter(|old| super::is_deleting(old)) {
        let before = of(&old["metadata"]);
        let added: Vec<&String> = now.iter().filter(|name| !before.contains(name)).collect();
        if !added.is_empty() {
            let quoted: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                quoted.join(", ")
            );
            // The real server checks it twice, and reports it twice.
            causes.push(StatusCause::forbidden("metadata.finalizers", &detail));
            causes.push(StatusCause::forbidden("metadata.finalizers", &detail));
        }
    }
    causes.extend(uid.map(|uid| StatusCause::invalid("metadata.uid", uid, "field is immutable")));
    for (index, name) in now.iter().enumerate() {
        if resource.hooks.checks_finalizers && !is_good_finalizer(name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(StatusCause::invalid(format!("metadata.finalizers[{index}]"), name.as_str(), detail));
        }
    }
}

/// Checks that a text is a qualified name: a name with an optional domain, as labels, annotations and finalizers have.
fn qualified_name(field: &str, name: &str, causes: &mut Vec<StatusCause>) {
    for why in formats::qualified_name_problems(name) {
        causes.push(StatusCause::invalid(field, name, &why));
    }
}

fn owner_text(owner: &Value) -> String {
    let mut out = String::from("{");
    for name in ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"] {
        if let Some(value) = owner.get(name) {
            let comma = if out.len() > 1 { "," } else { "" };
            out.push_str(&format!("{comma}\"{name}\":{value}"));
        }
    }
    out + "}"
}

const MAX_ANNOTATIONS: usize = 256 << 10;

//! Validation of metadata.

use std::collections::BTreeSet;

use klient_core::{Quoted, StatusCause};
use serde_json::Value;

use super::formats::{self, Problems};
use crate::{builtin::NameRule, causes::Causes, registry::Resource};

/// Validates the metadata of an object. `old` is the stored object in an update.
pub(crate) fn check(resource: &Resource, object: &Value, old: Option<&Value>, uid: Option<&str>) -> Causes {
    let mut causes = Causes::new();
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
    managers(&metadata["managedFields"], &mut causes);
    if old.is_some() && resource.hooks.checks_prefix_again {
        check_prefix(resource.hooks.names, object, &mut causes);
    }
    causes
}

/// Validates the metadata of an object that is part of another one. Fields are those of the part.
pub(crate) fn check_embedded(metadata: &Value) -> Causes {
    let mut causes = Causes::new();
    prefix(NameRule::PathSegment, metadata, &mut causes);
    let text = |name: &str| metadata[name].as_str().filter(|text| !text.is_empty());
    if let Some(name) = text("name") {
        let problems = formats::segment_problems(name);
        causes.extend(problems.iter().map(|why| StatusCause::invalid("metadata.name", name, why)));
    }
    if let Some(namespace) = text("namespace") {
        let problems = formats::label_problems(namespace);
        causes.extend(problems.iter().map(|why| StatusCause::invalid("metadata.namespace", namespace, why)));
    }
    if let Some(generation) = metadata["generation"].as_i64().filter(|generation| *generation < 0) {
        let detail = "must be greater than or equal to 0";
        causes.add(|| StatusCause::invalid("metadata.generation", generation, detail));
    }
    labels(&metadata["labels"], &mut causes);
    annotations(&metadata["annotations"], &mut causes);
    owners(&metadata["ownerReferences"], &mut causes);
    finalizers(metadata, &mut causes);
    managers(&metadata["managedFields"], &mut causes);
    causes
}

/// Validates the entries of managers.
pub(crate) fn managers(entries: &Value, causes: &mut Causes) {
    for (index, entry) in entries.as_array().into_iter().flatten().enumerate() {
        let at = |name: &str| format!("metadata.managedFields[{index}].{name}");
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        if !matches!(text("operation"), "Apply" | "Update") {
            causes.add(|| StatusCause::invalid(at("operation"), text("operation"), "must be `Apply` or `Update`"));
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            causes.add(|| StatusCause::invalid(at("fieldsType"), text("fieldsType"), "must be `FieldsV1`"));
        }
        if text("manager").len() > MAX_MANAGER || !text("manager").bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            manager_problems(&at("manager"), text("manager"), causes);
        }
        if text("subresource").len() > MAX_SUBRESOURCE {
            causes.add(|| StatusCause::too_long(at("subresource"), MAX_SUBRESOURCE));
        }
    }
}

/// Validates the name of a manager.
pub(crate) fn manager_problems(field: &str, manager: &str, causes: &mut Causes) {
    if manager.len() > MAX_MANAGER {
        causes.add(|| StatusCause::too_long(field, MAX_MANAGER));
    }
    for (at, character) in manager.char_indices().filter(|(_, character)| !is_printable(*character)) {
        if causes.is_full() {
            return;
        }
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
        causes.add(|| StatusCause::invalid(field, manager, &detail));
    }
}

/// Returns whether Go's `unicode.IsPrint` has a character: a letter, mark, number, punctuation, symbol, or the space of ASCII.
///
/// Rust escapes exactly the others inside of a text, besides quotes and backslashes. It escapes combining marks
/// only at the beginning of a text, so the character follows another one. The version of Unicode may be another than Go's.
pub(crate) fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    let text = String::from_iter(['a', character]);
    text.escape_debug().count() == 2
}

/// Validates the prefix of generated names of an object by the rule for names.
pub(crate) fn check_prefix(rule: NameRule, object: &Value, causes: &mut Causes) {
    prefix(rule, &object["metadata"], causes);
}

fn prefix(rule: NameRule, metadata: &Value, causes: &mut Causes) {
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
        causes.add(|| StatusCause::invalid("metadata.generateName", prefix, &why));
    }
}

/// Returns warnings about valid metadata of a custom kind.
pub(crate) fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before: BTreeSet<&str> = old.into_iter().flat_map(super::finalizers).collect();
    let new: BTreeSet<&str> = super::finalizers(object).filter(|name| !before.contains(name)).collect();
    let mut told = Vec::new();
    for name in new {
        let mut tell = |why: &str| told.push(format!("metadata.finalizers: {}: {why}", Quoted(name)));
        formats::qualified_name_problems(name).iter().for_each(|why| tell(why));
        if !is_good_finalizer(name) {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            tell(&format!(
                "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
    told
}

fn is_good_finalizer(name: &str) -> bool {
    name.contains('/') || matches!(name, "orphan" | "foregroundDeletion" | "kubernetes")
}

fn name(resource: &Resource, metadata: &Value, causes: &mut Causes) {
    let name = metadata["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.add(|| StatusCause::required("metadata.name", "name or generateName is required"));
        return;
    }
    for why in name_problems(resource.hooks.names, name) {
        causes.add(|| StatusCause::invalid("metadata.name", name, &why));
    }
}

fn name_problems(rule: NameRule, name: &str) -> Problems {
    match rule {
        NameRule::Subdomain => formats::subdomain_problems(name),
        NameRule::Label => formats::label_problems(name),
        NameRule::PathSegment | NameRule::WholeSegment => formats::segment_problems(name),
    }
}

fn labels(labels: &Value, causes: &mut Causes) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        qualified_name("metadata.labels", key, causes);
        let value = value.as_str().unwrap_or_default();
        for why in formats::label_value_problems(value) {
            causes.add(|| StatusCause::invalid("metadata.labels", value, &why));
        }
    }
}

fn annotations(annotations: &Value, causes: &mut Causes) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        for why in formats::qualified_name_problems(&key.to_lowercase()) {
            causes.add(|| StatusCause::invalid("metadata.annotations", key.as_str(), &why));
        }
    }
    if size > MAX_ANNOTATIONS {
        causes.add(|| StatusCause::too_long("metadata.annotations", MAX_ANNOTATIONS));
    }
}

fn owners(owners: &Value, causes: &mut Causes) {
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
            let has_no_version = || name == "apiVersion" && (given.ends_with('/') || given.matches('/').count() > 1);
            if given.is_empty() || has_no_version() {
                causes.add(|| StatusCause::invalid(field(name), given, what));
            }
        }
        let is_event =
            owner["kind"] == "Event" && matches!(owner["apiVersion"].as_str(), Some("v1" | "events.k8s.io/v1"));
        if is_event {
            let detail =
                format!("{} is disallowed from being an owner", owner["apiVersion"].as_str().unwrap_or_default());
            causes.add(|| StatusCause::invalid("metadata.ownerReferences", owner.clone(), &detail));
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
        causes.add(|| StatusCause::new("FieldValueInvalid", "metadata.ownerReferences", message));
    }
}

fn finalizers_and_uid(
    resource: &Resource,
    metadata: &Value,
    old: Option<&Value>,
    uid: Option<&str>,
    causes: &mut Causes,
) {
    finalizers(metadata, causes);
    let now = finalizer_names(metadata);
    if let Some(old) = old.filter(|old| super::is_deleting(old)) {
        let before: BTreeSet<&str> = finalizer_names(&old["metadata"]).into_iter().collect();
        let added: BTreeSet<&str> = now.iter().copied().filter(|name| !before.contains(name)).collect();
        if !added.is_empty() {
            let quoted: Vec<String> = added.into_iter().map(|name| Quoted(name).to_string()).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                quoted.join(", ")
            );
            // The real server checks it twice, and reports it twice.
            causes.add(|| StatusCause::forbidden("metadata.finalizers", &detail));
            causes.add(|| StatusCause::forbidden("metadata.finalizers", &detail));
        }
    }
    causes.extend(uid.map(|uid| StatusCause::invalid("metadata.uid", uid, "field is immutable")));
    for (index, name) in now.iter().enumerate() {
        if resource.hooks.checks_finalizers && !is_good_finalizer(name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            causes.add(|| StatusCause::invalid(format!("metadata.finalizers[{index}]"), *name, detail));
        }
    }
}

fn finalizer_names(metadata: &Value) -> Vec<&str> {
    metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn finalizers(metadata: &Value, causes: &mut Causes) {
    let names = finalizer_names(metadata);
    names.iter().for_each(|name| qualified_name("metadata.finalizers", name, causes));
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.add(|| StatusCause::invalid("metadata.finalizers", names, detail));
    }
}

/// Checks that a text is a qualified name: a name with an optional domain, as labels, annotations and finalizers have.
fn qualified_name(field: &str, name: &str, causes: &mut Causes) {
    for why in formats::qualified_name_problems(name) {
        causes.add(|| StatusCause::invalid(field, name, &why));
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

/// The number of bytes that the name of a manager can have.
pub(crate) const MAX_MANAGER: usize = 128;
/// The number of bytes that the name of a subresource can have.
const MAX_SUBRESOURCE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_manager_has_only_printable_characters() {
        let problems = |manager: &str| -> Vec<String> {
            let mut causes = Causes::new();
            manager_problems("m", manager, &mut causes);
            causes.into_iter().map(|cause| cause.message).collect()
        };
        // Letters, a combining mark, quotes and a picture.
        assert_eq!(problems("a Ä e\u{301} \"'\\ € 🦀 漢"), [""; 0]);
        // No-break and zero-width spaces, a line separator, a soft hyphen, private use, and an unassigned character.
        for (character, code) in [
            ("\u{7f}", "007F"),
            ("\u{a0}", "00A0"),
            ("\u{ad}", "00AD"),
            ("\u{200b}", "200B"),
            ("\u{2028}", "2028"),
            ("\u{3000}", "3000"),
            ("\u{e000}", "E000"),
            ("\u{378}", "0378"),
            ("\u{e0001}", "E0001"),
        ] {
            let shown = if code.len() > 4 { "\\U000e0001".to_owned() } else { format!("\\u{}", code.to_lowercase()) };
            let shown = if code == "007F" { "\\x7f".to_owned() } else { shown };
            let expected = format!("Invalid value: \"é{shown}\": invalid character U+{code} (at position 2)");
            assert_eq!(problems(&format!("é{character}")), [expected]);
        }
    }
}

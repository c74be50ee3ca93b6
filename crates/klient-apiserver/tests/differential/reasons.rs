//! Reasons for which responses may differ. Each is a choice that the real server makes at random, or by the time of a request.
//!
//! - **Times.** Entries of managers are sorted by the second of their last write. A request that would change nothing but a time is
//!   written if it changes this order, too. That depends on the second in which it arrives: one server then has one more
//!   version of the object, and watches show one more event without another change.
//! - **The first undeclared field.** The real server visits the fields of an applied map in random order, and stops at the first one that
//!   the schema does not have. Another response may name another field of the same map, and problems of fields that were visited before.
//! - **The order of properties.** The real server validates the properties of a custom object and of a schema in random order, and reports
//!   their problems in that order.
//! - **The order of entries.** The real server validates the entries of maps in random order, and reports their problems in that order.
//! - **The order of forbidden sources.** The real server reports all but one source of an autoscaler's metric in random order.
//! - **The first item without a key.** The real server visits the fields of a strategic merge patch in random order, and stops at the first
//!   list item that lacks the key of its list.
//! - **The volumes of claims.** The real server adds a volume for each claim template of a stateful set, in random order, and reports their
//!   problems with their indexes.
//! - **A generated name.** It has a random end, also if it is invalid.
//! - **A stale object.** The real server patches the object of its cache first. If the object is deleted meanwhile, the response is that
//!   there is none, with the warnings about the patch.
//!
//! Two reasons are limits of the embedded server:
//!
//! - **A field of an alpha feature.** Kubernetes 1.37 replaced `resources` in `status.nodeAllocatableResourceClaimStatuses` of pods. The embedded
//!   server has the types of the newer version, and warns about the older field, which both servers drop.
//! - **Empty lists and maps that were sent.** The embedded server drops them when it decodes the request. The real server counts the generation
//!   of a network policy up if a request sends one that the stored policy does not have, and takes it for a change of an immutable config map.
//!
//! Other parts of responses are never compared, because they differ in every run or name Go's types. `script` replaces them:
//!
//! - UIDs, resource versions, tokens, hashes, entity tags, generated names, allocated ports and addresses: only whether two are the same.
//! - Times that no request has, and the order of managers' entries, which depends on times. `tests/it/apply_times` tests both.
//! - The patched object in messages about patches, the versions of a definition and the template of pods in messages about these, and
//!   what follows "is immutable after creation" and the like: the real server prints Go structs there, or their differences.
//! - The order of the causes of a conflict, and of the rules in a review of rules, which are random.

use std::collections::HashMap;

use serde_json::Value;

use crate::script::Comparable;

/// Returns whether two responses differ only for one of the reasons.
pub fn is_explained(real: &Comparable, ours: &Comparable) -> bool {
    if is_changed_by_empty_map(real, ours) {
        return true;
    }
    if (real.code, &real.content_type) != (ours.code, &ours.content_type) {
        return false;
    }
    if real.warnings != ours.warnings {
        return is_of_stale_object(real, ours) || warns_of_alpha_field(real, ours);
    }
    is_one_version_more(real, ours)
        || counts_empty_lists(real, ours)
        || has_other_generated_name(real, ours)
        || names_sibling(real, ours)
        || has_other_order(real, ours)
        || has_other_order_of_entries(real, ours)
        || (is_about_missing_key(real) && is_about_missing_key(ours))
}

/// Returns whether an item in a strategic merge patch lacks the key of its list.
fn is_about_missing_key(response: &Comparable) -> bool {
    let message = response.body["message"].as_str().unwrap_or_default();
    response.code == 500
        && message.starts_with("map: map[")
        && message.contains(" does not contain declared merge key: ")
}

/// Returns whether a deleted object was patched.
fn is_of_stale_object(real: &Comparable, ours: &Comparable) -> bool {
    let is_about_fields = |warning: &String| warning.starts_with("299 - \"unknown field ");
    real.code == 404 && real.body == ours.body && ours.warnings.is_empty() && real.warnings.iter().all(is_about_fields)
}

/// Returns whether only the embedded server warns about the field that a newer version of Kubernetes does not have.
fn warns_of_alpha_field(real: &Comparable, ours: &Comparable) -> bool {
    let is_other = |warning: &&String| {
        !(warning.starts_with("299 - \"unknown field \\\"status.nodeAllocatableResourceClaimStatuses[")
            && warning.ends_with("].resources\\\"\""))
    };
    real.body == ours.body && real.warnings.iter().eq(ours.warnings.iter().filter(is_other))
}

/// Returns whether network policies differ only in their generation.
fn counts_empty_lists(real: &Comparable, ours: &Comparable) -> bool {
    let without_generation = |response: &Comparable| {
        let mut body = response.body.clone();
        body["metadata"].as_object_mut().and_then(|metadata| metadata.remove("generation"));
        without_versions(&mut body);
        body
    };
    real.code == 200
        && real.body["kind"] == "NetworkPolicy"
        && real.body["metadata"]["generation"].as_i64() > ours.body["metadata"]["generation"].as_i64()
        && without_generation(real) == without_generation(ours)
}

/// Returns whether the real server refuses a change of an immutable config map's binary data that the embedded server does not see.
fn is_changed_by_empty_map(real: &Comparable, ours: &Comparable) -> bool {
    let is_binary = |cause: &&Value| {
        cause["field"] == "binaryData" && cause["message"] == "Forbidden: field is immutable when `immutable` is set"
    };
    let causes = |response: &Comparable| response.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let theirs = causes(real);
    let others = theirs.iter().filter(|cause| !is_binary(cause));
    real.code == 422
        && real.body["details"]["kind"] == "ConfigMap"
        && theirs.iter().any(|cause| is_binary(&cause))
        && (ours.code == 200 || ours.code == 422)
        && ours.body.get("binaryData").is_none()
        && others.eq(&causes(ours))
}

/// Returns whether both responses have a generated name, and differ only in its end.
fn has_other_generated_name(real: &Comparable, ours: &Comparable) -> bool {
    let split = |response: &Comparable| -> Option<(String, String)> {
        let (details, metadata) = (&response.body["details"], &response.body["metadata"]);
        let name =
            details["name"].as_str().or_else(|| metadata["generateName"].as_str().and(metadata["name"].as_str()))?;
        let (prefix, _) = name.split_at_checked(name.len().checked_sub(GENERATED)?)?;
        Some((prefix.to_owned(), response.body.to_string().replace(name, "NAME")))
    };
    real.body != ours.body && split(real).is_some() && split(real) == split(ours)
}

/// The length of the random end of a generated name.
const GENERATED: usize = 5;

/// Returns whether bodies differ in versions and in events without a change.
fn is_one_version_more(real: &Comparable, ours: &Comparable) -> bool {
    let plain = |response: &Comparable| {
        let mut body = response.body.clone();
        without_versions(&mut body);
        if let Value::Array(events) = &mut body {
            let mut last: HashMap<String, Value> = HashMap::new();
            events.retain(|event| {
                let object = &event["object"];
                last.insert(object["metadata"]["uid"].to_string(), object.clone()).as_ref() != Some(object)
            });
        }
        body
    };
    plain(real) == plain(ours) && (real.body != ours.body)
}

fn without_versions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(version)) = fields.get_mut("resourceVersion")
                && version.starts_with("RV-")
            {
                "RV".clone_into(version);
            }
            fields.values_mut().for_each(without_versions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_versions),
        _ => {}
    }
}

/// Returns whether both responses are about undeclared fields of the same maps. One of them may have other problems of fields that the
/// real server visits after the undeclared one.
fn names_sibling(real: &Comparable, ours: &Comparable) -> bool {
    let problems = |response: &Comparable| -> Option<(String, Vec<String>, Vec<String>)> {
        let message = response.body["message"].as_str()?;
        let (before, problems) = message.split_once("): ")?;
        before.starts_with("failed to create typed patch object (").then_some(())?;
        let (mut maps, mut others) = (Vec::new(), Vec::new());
        for problem in problems.strip_prefix("errors:\n").unwrap_or(problems).lines().map(str::trim_start) {
            match problem.strip_suffix(": field not declared in schema").and_then(|path| path.rsplit_once('.')) {
                Some((map, _)) => maps.push(map.to_owned()),
                None => others.push(problem.to_owned()),
            }
        }
        maps.sort();
        (!maps.is_empty()).then(|| (before.to_owned(), maps, others))
    };
    let (Some(real_problems), Some(our_problems)) = (problems(real), problems(ours)) else { return false };
    let are_in = |some: &[String], all: &[String]| some.iter().all(|one| all.contains(one));
    real.code == 500
        && (&real_problems.0, &real_problems.1) == (&our_problems.0, &our_problems.1)
        && (are_in(&real_problems.2, &our_problems.2) || are_in(&our_problems.2, &real_problems.2))
}

/// Returns whether both responses report the same problems, and only those of entries of maps, of properties of schemas and of volumes are
/// in another order.
fn has_other_order_of_entries(real: &Comparable, ours: &Comparable) -> bool {
    let is_entry = |field: &str| {
        let is_source = field.starts_with("spec.metrics[") && field.matches('.').count() == 2;
        let last = field.rsplit(['.', ']']).next().unwrap_or_default();
        let key = field.strip_suffix(']').and_then(|field| field.rsplit_once('[')).map_or("", |(_, key)| key);
        is_source
            || MAPS.contains(&last)
            || (!key.is_empty() && key.parse::<u64>().is_err())
            || field.contains(".properties[")
            || [VOLUMES, GATES].iter().any(|start| field.starts_with(start))
    };
    let causes = |response: &Comparable| -> Option<(Vec<String>, Vec<String>)> {
        let details = &response.body["details"];
        let causes = details["causes"].as_array()?;
        let others = causes.iter().filter(|cause| !cause["field"].as_str().is_some_and(is_entry));
        let mut all: Vec<Value> = causes.clone();
        if details["kind"] == "StatefulSet" {
            all.iter_mut().for_each(without_index);
        }
        let mut all: Vec<String> = all.iter().map(ToString::to_string).collect();
        all.sort();
        Some((all, others.map(ToString::to_string).collect()))
    };
    real.code == 422 && causes(real).is_some_and(|real| causes(ours).as_ref() == Some(&real))
}

/// Removes the index of a volume from the field of a cause.
fn without_index(cause: &mut Value) {
    let rest = cause["field"].as_str().and_then(|field| field.strip_prefix(VOLUMES)?.split_once(']'));
    if let Some((_, rest)) = rest {
        cause["field"] = Value::from(format!("{VOLUMES}{rest}"));
    }
}

/// The fields that are maps.
const MAPS: [&str; 10] = [
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "selector",
    "requests",
    "limits",
    "capacity",
    "allocatedResources",
    "allocatedResourceStatuses",
];
/// The scheduling gates of a pod. The real server looks for new ones in a map.
const GATES: &str = "spec.schedulingGates[";
/// The volumes of a pod template.
const VOLUMES: &str = "spec.template.spec.volumes[";

/// Returns whether both responses report the same problems of a custom object.
fn has_other_order(real: &Comparable, ours: &Comparable) -> bool {
    let problems = |response: &Comparable| -> Option<(String, Vec<String>, Vec<String>)> {
        let details = &response.body["details"];
        (details["group"] == "random.klient.invalid").then_some(())?;
        let (before, list) = response.body["message"].as_str()?.split_once(" is invalid: [")?;
        let mut list: Vec<String> = list.trim_end_matches(']').split(", ").map(str::to_owned).collect();
        let mut causes: Vec<String> = details["causes"].as_array()?.iter().map(ToString::to_string).collect();
        list.sort();
        causes.sort();
        Some((before.to_owned(), list, causes))
    };
    real.code == 422 && problems(real).is_some_and(|real| problems(ours).as_ref() == Some(&real))
}

//! Validation of pods, of changes to pods, and of their status.

use std::collections::HashSet;

use klient_core::{Quantity, StatusCause};
use serde_json::{Value, json};

use super::{
    container_statuses, containers,
    field::{Causes, Field},
    pod_spec, resize,
    same::is_same,
    scheduling, selectors, template,
};

/// Validates a pod.
pub(in crate::builtin) fn pod(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    metadata_and_spec(object, causes);
    let spec = Field::of(object, "spec");
    if let Some(old) = old {
        annotation_changes(object, old, causes);
        return update(object, old, causes);
    }
    if !spec.field("ephemeralContainers").is_empty() {
        spec.field("ephemeralContainers").forbidden("cannot be set on create", causes);
    }
    if !spec.field("nodeName").text().is_empty() && !spec.field("schedulingGates").is_empty() {
        spec.field("nodeName").forbidden("cannot be set until all schedulingGates have been cleared", causes);
    }
    template::profiles(&object["metadata"]["annotations"], &spec, causes);
}

fn metadata_and_spec(object: &Value, causes: &mut Causes) {
    let (metadata, spec) = (Field::of(object, "metadata"), Field::of(object, "spec"));
    template::of_pod(&metadata.field("annotations"), &spec, causes);
    pod_spec::validate(&spec, Some(object), causes);
    if spec.field("serviceAccountName").text().is_empty() {
        for volume in spec.field("volumes").items() {
            let projected = volume.field("projected");
            for source in projected.field("sources").items() {
                if let Some(token) = source.set("serviceAccountToken") {
                    token.forbidden("must not be specified when serviceAccountName is not set", causes);
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        spec.field(list).items().for_each(|item| containers::untrimmed_image(&item, causes));
    }
}

/// Validates a change of the annotations that have a meaning for pods.
fn annotation_changes(object: &Value, old: &Value, causes: &mut Causes) {
    let metadata = Field::of(object, "metadata");
    let annotations = metadata.field("annotations");
    let before = &old["metadata"]["annotations"];
    let is_special = |key: &str| key.starts_with(template::APP_ARMOR) || key == template::MIRROR;
    let what = |key: &str| {
        if key == template::MIRROR { "mirror pod annotation" } else { "AppArmor annotations" }
    };
    for (key, value) in before.as_object().into_iter().flatten().filter(|(key, _)| is_special(key)) {
        if annotations.value.get(key) != Some(value) {
            annotations.key(key).forbidden(&format!("may not remove or update {}", what(key)), causes);
        }
    }
    for (key, value) in annotations.entries().filter(|(key, _)| is_special(key)) {
        if before.get(key).is_none() {
            value.forbidden(&format!("may not add {}", what(key)), causes);
        }
    }
}

/// Validates a change of a pod.
fn update(object: &Value, old: &Value, causes: &mut Causes) {
    let (spec, old) = (Field::of(object, "spec"), &old["spec"]);
    for name in ["containers", "initContainers"] {
        let list = spec.field(name);
        if list.list().len() != old[name].as_array().map_or(0, Vec::len) {
            return list.forbidden("pod updates may not add or remove containers", causes);
        }
        for container in list.items() {
            container.field("image").not_empty(causes);
            containers::untrimmed_image(&container, causes);
        }
    }
    let deadline = spec.field("activeDeadlineSeconds");
    match (deadline.int(), old["activeDeadlineSeconds"].as_i64()) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            return deadline.invalid(&format!("must be between 0 and {}, inclusive", i32::MAX), causes);
        }
        (Some(new), Some(old)) if old < new => {
            return deadline.invalid("must be less than or equal to previous value", causes);
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            deadline.invalid_as(Value::Null, detail, causes);
        }
        _ => {}
    }
    tolerations(&spec.field("tolerations"), &old["tolerations"], causes);
    gates(&spec.field("schedulingGates"), &old["schedulingGates"], causes);
    let mut kept = without_mutable(spec.value, old);
    if old["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        gated(&spec, old, &mut kept, causes);
    }
    if !is_same(&kept, old) {
        spec.forbidden(&format!("pod updates may not change fields other than {MUTABLE}"), causes);
    }
}

fn tolerations(tolerations: &Field<'_, '_>, old: &Value, causes: &mut Causes) {
    let without_time = |toleration: &Value| {
        let mut toleration = toleration.clone();
        drop(toleration.as_object_mut().and_then(|fields| fields.remove("tolerationSeconds")));
        toleration
    };
    let now: Vec<Value> = tolerations.list().iter().map(without_time).collect();
    if old.as_array().into_iter().flatten().any(|old| !now.contains(&without_time(old))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return tolerations.forbidden(detail, causes);
    }
    scheduling::tolerations(tolerations, causes);
}

fn gates(gates: &Field<'_, '_>, old: &Value, causes: &mut Causes) {
    let known = |name: &Value| old.as_array().into_iter().flatten().any(|old| old["name"] == *name);
    for (index, gate) in gates.items().enumerate() {
        let name = gate.field("name");
        // A name that is given several times is reported once, at its last place.
        let is_given_later = gates.list()[index + 1..].iter().any(|later| later["name"] == *name.value);
        if !is_given_later && !known(name.value) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            name.forbidden(&detail, causes);
        }
    }
}

/// Validates what can change in a pod that is not scheduled because of gates.
fn gated(spec: &Field<'_, '_>, old: &Value, kept: &mut Value, causes: &mut Causes) {
    let selector = spec.field("nodeSelector");
    let before = old["nodeSelector"].as_object().into_iter().flatten();
    if before.into_iter().any(|(key, value)| selector.value.get(key) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        selector.invalid_as(selector.value.clone(), detail, causes);
    }
    kept["nodeSelector"] = old["nodeSelector"].clone();
    let affinity = spec.field("affinity");
    let of_node = affinity.field("nodeAffinity");
    let required = of_node.field(scheduling::REQUIRED);
    let terms = required.field("nodeSelectorTerms");
    let before = &old["affinity"]["nodeAffinity"];
    let old_terms = before[scheduling::REQUIRED]["nodeSelectorTerms"].as_array().map_or(&[][..], Vec::as_slice);
    if !is_same(of_node.value, before) && !old_terms.is_empty() {
        if old_terms.len() != terms.list().len() {
            let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
            let shown: Vec<String> = terms.list().iter().map(selectors::term_text).collect();
            let shown = if shown.is_empty() { "null".to_owned() } else { format!("[{}]", shown.join(",")) };
            terms.invalid_text(&shown, detail, causes);
        } else {
            for (term, before) in terms.items().zip(old_terms) {
                if !has_only_additions(term.value, before) {
                    let detail = "only additions are allowed (no mutations or deletions)";
                    term.invalid_text(&selectors::term_text(term.value), detail, causes);
                }
            }
        }
    }
    with_node_affinity(kept, before, old["affinity"].is_object());
}

/// Replaces the node affinity of a pod. An affinity that is empty then is removed, unless it is kept.
pub(super) fn with_node_affinity(spec: &mut Value, affinity: &Value, keeps_empty: bool) {
    let Value::Object(fields) = spec else { return };
    if !affinity.is_null() {
        let all = fields.entry("affinity").or_insert_with(|| json!({}));
        all["nodeAffinity"] = affinity.clone();
    } else if let Some(Value::Object(all)) = fields.get_mut("affinity") {
        all.remove("nodeAffinity");
        if all.is_empty() && !keeps_empty {
            fields.remove("affinity");
        }
    }
}

fn has_only_additions(new: &Value, old: &Value) -> bool {
    let list = |term: &Value, name: &str| term[name].as_array().cloned().unwrap_or_default();
    let names = ["matchExpressions", "matchFields"];
    if names.iter().all(|name| list(old, name).is_empty()) && names.iter().any(|name| !list(new, name).is_empty()) {
        return false;
    }
    names.iter().all(|name| list(new, name).starts_with(&list(old, name)))
}

/// Returns the requested pod with its mutable fields as stored.
fn without_mutable(new: &Value, old: &Value) -> Value {
    let mut new = new.clone();
    let Value::Object(fields) = &mut new else { return new };
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        match old.get(name) {
            Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
            None => drop(fields.remove(name)),
        }
    }
    for list in ["containers", "initContainers"] {
        let items = fields.get_mut(list).and_then(Value::as_array_mut);
        for (index, container) in items.into_iter().flatten().enumerate() {
            container["image"] = old[list][index]["image"].clone();
        }
    }
    let grace = |spec: &Value| spec["terminationGracePeriodSeconds"].as_i64();
    // A negative value may be corrected.
    if grace(old).is_some_and(|grace| grace < 0) && grace(&new) == Some(1) {
        new["terminationGracePeriodSeconds"] = json!(grace(old));
    }
    new
}

/// Validates the status of a pod.
pub(in crate::builtin) fn pod_status(object: &Value, old: &Value, causes: &mut Causes) {
    annotation_changes(object, old, causes);
    let (metadata, spec) = (Field::of(object, "metadata"), Field::of(object, "spec"));
    template::of_pod(&metadata.field("annotations"), &spec, causes);
    let status = Field::of(object, "status");
    for condition in status.field("conditions").items() {
        let generation = condition.field("observedGeneration");
        if generation.number() < 0 {
            generation.invalid("must be a non-negative integer", causes);
        }
        let kind = condition.named("type", "Type");
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind.text()) {
            kind.qualified_name(causes);
        }
    }
    let nominated = status.field("nominatedNodeName");
    if nominated.text() != old["status"]["nominatedNodeName"].as_str().unwrap_or_default()
        && !nominated.text().is_empty()
    {
        nominated.subdomain(causes);
        if old["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty()) {
            nominated.forbidden("may not be set on pods that are already bound to a node", causes);
        }
    }
    let generation = status.field("observedGeneration");
    if generation.number() < 0 {
        generation.invalid("must be a non-negative integer", causes);
    }
    status.field("qosClass").immutable(&old["status"]["qosClass"], causes);
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        restarts(&status.field(list), list, old, causes);
    }
    claim_statuses(&status.field("resourceClaimStatuses"), &spec.field("resourceClaims"), causes);
    extended_claim(&status.field("extendedResourceClaimStatus"), spec.value, causes);
    pod_addresses(&status, old, causes);
    container_statuses::container_statuses(&status, &spec, causes);
}

/// Validates the claim for the extended resources of a pod.
fn extended_claim(status: &Field<'_, '_>, spec: &Value, causes: &mut Causes) {
    if !status.is_set() {
        return;
    }
    let mappings = status.field("requestMappings");
    if mappings.is_empty() {
        mappings.required("at least one request mapping is required", causes);
    }
    // Of containers with the same name, the last one counts.
    let lists = ["containers", "initContainers"].map(|list| spec[list].as_array().map_or(&[][..], Vec::as_slice));
    let container = |name: &str| lists.iter().find_map(|list| list.iter().rfind(|container| container["name"] == name));
    let mut seen = HashSet::new();
    for mapping in mappings.items() {
        let parts = ["containerName", "resourceName", "requestName"].map(|name| mapping.field(name));
        let [owner, resource, request] = &parts;
        match container(owner.text()) {
            Some(container) if container["resources"]["requests"].get(resource.text()).is_some() => {}
            Some(_) => resource.invalid(
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests",
                causes,
            ),
            None => owner.invalid(
                "must match the name of an entry in spec.initContainers.name or spec.containers.name",
                causes,
            ),
        }
        // The real server leaves out the list and the index here.
        status.field("requestName").with(request.value).label(causes);
        if !seen.insert([owner.text(), resource.text(), request.text()]) {
            parts.iter().for_each(|part| part.duplicate(causes));
        }
    }
    let claim = status.field("resourceClaimName");
    if claim.text().is_empty() {
        claim.required("", causes);
    } else {
        claim.subdomain(causes);
    }
}

fn claim_statuses(statuses: &Field<'_, '_>, claims: &Field<'_, '_>, causes: &mut Causes) {
    let mut names: Vec<&str> = Vec::new();
    for status in statuses.items() {
        let name = status.field("name");
        if !claims.list().iter().any(|claim| claim["name"] == *name.value) {
            name.invalid("must match the name of an entry in `spec.resourceClaims`", causes);
        }
        if names.contains(&name.text()) {
            name.duplicate(causes);
        }
        names.push(name.text());
        if let Some(claim) = status.set("resourceClaimName") {
            claim.subdomain(causes);
        }
    }
}

/// Validates that containers which have ended run again only if they may.
fn restarts(statuses: &Field<'_, '_>, list: &str, old: &Value, causes: &mut Causes) {
    for (index, before) in old["status"][list].as_array().into_iter().flatten().enumerate() {
        let terminated = &before["state"]["terminated"];
        if !terminated.is_object() {
            continue;
        }
        let now = statuses.list().iter().find(|status| status["name"] == before["name"]);
        let is_running = now.is_some_and(|status| !status["state"]["terminated"].is_object());
        let code = terminated["exitCode"].as_i64().unwrap_or_default();
        if is_running && !may_restart(list, &before["name"], code, &old["spec"]) {
            let detail = "may not be transitioned to non-terminated state";
            statuses.index(index).field("state").forbidden(detail, causes);
        }
    }
}

fn may_restart(list: &str, name: &Value, code: i64, spec: &Value) -> bool {
    let containers = match list {
        "containerStatuses" => &spec["containers"],
        "initContainerStatuses" => &spec["initContainers"],
        _ => return false,
    };
    let own = containers.as_array().into_iter().flatten().find(|container| container["name"] == *name);
    let Some(own) = own else { return false };
    for rule in own["restartPolicyRules"].as_array().into_iter().flatten() {
        let codes = &rule["exitCodes"];
        let is_in = codes["values"].as_array().is_some_and(|values| values.contains(&json!(code)));
        if is_in == (codes["operator"] == "In") {
            return rule["action"] == "Restart";
        }
    }
    match own["restartPolicy"].as_str().or_else(|| spec["restartPolicy"].as_str()) {
        Some("Always") => true,
        Some("OnFailure") => code != 0,
        _ => false,
    }
}

fn pod_addresses(status: &Field<'_, '_>, old: &Value, causes: &mut Causes) {
    for (list, own) in [("podIPs", "podIP"), ("hostIPs", "hostIP")] {
        let addresses = status.field(list);
        if list == "hostIPs"
            && let Some(first) = addresses.items().next()
            && first.field("ip").text() != status.field(own).text()
        {
            first.field("ip").invalid("must be equal to `hostIP`", causes);
        }
        let known = old["status"][list].as_array().into_iter().flatten();
        let before: Vec<&str> = known.filter_map(|known| known["ip"].as_str()).collect();
        for address in addresses.items() {
            address.with(&address.value["ip"]).address(&before, causes);
        }
        if addresses.list().len() > 1 {
            let text = |item: &Value| item["ip"].as_str().unwrap_or_default().to_owned();
            let invalid = addresses.list().iter().position(|item| super::addresses::parse(&text(item)).is_none());
            if let Some(index) = invalid {
                let shown = text(&addresses.list()[index]);
                let detail = format!("failed to check for dual stack with error:invalid IP[{index}]: {shown}");
                addresses.internal(&detail, causes);
            }
            let is_six = |item: &Value| text(item).contains(':');
            let count = addresses.list().iter().filter(|item| is_six(item)).count();
            let is_dual = invalid.is_none() && count != 0 && count != addresses.list().len();
            if !is_dual || addresses.list().len() > 2 {
                let shown: Vec<String> =
                    addresses.list().iter().map(|item| format!("{{\"IP\":{}}}", Value::from(text(item)))).collect();
                let detail = "may specify no more than one IP for each IP family";
                addresses.invalid_text(&format!("[{}]", shown.join(",")), detail, causes);
            }
        }
    }
}

/// Validates the containers that are added to a running pod, and new resources of a pod.
pub(in crate::builtin) fn pod_part(part: &str, object: &Value, old: &Value, causes: &mut Causes) {
    metadata_and_spec(object, causes);
    if part == "resize" {
        return resize::validate(object, old, causes);
    }
    annotation_changes(object, old, causes);
    if part != "ephemeralcontainers" {
        return;
    }
    if old["metadata"]["annotations"].get(template::MIRROR).is_some() {
        // These pods have no other causes.
        causes.clear();
        let detail = "static pods do not support ephemeral containers";
        return causes.add(|| StatusCause::forbidden(template::NOWHERE, detail));
    }
    let list = |pod: &Value| pod["spec"]["ephemeralContainers"].as_array().cloned().unwrap_or_default();
    let new = list(object);
    for before in list(old) {
        let name = before["name"].as_str().unwrap_or_default();
        let detail = match new.iter().find(|container| container["name"] == before["name"]) {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(container) if !is_same(container, &before) => {
                format!("existing ephemeral containers {name:?} may not be changed\n")
            }
            Some(_) => continue,
        };
        causes.add(|| StatusCause::forbidden("spec.ephemeralContainers", &detail));
    }
}

/// Returns the quality of service class of a pod. The resources of the pod itself count, if it has any.
pub(crate) fn qos_class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let lists = ["containers", "initContainers"];
    let of_containers = || lists.iter().flat_map(|list| spec[*list].as_array().into_iter().flatten());
    let parts: Vec<&Value> = match spec.get("resources") {
        Some(resources) => vec![resources],
        None => of_containers().map(|container| &container["resources"]).collect(),
    };
    let amount = |resources: &Value, kind: &str, name: &str| {
        let parsed = resources[kind][name].as_str().and_then(|text| text.parse::<Quantity>().ok());
        parsed.filter(|amount| !amount.is_zero() && !amount.is_negative())
    };
    let any = |kind: &str, name: &str| parts.iter().any(|resources| amount(resources, kind, name).is_some());
    let is_set = |kind: &str| any(kind, "cpu") || any(kind, "memory");
    if !is_set("requests") && !is_set("limits") {
        return "BestEffort";
    }
    let is_guaranteed = parts.iter().all(|resources| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(resources, "limits", name);
            limit.is_some() && amount(resources, "requests", name) == limit
        })
    });
    if is_guaranteed { "Guaranteed" } else { "Burstable" }
}

const MUTABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

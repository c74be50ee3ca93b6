//! Validation of the resources of containers and pods.

use std::collections::{BTreeSet, HashMap, HashSet};

use klient_core::{Quantity, StatusCause};
use serde_json::Value;

use super::field::{Causes, Field};
use crate::metadata::formats;

/// The names of resources that a list may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Container,
    Pod,
    /// Any resource that has a name.
    Any,
}

/// Validates requests, limits and claims.
pub(super) fn requirements(resources: &Field<'_, '_>, scope: Scope, claim_names: &BTreeSet<&str>, causes: &mut Causes) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    let (mut has_basic, mut has_huge_pages) = (false, false);
    for (name, amount) in limits.entries() {
        entry(name, &amount, scope, causes);
        has_basic |= matches!(name, "cpu" | "memory");
        has_huge_pages |= is_huge_page(name);
    }
    for (name, amount) in requests.entries() {
        name_problems(name, &amount, scope, causes);
        value(name, &amount, causes);
        against_limit(name, &amount, &limits, &requests, causes);
        huge_pages(name, &amount, causes);
        has_basic |= matches!(name, "cpu" | "memory");
        has_huge_pages |= is_huge_page(name);
    }
    if has_huge_pages && !has_basic {
        resources.forbidden("HugePages require cpu or memory", causes);
    }
    claims(&resources.field("claims"), claim_names, causes);
}

/// Validates a list of amounts, such as a pod's overhead. Messages name it as the limits of a container.
pub(super) fn overhead(overhead: &Field<'_, '_>, causes: &mut Causes) {
    let (mut has_basic, mut has_huge_pages) = (false, false);
    for (name, amount) in overhead.entries() {
        // The field of the struct that Go validates.
        let limits = overhead.named("", "limits");
        let shown = limits.with(overhead.value);
        let shown = shown.key(name);
        entry(name, &shown.with(amount.value), Scope::Container, causes);
        has_basic |= matches!(name, "cpu" | "memory");
        has_huge_pages |= is_huge_page(name);
    }
    if has_huge_pages && !has_basic {
        overhead.forbidden("HugePages require cpu or memory", causes);
    }
}

fn entry(name: &str, amount: &Field<'_, '_>, scope: Scope, causes: &mut Causes) {
    name_problems(name, amount, scope, causes);
    value(name, amount, causes);
    huge_pages(name, amount, causes);
}

/// Validates the amount of a resource.
pub(super) fn value(name: &str, amount: &Field<'_, '_>, causes: &mut Causes) {
    let Some(quantity) = amount.quantity() else { return };
    if quantity.is_negative() {
        amount.invalid("must be greater than or equal to 0", causes);
    }
    if is_integer(name) && quantity.milli_value() % 1000 != 0 {
        amount.invalid("must be an integer", causes);
    }
}

/// Validates the name of a resource.
pub(super) fn name_problems(name: &str, amount: &Field<'_, '_>, scope: Scope, causes: &mut Causes) {
    let before = causes.len();
    for problem in formats::qualified_name_problems(name) {
        amount.invalid_as(name, &problem, causes);
    }
    let has_domain = name.contains('/');
    if causes.len() == before && !has_domain && !is_standard(name) {
        amount.invalid_as(name, "must be a standard resource type or fully qualified", causes);
    }
    match scope {
        Scope::Container if !has_domain => {
            if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(name) {
                amount.invalid_as(name, "must be a standard resource for containers", causes);
            }
        }
        Scope::Container => {
            if !is_native(name) && !is_extended(name) {
                amount.invalid_as(name, "doesn't follow extended resource name standard", causes);
            }
        }
        Scope::Pod => {
            if causes.len() == before && !matches!(name, "cpu" | "memory") && !is_huge_page(name) {
                amount.with(&Value::from(name)).not_supported(&["cpu", "hugepages-", "memory"], causes);
            }
        }
        Scope::Any => {}
    }
}

/// Validates the name of a container's resource.
pub(super) fn container_name(name: &Field<'_, '_>, causes: &mut Causes) {
    name_problems(name.text(), name, Scope::Container, causes);
}

fn against_limit(
    name: &str,
    amount: &Field<'_, '_>,
    limits: &Field<'_, '_>,
    requests: &Field<'_, '_>,
    causes: &mut Causes,
) {
    let can_overcommit = can_overcommit(name);
    let limit = limits.key(name);
    let (Some(asked), Some(most)) = (amount.quantity(), limit.quantity()) else {
        if !limit.is_set() && !can_overcommit {
            limits.required("Limit must be set for non overcommitable resources", causes);
        }
        return;
    };
    if asked != most && !can_overcommit {
        let detail = format!("must be equal to {name} limit of {}", limit.text());
        requests.invalid_as(amount.text(), &detail, causes);
    } else if asked > most {
        let detail = format!("must be less than or equal to {name} limit of {}", limit.text());
        requests.invalid_as(amount.text(), &detail, causes);
    }
}

fn huge_pages(name: &str, amount: &Field<'_, '_>, causes: &mut Causes) {
    let (Some(size), Some(quantity)) = (name.strip_prefix("hugepages-"), amount.quantity()) else { return };
    let size = size.parse::<Quantity>().ok().filter(|size| !size.is_negative() && !size.is_zero());
    let is_multiple = size
        .filter(|size| size.milli_value() % 1000 == 0)
        .is_some_and(|size| size.value() != 0 && quantity.value() % size.value() == 0);
    if !is_multiple {
        amount.invalid(&format!("{} is not positive integer multiple of {name}", amount.text()), causes);
    }
}

fn claims(claims: &Field<'_, '_>, claim_names: &BTreeSet<&str>, causes: &mut Causes) {
    let mut names: HashSet<String> = HashSet::new();
    // The numbers of requests by what is before the first slash.
    let mut requests: HashMap<String, usize> = HashMap::new();
    for claim in claims.items() {
        if causes.is_full() {
            return;
        }
        let (name, request) = (claim.field("name").text(), claim.field("request"));
        if name.is_empty() {
            claim.required("", causes);
            continue;
        }
        if names.contains(name) {
            claim.duplicate_as(name, causes);
        } else {
            let mut key = name.to_owned();
            if !request.text().is_empty() {
                request.label(causes);
                key = format!("{name}/{}", request.text());
            }
            if names.contains(&key) {
                claim.duplicate_as(key.as_str(), causes);
            } else if request.text().is_empty() {
                (0..requests.get(name).copied().unwrap_or_default()).for_each(|_| claim.duplicate_as(name, causes));
            }
            if let Some((first, _)) = key.split_once('/') {
                *requests.entry(first.to_owned()).or_default() += 1;
            }
            names.insert(key);
        }
        if !claim_names.contains(name) {
            causes.add(|| {
                let known: Vec<&str> = claim_names.iter().copied().collect();
                let rest =
                    if known.is_empty() { " which is empty".to_owned() } else { format!(": {}", known.join(", ")) };
                let mut cause = StatusCause::not_found(claim.path(), name);
                cause.message.push_str(&format!(": must be one of the names in pod.spec.resourceClaims{rest}"));
                cause
            });
        }
    }
}

/// Validates the resources of a pod, and that they cover those of its containers.
pub(super) fn of_pod(spec: &Field<'_, '_>, claim_names: &BTreeSet<&str>, causes: &mut Causes) {
    let Some(resources) = spec.set("resources") else { return };
    if spec.field("os").field("name").text() == "windows" {
        return resources.forbidden("may not be set for a windows pod", causes);
    }
    if resources.field("claims").is_set() {
        resources.field("claims").forbidden("claims may not be set for Resources at pod-level", causes);
    }
    requirements(&resources, Scope::Pod, claim_names, causes);
    let requests = resources.field("requests");
    for (name, amount) in requests.entries() {
        let total = aggregate(spec.value, "requests", name);
        if let (Some(own), Some(total)) = (amount.quantity(), total)
            && total > own
        {
            let detail = format!("must be greater than or equal to aggregate container requests of {total}");
            amount.invalid(&detail, causes);
        }
    }
    let limits = resources.field("limits");
    for (name, amount) in limits.entries().filter(|(name, _)| is_huge_page(name)) {
        if let (Some(own), Some(total)) = (amount.quantity(), aggregate(spec.value, "limits", name))
            && total > own
        {
            let detail = format!("must be greater than or equal to aggregate container limits of {total}");
            amount.invalid(&detail, causes);
        }
    }
    for (index, container) in spec.field("containers").list().iter().enumerate() {
        for (name, limit) in container["resources"]["limits"].as_object().into_iter().flatten() {
            let own = limits.key(name);
            let parsed = limit.as_str().and_then(|text| text.parse::<Quantity>().ok());
            if let (Some(limit), Some(most)) = (parsed, own.quantity())
                && limit > most
            {
                let at = resources.field("containers");
                let at = at.index(index);
                let at = at.key(name);
                let at = at.field("limits");
                let detail = format!("must be less than or equal to pod limits of {}", own.text());
                at.invalid_as(limit.to_string(), &detail, causes);
            }
        }
    }
}

/// Returns the names of the resources that the containers of a pod have in a list, such as `requests`.
pub(crate) fn resource_names(spec: &Value, list: &str) -> Vec<String> {
    let containers = ["containers", "initContainers"].iter().filter_map(|sort| spec[*sort].as_array()).flatten();
    let mut names: Vec<String> = containers
        .flat_map(|container| {
            container["resources"][list].as_object().into_iter().flatten().map(|(name, _)| name.clone())
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the amount that the containers of a pod need together.
pub(crate) fn aggregate(spec: &Value, list: &str, name: &str) -> Option<Quantity> {
    let of = |container: &Value| -> Option<Quantity> {
        container["resources"][list][name].as_str().and_then(|text| text.parse().ok())
    };
    let containers = |list: &str| spec[list].as_array().map_or(&[][..], Vec::as_slice);
    let added = |sum: Option<Quantity>, amount: &Quantity| Some(sum.map_or_else(|| *amount, |sum| sum + *amount));
    let mut total: Option<Quantity> = None;
    for amount in containers("containers").iter().filter_map(of) {
        total = added(total, &amount);
    }
    let mut sidecars: Option<Quantity> = None;
    let mut most: Option<Quantity> = None;
    for container in containers("initContainers") {
        let Some(mut amount) = of(container) else { continue };
        if container["restartPolicy"] == "Always" {
            total = added(total, &amount);
            sidecars = added(sidecars, &amount);
            amount = sidecars?;
        } else if let Some(sidecars) = &sidecars {
            amount += *sidecars;
        }
        most = most.into_iter().chain([amount]).max();
    }
    total.into_iter().chain(most).max()
}

/// Returns whether more of a resource can be asked for than there is.
pub(super) fn can_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && formats::qualified_name_problems(&format!("requests.{name}")).is_empty()
}

fn is_integer(name: &str) -> bool {
    COUNTS.contains(&name) || is_extended(name)
}

/// Returns whether a resource is one of Kubernetes itself.
pub(super) fn is_standard(name: &str) -> bool {
    COUNTS.contains(&name) || AMOUNTS.contains(&name) || name.starts_with("requests.hugepages-") || is_huge_page(name)
}

/// Resources that are counted.
const COUNTS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// Resources that are measured.
const AMOUNTS: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
];

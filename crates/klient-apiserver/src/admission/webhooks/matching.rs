//! Which hooks are called for a request, and in which version.

use std::sync::Arc;

use klient_core::{GroupResource, Status};
use serde_json::Value;

use super::{
    conditions,
    hook::{Hook, Rule, Selector},
};
use crate::{
    Result,
    admission::{Attributes, Operation},
    registry::Resource,
    server::Core,
};

/// How a hook matched: in the version of the request, or in another version of the resource.
pub(in crate::admission) enum Match {
    Requested,
    Equivalent(Arc<Resource>),
}

/// Returns how a hook matches a request, if it does. Errors of selectors count only if a rule matches.
pub(in crate::admission) fn of_hook(core: &Arc<Core>, hook: &Hook, request: &Attributes<'_>) -> Result<Option<Match>> {
    let namespaces = in_namespace(core, &hook.namespaces, request);
    let objects = object_matches(&hook.objects, request);
    if matches!(namespaces, Ok(false)) || matches!(objects, Ok(false)) {
        return Ok(None);
    }
    let Some(found) = by_rules(core, hook, request) else { return Ok(None) };
    namespaces?;
    objects?;
    if !hook.conditions.is_empty() && !conditions::hold(core, hook, request)? {
        return Ok(None);
    }
    Ok(Some(found))
}

fn by_rules(core: &Core, hook: &Hook, request: &Attributes<'_>) -> Option<Match> {
    let resource = request.resource;
    if hook.rules.iter().any(|rule| rule.matches(request, resource)) {
        return Some(Match::Requested);
    }
    if !hook.is_equivalent {
        return None;
    }
    let groups = core.registry.groups();
    let others = || {
        let all = groups.versions.iter().flat_map(|version| &version.resources);
        all.filter(|other| other.table == resource.table && other.kind == resource.kind)
            .filter(|other| (&other.group, &other.version) != (&resource.group, &resource.version))
            .filter(|other| request.subresource.is_empty() || other.subresource(request.subresource).is_some())
    };
    // Earlier rules decide first.
    let found = hook.rules.iter().find_map(|rule| others().find(|other| rule.matches(request, other)));
    found.map(|other| Match::Equivalent(Arc::clone(other)))
}

impl Rule {
    pub(in crate::admission) fn matches(&self, request: &Attributes<'_>, resource: &Resource) -> bool {
        let has = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        let is_in_scope = match self.scope.as_str() {
            "Namespaced" => !is_namespace && !request.namespace.is_empty(),
            "Cluster" => is_namespace || request.namespace.is_empty(),
            _ => true,
        };
        let is_resource = |pattern: &String| {
            let (plural, part) = pattern.split_once('/').unwrap_or((pattern, ""));
            (plural == "*" || plural == resource.plural) && (part == "*" || part == request.subresource)
        };
        is_in_scope
            && has(&self.operations, request.operation.name())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && self.resources.iter().any(is_resource)
    }
}

/// Returns whether the namespace of a request has the labels that a selector wants. Cluster-scoped objects match.
fn in_namespace(core: &Core, selector: &Selector, request: &Attributes<'_>) -> Result<bool> {
    if request.namespace.is_empty() && request.resource.plural != "namespaces" {
        return Ok(true);
    }
    let selector = usable(selector)?;
    if selector.is_everything() {
        return Ok(true);
    }
    let writes_namespace = request.resource.plural == "namespaces"
        && request.subresource.is_empty()
        && matches!(request.operation, Operation::Create | Operation::Update);
    if writes_namespace {
        return Ok(request.object.as_ref().is_some_and(|object| has_labels(selector, object)));
    }
    let Some(namespace) = core.store.get("namespaces", &request.namespace) else {
        return Err(Box::new(Status::not_found(&GroupResource::new("", "namespaces"), &request.namespace)));
    };
    Ok(has_labels(selector, &namespace.value()))
}

/// Returns whether the new or the stored object has the labels that a selector wants.
fn object_matches(selector: &Selector, request: &Attributes<'_>) -> Result<bool> {
    let selector = usable(selector)?;
    let has = |object: Option<&Value>| object.is_some_and(|object| has_labels(selector, object));
    Ok(selector.is_everything() || has(request.object.as_ref()) || has(request.old))
}

fn usable(selector: &Selector) -> Result<&klient_core::LabelSelector> {
    selector.as_ref().map_err(|why| Box::new(Status::internal_error(why)))
}

fn has_labels(selector: &klient_core::LabelSelector, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.matches(|key| labels.get(key)?.as_str())
}

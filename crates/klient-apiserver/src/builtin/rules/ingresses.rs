//! Validation of ingresses and their classes.

use serde_json::Value;

use super::{
    addresses, batch,
    field::{Causes, Field},
    services,
};
use crate::{
    builtin::NameRule,
    metadata::{self, formats},
};

/// Validates an ingress.
pub(in crate::builtin) fn ingress(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let rules = spec.field("rules");
    if rules.is_empty() && !spec.field("defaultBackend").is_set() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        spec.invalid_as(rules.value.clone(), detail, causes);
    }
    if let Some(default) = spec.set("defaultBackend") {
        backend(&default, causes);
    }
    let allows_wildcards = old.is_some_and(has_invalid_wildcard);
    for rule in rules.items() {
        let host = rule.field("host");
        let has_wildcard = host.text().contains('*');
        if !host.text().is_empty() {
            if addresses::parse(host.text()).is_some() {
                host.invalid("must be a DNS name, not an IP address", causes);
            }
            if has_wildcard {
                host.problems(formats::wildcard_problems(host.text()), causes);
            } else {
                host.subdomain(causes);
            }
        }
        if !has_wildcard || !allows_wildcards {
            http(&rule, causes);
        }
    }
    tls(&spec.field("tls"), old, causes);
    if let Some(class) = spec.set("ingressClassName") {
        class.subdomain(causes);
    }
    let annotation = &object["metadata"]["annotations"][CLASS];
    let class = &object["spec"]["ingressClassName"];
    if old.is_none() && annotation.is_string() && class.is_string() && annotation != class {
        let at = Field::of(object, "annotations");
        let at = at.field(CLASS);
        let detail = "must match `ingressClassName` when both are specified";
        at.invalid_as(annotation.clone(), detail, causes);
    }
}

fn has_invalid_wildcard(old: &Value) -> bool {
    let spec = Field::of(old, "spec");
    spec.field("rules").items().any(|rule| {
        let mut causes = Causes::new();
        http(&rule, &mut causes);
        rule.field("host").text().contains('*') && !causes.is_empty()
    })
}

fn http(rule: &Field<'_, '_>, causes: &mut Causes) {
    let Some(http) = rule.set("http") else { return };
    let paths = http.field("paths");
    if paths.is_empty() {
        paths.required("", causes);
    }
    for path in paths.items() {
        path_rules(&path, causes);
    }
}

fn path_rules(item: &Field<'_, '_>, causes: &mut Causes) {
    let (path, kind) = (item.field("path"), item.field("pathType"));
    if !kind.is_set() {
        return kind.required("pathType must be specified", causes);
    }
    let text = path.text();
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                path.invalid("must be an absolute path", causes);
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| text.contains(**part)) {
                path.invalid(&format!("must not contain '{part}'"), causes);
            }
            for end in ["/..", "/."].iter().filter(|end| text.ends_with(**end)) {
                path.invalid(&format!("cannot end with '{end}'"), causes);
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                path.invalid("must be an absolute path", causes);
            }
        }
        _ => kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"], causes),
    }
    backend(&item.field("backend"), causes);
}

fn backend(backend: &Field<'_, '_>, causes: &mut Causes) {
    match (backend.set("resource"), backend.set("service")) {
        (Some(_), Some(_)) => backend.invalid_as("", "cannot set both resource and service backends", causes),
        (Some(resource), None) => reference(&resource, causes),
        (None, Some(service)) => {
            let name = service.field("name");
            if name.not_empty(causes) {
                name.label(causes);
            }
            let port = service.field("port");
            let (name, number) = (port.field("name"), port.field("number"));
            match (name.text().is_empty(), number.number()) {
                (false, 0) => name.problems(formats::port_name_problems(name.text()), causes),
                (false, _) => backend.invalid_as("", "cannot set both port name & port number", causes),
                (true, 0) => backend.required("port name or number is required", causes),
                (true, _) => number.port_number(causes),
            }
        }
        (None, None) => backend.invalid_as("", "resource or service backend is required", causes),
    }
}

fn reference(reference: &Field<'_, '_>, causes: &mut Causes) {
    if reference.field("apiGroup").is_set() {
        reference.field("apiGroup").subdomain(causes);
    }
    for name in ["kind", "name"] {
        let field = reference.field(name);
        if field.not_empty(causes) {
            field.segment(causes);
        }
    }
}

fn tls(tls: &Field<'_, '_>, old: Option<&Value>, causes: &mut Causes) {
    let is_bad = |name: &str| !name.is_empty() && !formats::subdomain_problems(name).is_empty();
    let allows_secrets = old.is_some_and(|old| {
        let list = old["spec"]["tls"].as_array().into_iter().flatten();
        list.filter_map(|item| item["secretName"].as_str()).any(is_bad)
    });
    for item in tls.items() {
        for host in item.field("hosts").items() {
            if host.text().contains('*') {
                host.problems(formats::wildcard_problems(host.text()), causes);
            } else {
                host.subdomain(causes);
            }
        }
        let secret = item.field("secretName");
        if !allows_secrets && !secret.text().is_empty() {
            secret.subdomain(causes);
        }
    }
}

/// Validates the status of an ingress.
pub(in crate::builtin) fn ingress_status(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let balancer = status.field("loadBalancer");
    let known = old["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
    let before: Vec<&str> = known.filter_map(|point| point["ip"].as_str()).collect();
    for point in balancer.field("ingress").items() {
        if !point.field("ip").text().is_empty() {
            point.field("ip").address(&before, causes);
        }
        services::host_name(&point.field("hostname"), causes);
    }
}

/// Validates the class of ingresses.
pub(in crate::builtin) fn ingress_class(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let controller = spec.field("controller");
    if let Some(old) = old {
        if old["spec"]["controller"].as_str().unwrap_or_default() != controller.text() {
            controller.invalid("field is immutable", causes);
        }
        metadata::check_prefix(NameRule::Subdomain, object, causes);
    }
    if controller.text().len() > 250 {
        controller.too_long(250, causes);
    }
    batch::domain_path(&controller, causes);
    let Some(parameters) = spec.set("parameters") else { return };
    reference(&parameters, causes);
    let (scope, namespace) = (parameters.field("scope"), parameters.field("namespace"));
    match scope.text() {
        _ if !scope.is_set() => scope.required("", causes),
        "Namespace" if !namespace.is_set() => {
            namespace.required("`parameters.scope` is set to 'Namespace'", causes);
        }
        "Namespace" => namespace.label(causes),
        "Cluster" => {
            if namespace.is_set() {
                namespace.forbidden("`parameters.scope` is set to 'Cluster'", causes);
            }
        }
        _ => scope.not_supported(&["Cluster", "Namespace"], causes),
    }
}

const CLASS: &str = "kubernetes.io/ingress.class";

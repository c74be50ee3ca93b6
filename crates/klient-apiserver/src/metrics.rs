//! The server's own numbers, under the names of the real server's metrics.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use http::{Method, StatusCode};

use crate::{
    call::Call,
    registry::{self, Resource},
    route::ResourceRoute,
    server::Core,
};

/// The number of requests to each resource.
#[derive(Default)]
pub(crate) struct RequestCounts {
    counts: Mutex<HashMap<Key, Count>>,
}

/// A resource by its address, because hashing names would cost more than the rest of a small request.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    resource: usize,
    verb: &'static str,
    scope: &'static str,
    subresource: Option<String>,
    dry_run: bool,
    code: u16,
}

struct Count {
    /// Keeps the address in use.
    resource: Arc<Resource>,
    number: u64,
}

impl RequestCounts {
    /// Counts a request.
    pub(crate) fn add(&self, call: &Call, route: &ResourceRoute, resource: Arc<Resource>, code: StatusCode) {
        let key = Key {
            resource: Arc::as_ptr(&resource).addr(),
            verb: verb(call, route),
            scope: match (&route.name, &route.namespace) {
                (Some(_), _) => "resource",
                (None, Some(_)) => "namespace",
                (None, None) => "cluster",
            },
            subresource: route.subresource.clone(),
            dry_run: call.param("dryRun").is_some(),
            code: code.as_u16(),
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.entry(key).or_insert(Count { resource, number: 0 }).number += 1;
    }

    /// Returns the samples in the text format, in the order of their labels.
    fn samples(&self) -> Vec<String> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let sample = |(key, count): (&Key, &Count)| {
            let Resource { group, version, plural, .. } = &*count.resource;
            let subresource = key.subresource.as_deref().unwrap_or_default();
            let dry_run = if key.dry_run { "All" } else { "" };
            format!(
                "apiserver_request_total{{code=\"{}\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"{group}\",resource=\"{plural}\",scope=\"{}\",subresource={subresource:?},verb=\"{}\",version=\"{version}\"}} {}",
                key.code, key.scope, key.verb, count.number
            )
        };
        let mut samples: Vec<String> = counts.iter().map(sample).collect();
        samples.sort();
        samples
    }
}

/// Returns the name of a verb in metrics.
fn verb(call: &Call, route: &ResourceRoute) -> &'static str {
    match (&call.method, &route.name) {
        (&Method::GET, _) if route.watch || (call.flag("watch") && route.name.is_none()) => "WATCH",
        (&Method::GET, Some(_)) => "GET",
        (&Method::GET, None) => "LIST",
        (&Method::POST, _) => "POST",
        (&Method::PUT, _) => "PUT",
        (&Method::PATCH, _) if crate::patch::Patch::is_apply(call.content_type()) => "APPLY",
        (&Method::PATCH, _) => "PATCH",
        (&Method::DELETE, Some(_)) => "DELETE",
        (&Method::DELETE, None) => "DELETECOLLECTION",
        _ => "other",
    }
}

/// Returns the response to `/metrics`.
pub(crate) fn all(core: &Core) -> String {
    let mut out = String::new();
    family(
        &mut out,
        "apiserver_request_total",
        "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
        "counter",
        &core.requests.samples(),
    );
    let groups = core.registry.groups();
    let stored: BTreeMap<(String, String), usize> = groups
        .preferred()
        .iter()
        .map(|resource| ((resource.group.clone(), resource.plural.clone()), core.store.count(&resource.table)))
        .collect();
    let objects = |((group, resource), count): (&(String, String), &usize)| {
        format!("apiserver_resource_objects{{group=\"{group}\",resource=\"{resource}\"}} {count}")
    };
    family(
        &mut out,
        "apiserver_resource_objects",
        "[ALPHA] Number of stored objects at the time of last check split by kind.",
        "gauge",
        &stored.iter().map(objects).collect::<Vec<_>>(),
    );
    let version = registry::server_version();
    let labels: Vec<String> = [
        ("build_date", "buildDate"),
        ("compiler", "compiler"),
        ("git_commit", "gitCommit"),
        ("git_version", "gitVersion"),
        ("go_version", "goVersion"),
        ("major", "major"),
        ("minor", "minor"),
        ("platform", "platform"),
    ]
    .iter()
    .map(|(label, field)| format!("{label}={}", version[*field]))
    .collect();
    family(
        &mut out,
        "kubernetes_build_info",
        "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
        "gauge",
        &[format!("kubernetes_build_info{{{}}} 1", labels.join(","))],
    );
    out
}

/// Returns the response to `/metrics/slis`.
pub(crate) fn health() -> String {
    let mut out = String::new();
    let checks =
        ["healthz", "livez", "readyz"].iter().flat_map(|kind| ["etcd", "log", "ping"].map(|name| (*kind, name)));
    let samples = checks.map(|(kind, name)| format!("kubernetes_healthcheck{{name=\"{name}\",type=\"{kind}\"}} 1"));
    family(
        &mut out,
        "kubernetes_healthcheck",
        "[STABLE] This metric records the result of a single healthcheck.",
        "gauge",
        &samples.collect::<Vec<_>>(),
    );
    out
}

fn family(out: &mut String, name: &str, help: &str, kind: &str, samples: &[String]) {
    if samples.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{}", samples.join("\n"));
}

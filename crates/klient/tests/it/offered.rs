//! The APIs of a small server, in both formats of discovery.

use klient::{
    client::{
        discovery::{CachedDiscovery, DiscoveryClient},
        http::Body,
    },
    request::media_type,
};
use serde_json::{Value, json};

use crate::{
    support::routed::Routed,
    support::scripted::{json_response, response, with},
};

pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns a resource in the aggregated format.
pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str, more: &Value) -> Value {
    let mut value = json!({
        "resource": plural, "responseKind": {"group": group, "version": version, "kind": kind},
        "scope": "Namespaced", "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "watch"],
    });
    for (key, field) in more.as_object().unwrap() {
        value[key] = field.clone();
    }
    value
}

/// Returns an aggregated document.
pub(crate) fn document(groups: &[Value]) -> Value {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups})
}

pub(crate) fn group(name: &str, versions: &[(&str, Vec<Value>)]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(version, resources)| json!({"version": version, "resources": resources, "freshness": "Current"}))
        .collect();
    json!({"metadata": {"name": name, "creationTimestamp": null}, "versions": versions})
}

pub(crate) fn core() -> Value {
    let pods = json!({"shortNames": ["po"], "categories": ["all"], "subresources": [
        {"subresource": "log", "responseKind": {"group": "", "version": "v1", "kind": "Pod"}, "verbs": ["get"]},
        {"subresource": "eviction", "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"},
         "verbs": ["create"]},
    ]});
    document(&[group(
        "",
        &[(
            "v1",
            vec![
                resource("", "v1", "Event", "events", &json!({"shortNames": ["ev"]})),
                resource("", "v1", "Node", "nodes", &json!({"shortNames": ["no"], "scope": "Cluster"})),
                resource("", "v1", "Pod", "pods", &pods),
            ],
        )],
    )])
}

pub(crate) fn named() -> Value {
    let deployments = json!({"shortNames": ["deploy"], "categories": ["all"], "subresources": [
        {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
         "verbs": ["get", "patch", "update"]},
    ]});
    document(&[
        group(
            "apps",
            &[
                ("v1", vec![resource("apps", "v1", "Deployment", "deployments", &deployments)]),
                (
                    "v1beta1",
                    vec![
                        resource("apps", "v1beta1", "Deployment", "deployments", &deployments),
                        resource("apps", "v1beta1", "Sketch", "sketches", &json!({"shortNames": ["sk"]})),
                    ],
                ),
            ],
        ),
        group(
            "events.k8s.io",
            &[("v1", vec![resource("events.k8s.io", "v1", "Event", "events", &json!({"shortNames": ["ev"]}))])],
        ),
        group(
            "example.com",
            &[("v1", vec![resource("example.com", "v1", "Skate", "skates", &json!({"shortNames": ["sk"]}))])],
        ),
    ])
}

/// Returns the unaggregated document at a path, built from the aggregated ones.
pub(crate) fn legacy(path: &str) -> Option<Value> {
    let (core, named) = (core(), named());
    let version_names = |group: &Value| -> Vec<String> {
        let versions = group["versions"].as_array().unwrap();
        versions.iter().map(|version| version["version"].as_str().unwrap().to_owned()).collect()
    };
    if path == "/api" {
        return Some(json!({"kind": "APIVersions", "versions": version_names(&core["items"][0])}));
    }
    if path == "/apis" {
        let group = |group: &Value| {
            let name = group["metadata"]["name"].as_str().unwrap();
            let entry = |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
            let versions: Vec<Value> = version_names(group).iter().map(entry).collect();
            json!({"name": name, "versions": versions, "preferredVersion": versions[0]})
        };
        let groups: Vec<Value> = named["items"].as_array().unwrap().iter().map(group).collect();
        return Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}));
    }
    let (root, version) = match path.strip_prefix("/api/") {
        Some(version) => (&core, version),
        None => (&named, path.strip_prefix("/apis/")?),
    };
    let (name, version) = version.split_once('/').unwrap_or(("", version));
    let groups = root["items"].as_array().unwrap();
    let group = groups.iter().find(|group| group["metadata"]["name"] == name)?;
    let found = group["versions"].as_array().unwrap().iter().find(|found| found["version"] == version)?;
    let resources: Vec<Value> = found["resources"].as_array().unwrap().iter().flat_map(legacy_resources).collect();
    Some(json!({"kind": "APIResourceList", "groupVersion": path, "resources": resources}))
}

fn legacy_resources(new: &Value) -> Vec<Value> {
    let plural = new["resource"].as_str().unwrap();
    let namespaced = new["scope"] == "Namespaced";
    let own = &new["responseKind"];
    let mut all = vec![json!({
        "name": plural, "singularName": new["singularResource"], "namespaced": namespaced, "kind": own["kind"],
        "verbs": new["verbs"], "shortNames": new["shortNames"], "categories": new["categories"],
    })];
    for under in new["subresources"].as_array().into_iter().flatten() {
        let kind = &under["responseKind"];
        let mut one = json!({
            "name": format!("{plural}/{}", under["subresource"].as_str().unwrap()), "singularName": "",
            "namespaced": namespaced, "kind": kind["kind"], "verbs": under["verbs"],
        });
        if kind["group"] != own["group"] {
            one["group"] = kind["group"].clone();
            one["version"] = kind["version"].clone();
        }
        all.push(one);
    }
    all
}

/// Responds like a server with aggregated discovery. Its documents have the ETags `"core"` and `"named"`.
pub(crate) fn served(request: &http::Request<bytes::Bytes>) -> http::Response<Body> {
    let (tag, document) = match request.uri().path() {
        "/api" => ("\"core\"", core()),
        "/apis" => ("\"named\"", named()),
        _ => return response(404, "text/plain", "404 page not found"),
    };
    tagged(request, tag, &document)
}

/// Returns an aggregated document with an ETag, or 304 if it has not changed.
pub(crate) fn tagged(request: &http::Request<bytes::Bytes>, tag: &str, document: &Value) -> http::Response<Body> {
    if request.headers().get("if-none-match").is_some_and(|value| value == tag) {
        return with(response(304, AGGREGATED, ""), "etag", tag);
    }
    with(response(200, AGGREGATED, document.to_string()), "etag", tag)
}

/// Responds like a server without aggregated discovery.
pub(crate) fn served_legacy(request: &http::Request<bytes::Bytes>) -> http::Response<Body> {
    match legacy(request.uri().path()) {
        Some(document) => json_response(200, &document),
        None => response(404, "text/plain", "404 page not found"),
    }
}

pub(crate) fn discovery(server: &std::sync::Arc<Routed>) -> DiscoveryClient {
    DiscoveryClient::new(server.client())
}

pub(crate) fn in_memory(server: &std::sync::Arc<Routed>) -> CachedDiscovery {
    CachedDiscovery::in_memory(discovery(server))
}

#[test]
fn accept_header_requests_the_aggregated_format() {
    assert_eq!(media_type::AGGREGATED_DISCOVERY, AGGREGATED);
}

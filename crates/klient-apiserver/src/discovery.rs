//! Discovery: groups, versions and resources, aggregated or as separate documents.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY},
};
use klient_core::media_type;
use serde_json::{Value, json};

use crate::{
    Result,
    body::ResponseBody,
    call::Call,
    negotiate::{Offered, ResponseFormat},
    registry::{GroupVersion, Groups, Resource, Subresource, api_version},
    response,
};

/// Responds to `/api` and `/apis`.
pub(crate) fn groups(call: &Call, groups: &Groups, core: bool) -> Result<Response<ResponseBody>> {
    let accept = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let new_form = accept.split(',').next().is_some_and(|first| {
        first.contains("as=APIGroupDiscoveryList") && first.contains("g=apidiscovery.k8s.io") && first.contains("v=v2")
    });
    if new_form && !accept.split(',').next().is_some_and(|first| first.contains("v=v2beta1")) {
        return Ok(aggregated(call, groups, core));
    }
    let wanted = response_format(call)?;
    if core {
        let versions: Vec<&str> = of_group(groups, "").map(|version| version.version.as_str()).collect();
        let address = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]);
        let document = json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": address});
        return Ok(response::json_value(StatusCode::OK, &document, wanted));
    }
    let mut names: Vec<&str> = Vec::new();
    for version in &groups.versions {
        if !version.group.is_empty() && !names.contains(&version.group.as_str()) {
            names.push(&version.group);
        }
    }
    let list: Vec<Value> = names.iter().map(|name| group_document(groups, name)).collect();
    let document = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list});
    Ok(response::json_value(StatusCode::OK, &document, wanted))
}

/// Responds to `/apis/<group>`.
pub(crate) fn group(call: &Call, groups: &Groups, name: &str) -> Result<Response<ResponseBody>> {
    if of_group(groups, name).next().is_none() || name.is_empty() {
        return Ok(page_not_found());
    }
    let mut document = json!({"kind": "APIGroup", "apiVersion": "v1"});
    if let (Value::Object(document), Value::Object(fields)) = (&mut document, group_document(groups, name)) {
        document.extend(fields);
    }
    Ok(response::json_value(StatusCode::OK, &document, response_format(call)?))
}

/// Responds to `/apis/<group>/<version>` and `/api/v1`.
pub(crate) fn version(call: &Call, groups: &Groups, group: &str, version: &str) -> Result<Response<ResponseBody>> {
    let found = groups.versions.iter().find(|found| found.group == group && found.version == version);
    let Some(found) = found else {
        // The real server has another message for an unknown version of a known group.
        let is_known = of_group(groups, group).next().is_some();
        return if is_known { Err(crate::verbs::not_served()) } else { Ok(page_not_found()) };
    };
    let resources: Vec<Value> = found.resources.iter().flat_map(|resource| legacy(resource)).collect();
    let group_version = api_version(group, version);
    let mut document = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    if !group.is_empty() {
        // The oldest of these documents has no `apiVersion`.
        document["apiVersion"] = json!("v1");
    }
    Ok(response::json_value(StatusCode::OK, &document, response_format(call)?))
}

/// Returns the response to an unknown path.
pub(crate) fn page_not_found() -> Response<ResponseBody> {
    response::text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn response_format(call: &Call) -> Result<ResponseFormat> {
    ResponseFormat::of_request(
        &call.headers,
        call.param("pretty"),
        Offered { protobuf: false, projections: false, streams: true },
    )
    .or(Ok(ResponseFormat::JSON))
}

fn of_group<'a>(groups: &'a Groups, name: &'a str) -> impl Iterator<Item = &'a GroupVersion> {
    groups.versions.iter().filter(move |version| version.group == name).map(|version| &**version)
}

fn group_document(groups: &Groups, name: &str) -> Value {
    let versions: Vec<Value> = of_group(groups, name)
        .map(|version| json!({"groupVersion": api_version(name, &version.version), "version": version.version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

fn legacy(resource: &Resource) -> Vec<Value> {
    let mut own = json!({"name": resource.plural, "singularName": resource.singular,
        "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs});
    for (name, values) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !values.is_empty() {
            own[name] = json!(values);
        }
    }
    if let Some(hash) = &resource.storage_version_hash {
        own["storageVersionHash"] = json!(hash);
    }
    let below = resource.subresources.iter().map(|subresource| {
        let mut document = json!({"name": format!("{}/{}", resource.plural, subresource.name), "singularName": "",
            "namespaced": resource.namespaced, "kind": subresource.kind, "verbs": subresource.verbs});
        if has_own_kind(resource, subresource) {
            document["group"] = json!(subresource.group);
            document["version"] = json!(subresource.version);
        }
        document
    });
    std::iter::once(own).chain(below).collect()
}

fn has_own_kind(resource: &Resource, subresource: &Subresource) -> bool {
    let same = subresource.group == resource.group && subresource.version == resource.version;
    !same && !subresource.version.is_empty()
}

/// Returns aggregated discovery: one document with an `ETag`, which is not sent again if it did not change.
fn aggregated(call: &Call, groups: &Groups, core: bool) -> Response<ResponseBody> {
    let mut items: Vec<Value> = Vec::new();
    for version in groups.versions.iter().filter(|version| version.group.is_empty() == core) {
        let resources: Vec<Value> = version.resources.iter().map(|resource| aggregated_resource(resource)).collect();
        let document = json!({"version": version.version, "resources": resources, "freshness": "Current"});
        match items.iter_mut().find(|item| item["metadata"]["name"].as_str().unwrap_or_default() == version.group) {
            Some(item) => {
                if let Some(versions) = item["versions"].as_array_mut() {
                    versions.push(document);
                }
            }
            None if core => items.push(json!({"metadata": {}, "versions": [document]})),
            None => items.push(json!({"metadata": {"name": version.group}, "versions": [document]})),
        }
    }
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    let text = crate::order::to_vec(&list);
    let etag = format!("\"{:016X}\"", fingerprint(&text));
    let known = call.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = if known == Some(etag.as_str()) {
        let mut unchanged = Response::new(ResponseBody::whole(Bytes::new()));
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        let mut whole = Response::new(ResponseBody::whole(text));
        whole.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type::AGGREGATED_DISCOVERY));
        whole
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    if let Ok(value) = HeaderValue::try_from(etag) {
        headers.insert(ETAG, value);
    }
    response
}

fn aggregated_resource(resource: &Resource) -> Value {
    // The document has no version for kinds of the core group.
    let kind = |group: &str, version: &str, kind: &str| {
        let version = if group.is_empty() && resource.group.is_empty() { "" } else { version };
        json!({"group": group, "version": version, "kind": kind})
    };
    let mut document = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    for (name, values) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !values.is_empty() {
            document[name] = json!(values);
        }
    }
    if !resource.subresources.is_empty() {
        let below: Vec<Value> = resource
            .subresources
            .iter()
            .map(|subresource| {
                let (group, version) = if subresource.version.is_empty() {
                    (&resource.group, &resource.version)
                } else {
                    (&subresource.group, &subresource.version)
                };
                json!({"subresource": subresource.name, "responseKind": kind(group, version, &subresource.kind),
                    "verbs": subresource.verbs})
            })
            .collect();
        document["subresources"] = json!(below);
    }
    document
}

/// Returns an FNV-1a hash. It has to show changes and need not withstand forgery.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

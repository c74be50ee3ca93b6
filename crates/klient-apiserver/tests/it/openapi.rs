//! OpenAPI documents over HTTP.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

/// Sends a request, and returns the code, headers and body of its response.
async fn send(server: &ApiServer, request: http::request::Builder, body: Bytes) -> (StatusCode, HeaderMap, Bytes) {
    let (parts, body) = server.handle(request.body(body).unwrap()).await.into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes())
}

async fn get(server: &ApiServer, path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Bytes) {
    let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
    send(server, request, Bytes::new()).await
}

async fn json(server: &ApiServer, path: &str) -> Value {
    let (code, _, body) = get(server, path, &[]).await;
    assert_eq!(code, 200, "{path}");
    serde_json::from_slice(&body).unwrap()
}

/// Returns the address of a document in the index.
async fn address(server: &ApiServer, name: &str) -> Option<String> {
    let index = json(server, "/openapi/v3").await;
    index["paths"][name]["serverRelativeURL"].as_str().map(str::to_owned)
}

/// Creates or replaces the definition of gears, whose spec has these properties.
async fn define(server: &ApiServer, properties: Value) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.klient.invalid"},
        "spec": {"group": "klient.invalid", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties}}}}}]},
    });
    let (code, _, _) = send(server, Request::post(path), definition.to_string().into()).await;
    if code == 409 {
        let patch = Request::patch(format!("{path}/gears.klient.invalid"));
        let patch = patch.header("content-type", "application/merge-patch+json");
        let (code, _, body) = send(server, patch, definition.to_string().into()).await;
        assert_eq!(code, 200, "{body:?}");
    }
}

#[tokio::test]
async fn index_leads_to_a_document_for_each_group_version() {
    let server = ApiServer::start().await.unwrap();
    let (code, headers, body) = get(&server, "/openapi/v3", &[]).await;
    assert_eq!((code, &headers["content-type"]), (StatusCode::OK, &"text/plain; charset=utf-8".parse().unwrap()));
    let index: Value = serde_json::from_slice(&body).unwrap();
    for group in json(&server, "/apis").await["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let name = format!("apis/{}", version["groupVersion"].as_str().unwrap());
            let url = index["paths"][&name]["serverRelativeURL"].as_str().unwrap_or_else(|| panic!("no {name}"));
            let (code, headers, body) = get(&server, url, &[]).await;
            assert_eq!(code, 200, "{url}");
            assert_eq!(headers["cache-control"], "public, immutable");
            assert!(headers.contains_key("expires") && headers["vary"] == "Accept");
            let hash = url.split_once("?hash=").unwrap().1;
            assert_eq!(headers["etag"], format!("\"{hash}\""));
            let document: Value = serde_json::from_slice(&body).unwrap();
            assert!(document["paths"].get(format!("/{name}/")).is_some(), "{name}");
        }
    }
}

/// Each verb of each resource in discovery has an operation, and no operation has another kind.
#[tokio::test]
async fn documents_agree_with_discovery() {
    let server = ApiServer::start().await.unwrap();
    let mut paths = vec![("api/v1".to_owned(), json(&server, "/api/v1").await)];
    for group in json(&server, "/apis").await["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let path = format!("apis/{}", version["groupVersion"].as_str().unwrap());
            let resources = json(&server, &format!("/{path}")).await;
            paths.push((path, resources));
        }
    }
    let mut operations = 0;
    for (path, resources) in paths {
        let document = json(&server, &format!("/openapi/v3/{path}")).await;
        for resource in resources["resources"].as_array().unwrap() {
            let (plural, subresource) =
                resource["name"].as_str().unwrap().split_once('/').unwrap_or((resource["name"].as_str().unwrap(), ""));
            let scope = if resource["namespaced"] == true { "namespaces/{namespace}/" } else { "" };
            let collection = format!("/{path}/{scope}{plural}");
            for verb in resource["verbs"].as_array().unwrap().iter().filter_map(Value::as_str) {
                let (is_named, method) = match verb {
                    "create" => (!subresource.is_empty(), "post"),
                    "deletecollection" => (false, "delete"),
                    "list" => (false, "get"),
                    "watch" => continue,
                    "get" => (true, "get"),
                    "update" => (true, "put"),
                    "patch" => (true, "patch"),
                    _ => (true, "delete"),
                };
                let at = match (is_named, subresource) {
                    (false, _) => collection.clone(),
                    (true, "") => format!("{collection}/{{name}}"),
                    (true, sub) => format!("{collection}/{{name}}/{sub}"),
                };
                let operation = &document["paths"][&at][method];
                assert!(operation["operationId"].is_string(), "{method} {at}");
                assert_eq!(operation["x-kubernetes-group-version-kind"]["kind"], resource["kind"], "{method} {at}");
                operations += 1;
            }
        }
    }
    assert!(operations > 500, "{operations}");
}

#[tokio::test]
async fn known_documents_are_not_sent_again() {
    let server = ApiServer::start().await.unwrap();
    for path in ["/openapi/v3/apis/apps/v1", "/openapi/v2"] {
        let (_, headers, body) = get(&server, path, &[]).await;
        assert_eq!(
            (&headers["cache-control"], &headers["content-type"]),
            (&"no-cache, private".parse().unwrap(), &"application/json".parse().unwrap())
        );
        assert!(body.len() > 100_000);
        let etag = headers["etag"].to_str().unwrap();
        let (code, headers, body) = get(&server, path, &[("if-none-match", etag)]).await;
        assert_eq!((code, body.len(), headers["etag"].to_str().unwrap()), (StatusCode::NOT_MODIFIED, 0, etag));
        let (code, _, _) = get(&server, path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(code, 200);
    }
}

#[tokio::test]
async fn wrong_hash_is_redirected() {
    let server = ApiServer::start().await.unwrap();
    let right = address(&server, "apis/apps/v1").await.unwrap();
    let (code, headers, body) = get(&server, "/openapi/v3/apis/apps/v1?hash=0", &[]).await;
    assert_eq!((code, body.len()), (StatusCode::MOVED_PERMANENTLY, 0));
    assert_eq!(headers["location"], right.as_str());
    let (code, _, body) = get(&server, "/openapi/v3/apis/none.invalid/v1", &[]).await;
    assert_eq!((code, body.len()), (StatusCode::NOT_FOUND, 0));
}

#[tokio::test]
async fn documents_are_negotiated() {
    let server = ApiServer::start().await.unwrap();
    let (two, three) = ("application/com.github.proto-openapi.spec.v2", "application/com.github.proto-openapi.spec.v3");
    for (path, kind) in [("/openapi/v2", two), ("/openapi/v3/api/v1", three)] {
        let protobuf = format!("{kind}.v1.0+protobuf");
        for (accept, expected) in [
            (protobuf.as_str(), protobuf.as_str()),
            (&format!("{kind}@v1.0+protobuf"), &protobuf),
            ("*/*", "application/json"),
            (&format!("application/json;q=0.1,{protobuf}"), &protobuf),
        ] {
            let (code, headers, _) = get(&server, path, &[("accept", accept)]).await;
            assert_eq!((code, headers["content-type"].to_str().unwrap()), (StatusCode::OK, expected), "{accept}");
        }
        let (code, _, body) = get(&server, path, &[("accept", "application/yaml")]).await;
        assert_eq!((code, body.len()), (StatusCode::NOT_ACCEPTABLE, 0));
    }
}

#[tokio::test]
async fn documents_follow_definitions() {
    let server = ApiServer::start().await.unwrap();
    assert_eq!(address(&server, "apis/klient.invalid/v1").await, None);
    let before = get(&server, "/openapi/v2", &[]).await.1["etag"].clone();
    define(&server, json!({"teeth": {"type": "integer"}})).await;
    let first = address(&server, "apis/klient.invalid/v1").await.unwrap();
    let document = json(&server, &first).await;
    let gear = &document["components"]["schemas"]["invalid.klient.v1.Gear"];
    assert_eq!(gear["properties"]["spec"]["properties"]["teeth"]["type"], "integer");
    assert_eq!(
        gear["x-kubernetes-group-version-kind"],
        json!([{"group": "klient.invalid", "kind": "Gear", "version": "v1"}])
    );
    let patch = &document["paths"]["/apis/klient.invalid/v1/namespaces/{namespace}/gears/{name}"]["patch"];
    assert_eq!(patch["operationId"], "patchKlientInvalidV1NamespacedGear");
    assert!(document["paths"].get("/apis/klient.invalid/v1/namespaces/{namespace}/gears/{name}/status").is_some());
    assert!(document["paths"].get("/apis/klient.invalid/v1/namespaces/{namespace}/gears/{name}/scale").is_none());
    let version_two = json(&server, "/openapi/v2").await;
    assert_eq!(
        version_two["definitions"]["invalid.klient.v1.Gear"]["properties"]["spec"]["properties"]["teeth"]["type"],
        "integer"
    );
    assert!(version_two["paths"].get("/apis/klient.invalid/v1/gears").is_some());

    define(&server, json!({"teeth": {"type": "string"}})).await;
    let second = address(&server, "apis/klient.invalid/v1").await.unwrap();
    assert_ne!(first, second);
    let (code, headers, _) = get(&server, &first, &[]).await;
    assert_eq!((code, headers["location"].to_str().unwrap()), (StatusCode::MOVED_PERMANENTLY, second.as_str()));

    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gears.klient.invalid";
    send(&server, Request::delete(path), Bytes::new()).await;
    while get(&server, path, &[]).await.0 == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(address(&server, "apis/klient.invalid/v1").await, None);
    assert_eq!(get(&server, "/openapi/v2", &[]).await.1["etag"], before);
}

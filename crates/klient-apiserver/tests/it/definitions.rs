//! Custom resource definitions over their life.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GEARS: &str = "/apis/klient.invalid/v1/namespaces/default/gears";

/// Sends a request. A patch is a merge patch.
async fn send(server: &ApiServer, request: http::request::Builder, body: &Value) -> (StatusCode, Value) {
    let mut request = request.body(Bytes::from(body.to_string())).unwrap();
    if request.method() == Method::PATCH {
        let content_type = HeaderValue::from_static("application/merge-patch+json");
        request.headers_mut().insert("content-type", content_type);
    }
    let (parts, body) = server.handle(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, serde_json::from_slice(&body).unwrap_or_default())
}

fn definition(served: bool) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.klient.invalid"},
        "spec": {"group": "klient.invalid", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
            "versions": [{"name": "v1", "served": served, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"teeth": {"type": "integer"}}}}}}}]}})
}

fn named() -> String {
    format!("{DEFINITIONS}/gears.klient.invalid")
}

#[tokio::test]
async fn definition_without_served_version_can_be_deleted() {
    assert_definition_is_deleted(&ApiServer::start().await.unwrap()).await;
}

#[tokio::test]
async fn definition_is_deleted_without_garbage_collector() {
    // The real API server does that itself, without controller manager.
    assert_definition_is_deleted(&ApiServer::builder().without_garbage_collector().start().await.unwrap()).await;
}

async fn assert_definition_is_deleted(server: &ApiServer) {
    assert_eq!(send(server, Request::post(DEFINITIONS), &definition(true)).await.0, 201);
    let gear = json!({"apiVersion": "klient.invalid/v1", "kind": "Gear", "metadata": {"name": "small"}});
    assert_eq!(send(server, Request::post(GEARS), &gear).await.0, 201);
    assert_eq!(send(server, Request::patch(named()), &definition(false)).await.0, 200);
    assert_eq!(send(server, Request::get(GEARS), &Value::Null).await.0, 404);
    assert_eq!(send(server, Request::delete(named()), &Value::Null).await.0, 200);
    for _ in 0..10_000 {
        if send(server, Request::get(named()), &Value::Null).await.0 == 404 {
            return;
        }
        // The collector runs in a task of its own.
        tokio::task::yield_now().await;
    }
    panic!("the definition is still there");
}

#[tokio::test]
async fn watch_ends_when_its_definition_changes() {
    let server = ApiServer::start().await.unwrap();
    send(&server, Request::post(DEFINITIONS), &definition(true)).await;
    let request = Request::get(format!("{GEARS}?watch=true")).body(Bytes::new()).unwrap();
    let body = server.handle(request).await.into_body();
    let mut changed = definition(true);
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({"type": "object"});
    assert_eq!(send(&server, Request::patch(named()), &changed).await.0, 200);
    assert!(body.collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn new_defaults_apply_to_stored_objects() {
    let server = ApiServer::start().await.unwrap();
    send(&server, Request::post(DEFINITIONS), &definition(true)).await;
    let gear = json!({"apiVersion": "klient.invalid/v1", "kind": "Gear", "metadata": {"name": "small"}, "spec": {}});
    send(&server, Request::post(GEARS), &gear).await;
    let mut changed = definition(true);
    let teeth = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/teeth";
    changed.pointer_mut(teeth).unwrap()["default"] = json!(12);
    send(&server, Request::patch(named()), &changed).await;
    let (_, read) = send(&server, Request::get(format!("{GEARS}/small")), &Value::Null).await;
    assert_eq!(read["spec"], json!({"teeth": 12}));
    let (_, list) = send(&server, Request::get(GEARS), &Value::Null).await;
    assert_eq!(list["items"][0]["spec"], json!({"teeth": 12}));
}

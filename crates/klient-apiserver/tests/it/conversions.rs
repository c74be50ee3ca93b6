//! Custom kinds with several versions, converted by a function in the test.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn gears(version: &str) -> String {
    format!("/apis/klient.invalid/{version}/namespaces/default/gears")
}

async fn send(server: &ApiServer, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let content_type = match method {
        Method::PATCH if path.contains("fieldManager") => "application/apply-patch+yaml",
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) }).unwrap();
    let (parts, body) = server.handle(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
}

/// Starts a server with gears: `spec.teeth` in v1, `spec.count` in v2, which is stored.
async fn started() -> (ApiServer, Arc<AtomicUsize>) {
    let server = ApiServer::start().await.unwrap();
    let version = |name: &str, field: &str, storage: bool| {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {field: {"type": "integer"}, "name": {"type": "string"}}},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}});
        json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.klient.invalid"},
        "spec": {"group": "klient.invalid", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
            "versions": [version("v1", "teeth", false), version("v2", "count", true)],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "default", "name": "convert", "path": "/convert"}}}}}});
    let (code, body) = send(&server, Method::POST, DEFINITIONS, &definition).await;
    assert_eq!(code, 201, "{body}");
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    server.webhook_service("default/convert", move |request: Request<Bytes>| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Response::new(converted(request.body())))
    });
    (server, calls)
}

fn converted(review: &[u8]) -> String {
    let review: Value = serde_json::from_slice(review).unwrap();
    let request = &review["request"];
    let to = &request["desiredAPIVersion"];
    let (from_field, to_field) = if to == "klient.invalid/v2" { ("teeth", "count") } else { ("count", "teeth") };
    let objects = request["objects"].as_array().unwrap().iter().map(|object| {
        let mut object = object.clone();
        object["apiVersion"] = to.clone();
        if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from_field)) {
            object["spec"][to_field] = value;
        }
        object
    });
    json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": {"uid": request["uid"],
        "result": {"status": "Success"}, "convertedObjects": objects.collect::<Vec<_>>()}})
    .to_string()
}

fn gear(version: &str, name: &str, spec: Value) -> Value {
    let mut gear =
        json!({"apiVersion": format!("klient.invalid/{version}"), "kind": "Gear", "metadata": {"name": name}});
    gear["spec"] = spec;
    gear
}

#[tokio::test]
async fn object_is_read_in_each_version() {
    let (server, calls) = started().await;
    let (code, made) = send(&server, Method::POST, &gears("v1"), &gear("v1", "a", json!({"teeth": 8}))).await;
    assert_eq!((code, &made["apiVersion"], &made["spec"]), (201, &json!("klient.invalid/v1"), &json!({"teeth": 8})));
    let before = calls.load(Ordering::Relaxed);
    let (_, stored) = send(&server, Method::GET, &format!("{}/a", gears("v2")), &Value::Null).await;
    assert_eq!((&stored["spec"], &stored["metadata"]["uid"]), (&json!({"count": 8}), &made["metadata"]["uid"]));
    assert_eq!(calls.load(Ordering::Relaxed), before, "reads in the storage version call no webhook");
    let (_, list) = send(&server, Method::GET, &gears("v1"), &Value::Null).await;
    assert_eq!(list["items"][0]["spec"], json!({"teeth": 8}));
    assert_eq!(calls.load(Ordering::Relaxed), before + 1);
    send(&server, Method::GET, &gears("v1"), &Value::Null).await;
    assert_eq!(calls.load(Ordering::Relaxed), before + 1, "a list converts each object once");
}

#[tokio::test]
async fn object_is_written_in_each_version() {
    let (server, _) = started().await;
    send(&server, Method::POST, &gears("v1"), &gear("v1", "a", json!({"teeth": 8, "name": "n"}))).await;
    let path = format!("{}/a", gears("v2"));
    let (code, body) = send(&server, Method::PATCH, &path, &json!({"spec": {"count": 9}})).await;
    assert_eq!((code, &body["spec"]), (200, &json!({"count": 9, "name": "n"})));
    let (_, body) = send(&server, Method::GET, &format!("{}/a", gears("v1")), &Value::Null).await;
    assert_eq!(body["spec"], json!({"teeth": 9, "name": "n"}));
    let status = json!({"status": {"ready": true}});
    let (code, body) = send(&server, Method::PATCH, &format!("{}/a/status", gears("v1")), &status).await;
    assert_eq!((code, &body["status"]["ready"]), (200, &json!(true)));
    let (code, _) = send(&server, Method::DELETE, &format!("{}/a", gears("v1")), &Value::Null).await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn applied_field_is_owned_across_versions() {
    let (server, _) = started().await;
    let apply = |version: &str, manager: &str| format!("{}/a?fieldManager={manager}", gears(version));
    let (code, body) =
        send(&server, Method::PATCH, &apply("v1", "one"), &gear("v1", "a", json!({"teeth": 8, "name": "n"}))).await;
    assert_eq!(code, 201, "{body}");
    // The field has another name in v2, and is the same field.
    let (code, body) = send(&server, Method::PATCH, &apply("v2", "two"), &gear("v2", "a", json!({"count": 9}))).await;
    assert_eq!(code, 409, "{body}");
    assert_eq!(body["details"]["causes"][0]["message"], "conflict with \"one\"");
    assert_eq!(body["details"]["causes"][0]["field"], ".spec.teeth");
    let (code, body) = send(
        &server,
        Method::PATCH,
        &format!("{}&force=true", apply("v2", "two")),
        &gear("v2", "a", json!({"count": 9})),
    )
    .await;
    assert_eq!((code, &body["spec"]), (200, &json!({"count": 9, "name": "n"})), "{body}");
    let (code, body) = send(&server, Method::PATCH, &apply("v1", "one"), &gear("v1", "a", json!({"name": "n"}))).await;
    assert_eq!((code, &body["spec"]), (200, &json!({"teeth": 9, "name": "n"})), "{body}");
}

#[tokio::test]
async fn watch_sends_objects_in_its_version() {
    let (server, _) = started().await;
    send(&server, Method::POST, &gears("v2"), &gear("v2", "a", json!({"count": 1}))).await;
    let request = Request::get(format!("{}?watch=true", gears("v1"))).body(Bytes::new()).unwrap();
    let mut watch = server.handle(request).await.into_body();
    let mut event = async || -> Value {
        let frame = watch.frame().await.unwrap().unwrap().into_data().unwrap();
        serde_json::from_slice(&frame).unwrap()
    };
    assert_eq!(event().await["object"]["spec"], json!({"teeth": 1}));
    send(&server, Method::PATCH, &format!("{}/a", gears("v2")), &json!({"spec": {"count": 2}})).await;
    let changed = event().await;
    assert_eq!((&changed["type"], &changed["object"]["spec"]), (&json!("MODIFIED"), &json!({"teeth": 2})));
    assert_eq!(changed["object"]["apiVersion"], "klient.invalid/v1");
}

#[tokio::test]
async fn watch_converts_only_objects_that_it_selects() {
    let (server, calls) = started().await;
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut gear = gear("v2", name, json!({"count": 1}));
        gear["metadata"]["labels"] = json!({"app": label});
        send(&server, Method::POST, &gears("v2"), &gear).await;
    }
    let before = calls.load(Ordering::Relaxed);
    let watch = async |place: &str, label: &str| {
        let path = gears("v1").replace("default", place);
        let request = Request::get(format!("{path}?watch=true&labelSelector=app%3D{label}"));
        server.handle(request.body(Bytes::new()).unwrap()).await.into_body()
    };
    send(&server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "other"}})).await;
    let mut others = [watch("default", "none").await, watch("other", "y").await];
    send(&server, Method::PATCH, &format!("{}/b", gears("v2")), &json!({"spec": {"count": 2}})).await;
    for (name, label, place) in [("d", "none", "default"), ("e", "y", "other")] {
        let mut gear = gear("v2", name, json!({"count": 1}));
        gear["metadata"]["labels"] = json!({"app": label});
        let (code, _) = send(&server, Method::POST, &gears("v2").replace("default", place), &gear).await;
        assert_eq!(code, 201);
    }
    for watch in &mut others {
        assert!(watch.frame().await.unwrap().is_ok());
    }
    assert_eq!(calls.load(Ordering::Relaxed), before + 2, "one call is for the selected object of each watch");
    drop(others);
    let before = before + 2;
    let mut watch = watch("default", "x").await;
    for _ in 0..2 {
        assert!(watch.frame().await.unwrap().is_ok());
    }
    assert_eq!(calls.load(Ordering::Relaxed), before + 1, "one call is for the first objects of a watch");
    send(&server, Method::PATCH, &format!("{}/a", gears("v2")), &json!({"metadata": {"labels": {"app": "z"}}})).await;
    let frame = watch.frame().await.unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!((&event["type"], &event["object"]["spec"]), (&json!("DELETED"), &json!({"teeth": 1})));
    assert_eq!(event["object"]["apiVersion"], "klient.invalid/v1");
    // The first state was converted before, and the new one once.
    assert!(calls.load(Ordering::Relaxed) <= before + 2);
}

#[tokio::test]
async fn failed_conversion_is_an_error_with_the_reason() {
    let (server, _) = started().await;
    send(&server, Method::POST, &gears("v2"), &gear("v2", "a", json!({"count": 1}))).await;
    let path = format!("{}/a", gears("v1"));
    for (change, expected) in [
        (json!({"result": {"status": "Failure", "message": "no"}}), "failed: no"),
        (json!({"result": {"status": "Failure"}}), "failed: response.result.status was 'Failure', not 'Success'"),
        (json!({"convertedObjects": []}), "returned 0 objects, expected 1"),
        (
            json!({"convertedObjects": [{"apiVersion": "klient.invalid/v1", "kind": "Gear", "metadata": {"name": "b"}}]}),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            json!({"convertedObjects": [{"apiVersion": "klient.invalid/v3", "kind": "Gear"}]}),
            "returned invalid object at index 0: invalid groupVersion (expected klient.invalid/v1, received klient.invalid/v3)",
        ),
    ] {
        server.webhook_service("default/convert", move |request: Request<Bytes>| {
            let mut review: Value = serde_json::from_str(&converted(request.body())).unwrap();
            review["response"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            std::future::ready(Response::new(review.to_string()))
        });
        let (code, body) = send(&server, Method::GET, &path, &Value::Null).await;
        assert_eq!(code, 500);
        assert_eq!(body["message"], format!("conversion webhook for klient.invalid/v2, Kind=Gear {expected}"));
    }
}

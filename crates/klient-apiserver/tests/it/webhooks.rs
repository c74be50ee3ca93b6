//! Admission webhooks, which are functions in the test.

use std::{
    future::{Ready, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A response, its warnings and its body.
struct Reply {
    code: u16,
    headers: HeaderMap,
    body: Value,
}

impl Reply {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    fn warnings(&self) -> Vec<String> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }
}

async fn send(server: &ApiServer, method: Method, path: &str, body: &Value) -> Reply {
    let mut request = Request::new(if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) });
    if method == Method::PATCH {
        request.headers_mut().insert("content-type", "application/merge-patch+json".parse().unwrap());
    }
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    let (parts, body) = server.handle(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Reply {
        code: parts.status.as_u16(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }
}

/// Registers a webhook of the service `default/hook`, for config maps unless `more` says otherwise.
async fn register(server: &ApiServer, kind: &str, name: &str, more: Value) {
    let mut hook = json!({"name": format!("{name}.klient.invalid"), "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": format!("/{name}")}},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]});
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "webhooks": [hook]});
    let path = format!("/apis/admissionregistration.k8s.io/v1/{}s", kind.to_lowercase());
    let reply = send(server, Method::POST, &path, &configuration).await;
    assert_eq!(reply.code, 201, "{}", reply.body);
}

async fn mutating(server: &ApiServer, name: &str, more: Value) {
    register(server, "MutatingWebhookConfiguration", name, more).await;
}

async fn validating(server: &ApiServer, name: &str, more: Value) {
    register(server, "ValidatingWebhookConfiguration", name, more).await;
}

/// Serves `default/hook` by a function from a path and a request to the fields of a response.
fn serve(server: &ApiServer, respond: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) {
    server.webhook_service("default/hook", move |request: Request<Bytes>| -> Ready<Response<Bytes>> {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        let mut response = respond(request.uri().path(), &review["request"]);
        if response.get("uid").is_none() {
            response["uid"] = review["request"]["uid"].clone();
        }
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        ready(Response::new(Bytes::from(review.to_string())))
    });
}

fn patch(operations: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())})
}

fn map(name: &str, data: Value) -> Value {
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    map["data"] = data;
    map
}

#[tokio::test]
async fn denial_has_code_reason_and_message_of_the_webhook() {
    let server = ApiServer::start().await.unwrap();
    validating(&server, "deny", json!({})).await;
    serve(&server, |_, _| json!({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": "no"}}));
    let reply = send(&server, Method::POST, MAPS, &map("a", json!({}))).await;
    assert_eq!(reply.code, 422);
    assert_eq!(reply.body["reason"], "Invalid");
    assert_eq!(reply.message(), "admission webhook \"deny.klient.invalid\" denied the request: no");
    assert_eq!(send(&server, Method::GET, &format!("{MAPS}/a"), &Value::Null).await.code, 404);
}

#[tokio::test]
async fn mutation_is_stored_without_an_owner() {
    let server = ApiServer::start().await.unwrap();
    mutating(&server, "mutate", json!({})).await;
    serve(&server, |_, _| {
        let mut response = patch(&json!([{"op": "add", "path": "/data/added", "value": "yes"}]));
        response["warnings"] = json!(["beware"]);
        response
    });
    let reply = send(&server, Method::POST, MAPS, &map("a", json!({"k": "v"}))).await;
    assert_eq!(reply.code, 201, "{}", reply.body);
    assert_eq!(reply.body["data"], json!({"k": "v", "added": "yes"}));
    assert_eq!(reply.warnings(), ["299 - \"beware\""]);
    let fields = &reply.body["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert!(fields.get("f:k").is_some() && fields.get("f:added").is_none(), "{fields}");
}

#[tokio::test]
async fn every_write_of_an_object_is_reviewed() {
    let server = ApiServer::start().await.unwrap();
    validating(&server, "all", json!({})).await;
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = Arc::clone(&seen);
    serve(&server, move |_, request| {
        log.lock().unwrap().push(request.clone());
        json!({"allowed": true})
    });
    let path = format!("{MAPS}/a");
    send(&server, Method::POST, MAPS, &map("a", json!({"k": "1"}))).await;
    send(&server, Method::PUT, &path, &map("a", json!({"k": "2"}))).await;
    send(&server, Method::PATCH, &format!("{path}?dryRun=All"), &json!({"data": {"k": "3"}})).await;
    send(&server, Method::DELETE, &path, &Value::Null).await;
    let seen = seen.lock().unwrap();
    let operations: Vec<&Value> = seen.iter().map(|request| &request["operation"]).collect();
    assert_eq!(operations, ["CREATE", "UPDATE", "UPDATE", "DELETE"]);
    let data: Vec<[&Value; 2]> =
        seen.iter().map(|request| [&request["oldObject"]["data"]["k"], &request["object"]["data"]["k"]]).collect();
    let null = Value::Null;
    assert_eq!(
        data,
        [[&null, &json!("1")], [&json!("1"), &json!("2")], [&json!("2"), &json!("3")], [&json!("2"), &null]]
    );
    let dry: Vec<&Value> = seen.iter().map(|request| &request["dryRun"]).collect();
    assert_eq!(dry, [&json!(false), &json!(false), &json!(true), &json!(false)]);
    assert_eq!(seen[0]["userInfo"]["username"], "kubernetes-admin");
    assert_eq!(seen[0]["object"]["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]["f:k"], json!({}));
    assert_eq!(seen[2]["options"]["kind"], "UpdateOptions");
    assert_eq!(seen[3]["options"]["kind"], "DeleteOptions");
}

#[tokio::test]
async fn hook_is_called_again_after_a_later_change() {
    let server = ApiServer::start().await.unwrap();
    mutating(&server, "a-first", json!({"reinvocationPolicy": "IfNeeded"})).await;
    mutating(&server, "b-second", json!({"reinvocationPolicy": "IfNeeded"})).await;
    mutating(&server, "c-third", json!({})).await;
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&calls);
    serve(&server, move |path, request| {
        log.lock().unwrap().push(path.to_owned());
        match path {
            "/b-second" if request["object"]["data"].get("b").is_none() => {
                patch(&json!([{"op": "add", "path": "/data/b", "value": "x"}]))
            }
            _ => json!({"allowed": true}),
        }
    });
    send(&server, Method::POST, MAPS, &map("a", json!({"k": "v"}))).await;
    assert_eq!(*calls.lock().unwrap(), ["/a-first", "/b-second", "/c-third", "/a-first"]);
}

#[tokio::test]
async fn failure_policy_decides_about_nonsense_and_panics() {
    let server = ApiServer::start().await.unwrap();
    validating(&server, "hook", json!({})).await;
    let prefix = "Internal error occurred: failed calling webhook \"hook.klient.invalid\": ";
    server.webhook_service("default/hook", |_| ready(Response::new("{")));
    let reply = send(&server, Method::POST, MAPS, &map("a", json!({}))).await;
    assert_eq!(reply.code, 500);
    let expected = format!(
        "{prefix}failed to call webhook: couldn't get version/kind; json parse error: unexpected end of JSON input"
    );
    assert_eq!(reply.message(), expected);
    serve(&server, |_, _| json!({"allowed": true, "uid": "bad"}));
    let reply = send(&server, Method::POST, MAPS, &map("a", json!({}))).await;
    assert!(reply.message().starts_with(&format!("{prefix}received invalid webhook response: expected response.uid=")));
    server.webhook_service("default/hook", |_| async { panic!("broken") as Response<Bytes> });
    let reply = send(&server, Method::POST, MAPS, &map("a", json!({}))).await;
    assert!(reply.message().ends_with("EOF"), "{}", reply.message());
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook";
    let mut configuration = send(&server, Method::GET, path, &Value::Null).await.body;
    configuration["webhooks"][0]["failurePolicy"] = json!("Ignore");
    assert_eq!(send(&server, Method::PUT, path, &configuration).await.code, 200);
    assert_eq!(send(&server, Method::POST, MAPS, &map("a", json!({}))).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn webhook_that_does_not_respond_ends_at_its_time_limit() {
    let server = ApiServer::start().await.unwrap();
    mutating(&server, "slow", json!({"timeoutSeconds": 2})).await;
    server.webhook_service("default/hook", |_| std::future::pending::<Response<Bytes>>());
    let reply = send(&server, Method::POST, MAPS, &map("a", json!({}))).await;
    assert_eq!(
        reply.message(),
        "Internal error occurred: failed calling webhook \"slow.klient.invalid\": failed to call webhook: Post \"https://hook.default.svc:443/slow?timeout=2s\": context deadline exceeded"
    );
}

#[tokio::test]
async fn hooks_are_selected_by_labels_scope_and_operation() {
    let server = ApiServer::start().await.unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    serve(&server, move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        json!({"allowed": true})
    });
    let rule = |more: Value| {
        let mut rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([rule])
    };
    for (name, more, expected) in [
        ("object", json!({"objectSelector": {"matchLabels": {"a": "b"}}}), 0),
        ("namespace", json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}), 1),
        ("elsewhere", json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}), 0),
        ("cluster", json!({"rules": rule(json!({"scope": "Cluster"}))}), 0),
        ("namespaced", json!({"rules": rule(json!({"scope": "Namespaced"}))}), 1),
        ("update", json!({"rules": rule(json!({"operations": ["UPDATE"]}))}), 0),
        ("part", json!({"rules": rule(json!({"resources": ["configmaps/status"]}))}), 0),
        ("group", json!({"rules": rule(json!({"apiGroups": ["apps"]}))}), 0),
    ] {
        validating(&server, name, more).await;
        calls.store(0, Ordering::Relaxed);
        send(&server, Method::POST, &format!("{MAPS}?dryRun=All"), &map("a", json!({}))).await;
        assert_eq!(calls.load(Ordering::Relaxed), expected, "{name}");
        let path = format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}");
        assert_eq!(send(&server, Method::DELETE, &path, &Value::Null).await.code, 200);
    }
}

#[tokio::test]
async fn equivalent_version_is_converted_for_the_webhook() {
    let server = ApiServer::start().await.unwrap();
    let rule = json!([{"operations": ["CREATE"], "apiGroups": ["autoscaling"], "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"]}]);
    mutating(&server, "scale", json!({"rules": rule})).await;
    serve(&server, |_, request| {
        assert_eq!(request["object"]["apiVersion"], "autoscaling/v2");
        assert_eq!(request["kind"]["version"], "v2");
        assert_eq!(request["requestKind"]["version"], "v1");
        patch(&json!([{"op": "add", "path": "/spec/maxReplicas", "value": 7}]))
    });
    let scaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "targetCPUUtilizationPercentage": 50}});
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let reply = send(&server, Method::POST, path, &scaler).await;
    assert_eq!(reply.code, 201, "{}", reply.body);
    assert_eq!(reply.body["apiVersion"], "autoscaling/v1");
    assert_eq!(reply.body["spec"]["maxReplicas"], 7);
    assert_eq!(reply.body["spec"]["targetCPUUtilizationPercentage"], 50);
}

#[tokio::test]
async fn failing_patch_is_an_error_whatever_the_policy() {
    let server = ApiServer::start().await.unwrap();
    mutating(&server, "patch", json!({"failurePolicy": "Ignore"})).await;
    for (operations, expected) in [
        (
            json!([{"op": "remove", "path": "/data/none"}]),
            "error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value",
        ),
        (json!([{"op": "test", "path": "/data/a", "value": "x"}]), "testing value /data/a failed: test failed"),
        (
            json!([{"op": "add", "path": "/data/a", "value": 3}]),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
    ] {
        serve(&server, move |_, _| patch(&operations));
        let reply = send(&server, Method::POST, MAPS, &map("a", json!({"a": "b"}))).await;
        assert_eq!(reply.message(), format!("Internal error occurred: {expected}"));
    }
}

#[tokio::test]
async fn scale_is_reviewed_as_a_scale() {
    let server = ApiServer::start().await.unwrap();
    let rule = json!([{"operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
        "resources": ["deployments/scale"]}]);
    mutating(&server, "scale", json!({"rules": rule})).await;
    serve(&server, |_, request| {
        assert_eq!(request["object"]["kind"], "Scale");
        assert_eq!(request["subResource"], "scale");
        patch(&json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]))
    });
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(send(&server, Method::POST, path, &deployment).await.code, 201);
    let reply = send(&server, Method::PATCH, &format!("{path}/d/scale"), &json!({"spec": {"replicas": 5}})).await;
    assert_eq!(reply.body["spec"]["replicas"], 2, "{}", reply.body);
}

#[tokio::test]
async fn webhook_without_backend_is_not_found() {
    let server = ApiServer::start().await.unwrap();
    validating(&server, "lost", json!({"clientConfig": {"service": {"namespace": "ns", "name": "s"}}})).await;
    let reply = send(&server, Method::POST, MAPS, &map("a", json!({}))).await;
    assert_eq!(
        reply.message(),
        "Internal error occurred: failed calling webhook \"lost.klient.invalid\": failed to call webhook: Post \"https://s.ns.svc:443/?timeout=10s\": service \"s\" not found"
    );
}

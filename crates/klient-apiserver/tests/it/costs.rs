//! The cost of a request is proportional to its size: hostile requests that would take minutes, or gigabytes, if it were the square.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use serde_json::{Map, Value, json};

/// Sends a body. Returns the code of the response and its text, which must be limited, as must be the time.
async fn sent(server: &ApiServer, method: &str, target: &str, body: &Value) -> (u16, String) {
    let request = Request::builder().method(method).uri(target).header("content-type", "application/json");
    let request = request.body(Bytes::from(body.to_string())).unwrap();
    let since = Instant::now();
    let response = server.handle(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let elapsed = since.elapsed();
    let shown = &target[..target.len().min(100)];
    assert!(elapsed < PATIENCE, "{code} after {elapsed:?} to {method} {shown}");
    assert!(body.len() <= 16 << 20, "{code} with {} bytes to {method} {shown}", body.len());
    (code, String::from_utf8(body.to_vec()).unwrap())
}

fn causes(text: &str) -> usize {
    let status: Value = serde_json::from_str(text).unwrap();
    status["details"]["causes"].as_array().map_or(0, Vec::len)
}

fn many(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..count).map(item).collect()
}

fn map(count: usize, entry: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(entry).collect::<Map<_, _>>())
}

/// Returns a definition whose kind has a schema with these properties.
fn definition(properties: &Value) -> Value {
    let schema = json!({"type": "object", "properties": properties});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "as", "kind": "A"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}}]}})
}

#[tokio::test]
async fn message_that_shows_a_schema_is_limited() {
    let server = ApiServer::start().await.unwrap();
    let mut definition = definition(&json!({}));
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = json!({"status": {}});
    version["schema"]["openAPIV3Schema"]["oneOf"] = many(100_000, |_| json!({}));
    let (code, text) = sent(&server, "POST", DEFINITIONS, &definition).await;
    assert_eq!(code, 422);
    assert!(text.contains(r#"fields are allowed at the root of the schema if the status subresource is enabled"#));
}

#[tokio::test]
async fn causes_below_a_long_key_are_limited() {
    let server = ApiServer::start().await.unwrap();
    let below = |key: &str, count: usize, inner: Value| {
        let properties = map(count, |n| (format!("a{n}"), inner.clone()));
        definition(&json!({key: {"type": "object", "properties": properties}}))
    };
    let wrong = below(&"k".repeat(20_000), 10_000, json!({"type": "string", "id": "x"}));
    let (code, text) = sent(&server, "POST", DEFINITIONS, &wrong).await;
    assert_eq!((code, causes(&text)), (422, 209));
    let wrong = below(&"k".repeat(20_000), 10_000, json!({"anyOf": [{"nullable": true}]}));
    let (code, text) = sent(&server, "POST", DEFINITIONS, &wrong).await;
    assert_eq!((code, causes(&text)), (422, 209));
    // The paths of valid schemas are not formatted.
    let valid = below(&"k".repeat(1 << 20), 30_000, json!({"type": "string"}));
    let (code, text) = sent(&server, "POST", DEFINITIONS, &valid).await;
    assert_eq!(code, 201, "{text}");
}

#[tokio::test]
async fn rules_of_all_defaults_share_one_budget() {
    let server = ApiServer::start().await.unwrap();
    // A rule of many units and little time.
    let rule = vec![format!("!self.contains('{}')", "b".repeat(1000)); 9].join(" && ");
    let part = json!({"type": "string", "default": "a".repeat(10_000), "x-kubernetes-validations": [{"rule": rule}]});
    let wrong = definition(&map(20, |n| (format!("p{n}"), part.clone())));
    let (code, text) = sent(&server, "POST", DEFINITIONS, &wrong).await;
    assert_eq!((code, causes(&text)), (422, 1));
    assert!(text.contains("validation failed due to running out of cost budget, no further"), "{text}");
}

#[tokio::test]
async fn causes_of_a_field_manager_are_limited() {
    let server = ApiServer::start().await.unwrap();
    let config = json!({"metadata": {"name": "a"}});
    let target = |manager: &str| format!("/api/v1/namespaces/default/configmaps?dryRun=All&fieldManager={manager}");
    let (code, text) = sent(&server, "POST", &target(&"%01".repeat(6_000)), &config).await;
    assert_eq!(code, 422);
    assert!(text.contains("fieldManager: Too long: may not be more than 128 bytes"));
    assert!(text.contains("invalid character U+0001 (at position 0)"));
    let (code, text) = sent(&server, "POST", &target("a%C2%A0"), &config).await;
    assert_eq!(code, 422);
    assert!(text.contains("invalid character U+00A0 (at position 1)"), "{text}");
    let mut managed = config;
    managed["metadata"]["managedFields"] = json!([{"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "\u{1}".repeat(6_000)}]);
    sent(&server, "POST", &target("a"), &managed).await;
}

#[tokio::test]
async fn conditions_of_a_signing_request_cost_linear_time() {
    let server = ApiServer::start().await.unwrap();
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let mut request = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "a"}, "spec": {"request": REQUEST, "signerName": "example.com/s", "usages": ["client auth"]}});
    let (code, text) = sent(&server, "POST", path, &request).await;
    assert_eq!(code, 201, "{text}");
    request["status"]["conditions"] = many(30_000, |n| json!({"type": format!("t{n}"), "status": "True"}));
    for _ in 0..2 {
        let (code, text) = sent(&server, "PUT", &format!("{path}/a/approval"), &request).await;
        assert_eq!(code, 200, "{text}");
    }
}

#[tokio::test]
async fn claims_of_a_container_cost_linear_time() {
    let server = ApiServer::start().await.unwrap();
    let claims = many(40_000, |n| json!({"name": "c35999", "request": format!("r{n}")}));
    let known = many(36_000, |n| json!({"name": format!("c{n}"), "resourceClaimName": "x"}));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"resourceClaims": known,
        "containers": [{"name": "a", "image": "b", "resources": {"claims": claims}}]}});
    let (code, text) = sent(&server, "POST", "/api/v1/namespaces/default/pods?dryRun=All", &pod).await;
    assert_eq!(code, 201, "{}", &text[..text.len().min(1000)]);
}

#[tokio::test]
async fn statuses_of_containers_cost_linear_time() {
    let server = ApiServer::start().await.unwrap();
    let path = "/api/v1/namespaces/default/pods";
    let requests = json!({"example.com/a": "1"});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers":
        [{"name": "a", "image": "b", "resources": {"requests": requests, "limits": requests}}]}});
    let (code, text) = sent(&server, "POST", path, &pod).await;
    assert_eq!(code, 201, "{text}");
    let devices = many(110_000, |n| json!({"resourceID": format!("d{n}")}));
    pod["status"]["containerStatuses"] = json!([{"name": "a", "ready": true, "restartCount": 0, "image": "b",
        "imageID": "b", "allocatedResourcesStatus": [{"name": "example.com/a", "resources": devices}]}]);
    let (code, text) = sent(&server, "PUT", &format!("{path}/a/status?dryRun=All"), &pod).await;
    assert_eq!((code, causes(&text)), (422, 4096));
}

#[tokio::test]
async fn message_that_shows_a_large_map_costs_linear_time() {
    let server = ApiServer::start().await.unwrap();
    let labels = map(60_000, |n| (format!("l{n}"), json!("null")));
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "a", "image": "b"}]}}}});
    let path = "/apis/apps/v1/namespaces/default/deployments?dryRun=All";
    let (code, text) = sent(&server, "POST", path, &deployment).await;
    assert_eq!((code, causes(&text)), (422, 1));
}

/// A request for a certificate as PEM, in base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISE1HNENBUUF3RERFS01BZ0dBMVVFQXd3QllUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCQjFxZ1AzUjQydmV2UGtUcUhYdmdyd0JuUE02RVA2ZDQzREZyZGpDbnJ6a2Y0Q0Q2VWcyYithQ3Z4N25QVG5uCjg1dG03Lytkb0ZwU1NXWnMzdlMrcW5XZ0FEQUtCZ2dxaGtqT1BRUURBZ05KQURCR0FpRUEzNWlZV2xCTGxQb0QKZEZ5dFVVWlgzR0FIUm0vT3VZL21xTXhKSEV4dUM3a0NJUUNSbGtQVElpRktRdW9OTisxS3AxT1cyZXpjU2k5SApDaXB5NUErT0JoZVpGdz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
/// Time for a loaded machine. On an idle one, each request takes less than a second.
const PATIENCE: Duration = Duration::from_secs(20);

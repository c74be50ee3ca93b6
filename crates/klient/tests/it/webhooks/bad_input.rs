//! Reviews that no API server sends.

use bytes::Bytes;
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use klient::webhook::{Verdict, Webhooks, validate};
use serde_json::{Value, json};

const PATH: &str = "/validate--v1-configmap";

fn hooks() -> Webhooks {
    super::shop().hook(validate::<ConfigMap>(async |_: klient::webhook::Request<ConfigMap>| Verdict::allow()))
}

async fn post(path: &str, content_type: &str, body: impl Into<Bytes>) -> Response<Bytes> {
    let request = Request::post(path).header("content-type", content_type).body(body.into()).unwrap();
    hooks().handle(request).await
}

fn review(change: impl FnOnce(&mut Value)) -> String {
    let mut review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "operation": "CREATE", "userInfo": {}, "object": {"metadata": {"name": "a"}}}});
    change(&mut review);
    review.to_string()
}

#[tokio::test]
async fn valid_review_repeats_uid_and_version() {
    for version in ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] {
        let body = review(|review| review["apiVersion"] = json!(version));
        let response = post(PATH, "application/json; charset=utf-8", body).await;
        assert_eq!(response.status(), 200);
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!((&body["apiVersion"], &body["response"]["uid"]), (&json!(version), &json!("u")));
        assert_eq!(body["response"]["allowed"], true);
    }
}

#[tokio::test]
async fn hostile_review_gets_a_clear_error() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = review(|review| review["request"]["object"] = json!("DEEP")).replace("\"DEEP\"", &deep);
    for (body, expected) in [
        (String::new(), "EOF"),
        ("nonsense".to_owned(), "expected"),
        (deep, "recursion limit"),
        (review(|review| review["apiVersion"] = json!("admission.k8s.io/v9")), "expected an AdmissionReview"),
        (review(|review| review["kind"] = json!("Pod")), "expected an AdmissionReview"),
        (review(|review| review["request"] = Value::Null), "the review has no request"),
        (review(|review| review["request"]["uid"] = json!("")), "the request has no uid"),
        (review(|review| review["request"]["uid"] = json!(3)), "invalid type"),
        (review(|review| review["request"]["operation"] = json!("EAT")), "unknown operation"),
    ] {
        let response = post(PATH, "application/json", body).await;
        assert_eq!(response.status(), 400, "{expected}");
        let text = String::from_utf8_lossy(response.body()).into_owned();
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn object_of_another_form_is_a_failure_with_a_reason() {
    let body = review(|review| review["request"]["object"] = json!({"data": 3}));
    let response = post(PATH, "application/json", body).await;
    assert_eq!(response.status(), 500);
    let text = String::from_utf8_lossy(response.body()).into_owned();
    assert!(text.starts_with("cannot decode the object as /v1 ConfigMap: "), "{text}");
}

#[tokio::test]
async fn wrong_request_is_refused_by_its_code() {
    assert_eq!(post("/other", "application/json", review(|_| {})).await.status(), 404);
    assert_eq!(post(PATH, "application/yaml", review(|_| {})).await.status(), 415);
    assert_eq!(post(PATH, "application/json", vec![b' '; 11 << 20]).await.status(), 413);
    let request = Request::get(PATH).body(Bytes::new()).unwrap();
    assert_eq!(hooks().handle(request).await.status(), 405);
}

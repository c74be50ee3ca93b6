//! Responses of a webhook to the embedded API server: a request has a result whatever the webhook sends, and an object that was created
//! can be read.

#![no_main]

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let data = String::from_utf8_lossy(data).into_owned();
    runtime.block_on(async {
        let server = ApiServer::builder().empty().start().await.expect("a server in memory");
        server.webhook_service("default/hook", move |request: Request<Bytes>| {
            let review: Value = serde_json::from_slice(request.body()).expect("a review is JSON");
            // An input that repeats the uid gets further.
            let body = data.replace("UID", review["request"]["uid"].as_str().unwrap_or_default());
            std::future::ready(Response::new(body))
        });
        let hook = json!({"name": "hook.klient.invalid", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": "hook"}},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]});
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": [hook]});
        assert_eq!(post(&server, path, &configuration).await.0, 201);
        let maps = "/api/v1/namespaces/default/configmaps";
        let (code, made) = post(&server, maps, &json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
        if code == 201 {
            let name = made["metadata"]["name"].as_str().expect("an object has a name");
            let request = Request::get(format!("{maps}/{name}")).body(Bytes::new()).expect("a request");
            assert_eq!(server.handle(request).await.status(), 200);
        } else {
            assert_eq!((&made["kind"], &made["code"]), (&json!("Status"), &json!(code)), "{made}");
        }
    });
});

async fn post(server: &ApiServer, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::post(path).header("content-type", "application/json");
    let response = server.handle(request.body(Bytes::from(body.to_string())).expect("a request")).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).expect("a response is JSON"))
}

//! Requests to the embedded API server: it responds to any request, and a failure in JSON has its code.
//!
//! An input is text like that of HTTP: a line with method and path, headers, an empty line, a body; `---` before the next.

#![no_main]

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;

/// The time limit of requests that wait for a change: a watch, or a version that does not exist yet.
const PATIENCE: Duration = Duration::from_millis(20);

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let server = ApiServer::start().await.expect("a server in memory");
        for request in klient_fuzz::requests(data) {
            let Ok(answer) = tokio::time::timeout(PATIENCE, server.handle(request)).await else { continue };
            check(answer).await;
        }
        // The server still works after all requests.
        let request = Request::get("/api/v1/namespaces/default").body(Bytes::new()).expect("a request");
        assert_eq!(server.handle(request).await.status(), 200);
    });
});

async fn check(answer: http::Response<klient_apiserver::ResponseBody>) {
    let (head, body) = answer.into_parts();
    let Ok(Ok(body)) = tokio::time::timeout(PATIENCE, body.collect()).await else { return };
    let is_json = head.headers.get("content-type").is_some_and(|kind| kind == "application/json");
    let body = body.to_bytes();
    if is_json && (head.status.is_client_error() || head.status.is_server_error()) && !body.is_empty() {
        let status: serde_json::Value = serde_json::from_slice(&body).expect("a failure is JSON");
        assert_eq!((&status["kind"], &status["code"]), (&"Status".into(), &head.status.as_u16().into()), "{status}");
    }
}

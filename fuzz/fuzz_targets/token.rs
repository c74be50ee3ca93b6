//! Tokens of service accounts: no text but a token that the server has issued authenticates a request.
//!
//! An input is a token. `${header}`, `${payload}` and `${signature}` in it stand for the parts of a valid one, so that the engine finds
//! mixtures of them.

#![no_main]

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use tokio::runtime::Runtime;

/// A server, and a token that it has issued.
struct World {
    runtime: Runtime,
    server: ApiServer,
    token: String,
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static WORLD: OnceLock<World> = OnceLock::new();
    let world = WORLD.get_or_init(world);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = world.token.split('.');
    let mut token = text.to_owned();
    for name in ["${header}", "${payload}", "${signature}"] {
        token = token.replace(name, parts.next().expect("a token has three parts"));
    }
    let Ok(value) = HeaderValue::try_from(format!("Bearer {token}")) else { return };
    world.runtime.block_on(async {
        let request = Request::get("/version").header("authorization", value).body(Bytes::new()).expect("a request");
        let code = world.server.handle(request).await.status();
        let is_valid = token.trim() == world.token || token.trim().is_empty();
        assert_eq!(code, if is_valid { 200 } else { 401 }, "{token:?}");
    });
});

fn world() -> World {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let (server, token) = runtime.block_on(async {
        let server = ApiServer::builder().empty().rbac().start().await.expect("a server in memory");
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        let account = r#"{"metadata":{"name":"robot"}}"#;
        assert_eq!(post(&server, accounts, account).await.0, 201);
        let (code, body) = post(&server, &format!("{accounts}/robot/token"), "{}").await;
        assert_eq!(code, 201);
        (server, body["status"]["token"].as_str().expect("a token").to_owned())
    });
    World { runtime, server, token }
}

async fn post(server: &ApiServer, path: &str, body: &'static str) -> (u16, serde_json::Value) {
    let request =
        Request::post(path).header("content-type", "application/json").body(Bytes::from_static(body.as_bytes()));
    let response = server.handle(request.expect("a request")).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, serde_json::from_slice(&body).expect("JSON"))
}

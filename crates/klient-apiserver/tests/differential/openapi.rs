//! OpenAPI documents of both servers.

use std::{io::Write as _, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use klient::{
    Client,
    client::{
        RestClient,
        config::{Config, KubeconfigFiles, Overrides},
    },
};
use klient_apiserver::ApiServer;
use klient_harness::{Programs, Server};
use serde_json::Value;

use crate::{folder, script::Step};

const JSON: &str = "application/json";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns the definitions of a script.
fn definitions() -> Vec<Value> {
    let text = std::fs::read_to_string(folder("scripts").join("openapi.json")).unwrap();
    let steps: Vec<Step> = serde_json::from_str(&text).unwrap();
    steps.into_iter().filter(|step| step.path == DEFINITIONS).filter_map(|step| step.body).collect()
}

async fn real(rest: &RestClient, path: &str, accept: &str) -> Bytes {
    rest.get().path(path).accept(accept).bytes().await.unwrap()
}

async fn ours(server: &ApiServer, path: &str, accept: &str) -> Bytes {
    let request = http::Request::get(path).header("accept", accept).body(Bytes::new()).unwrap();
    server.handle(request).await.into_body().collect().await.unwrap().to_bytes()
}

/// Returns the members in which two values differ, to show less than whole documents.
fn differences(path: &str, real: &Value, ours: &Value, out: &mut Vec<String>) {
    match (real, ours) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                differences(&format!("{path}/{key}"), a, b, out);
            }
        }
        (a, b) if a != b => out.push(format!("{path}\n  real {a}\n  ours {b}")),
        _ => {}
    }
}

fn paths(index: &[u8]) -> Vec<String> {
    let index: Value = serde_json::from_slice(index).unwrap();
    index["paths"].as_object().unwrap().keys().cloned().collect()
}

async fn compare(rest: &RestClient) {
    let server = ApiServer::start().await.unwrap();
    let (two, three) = ("application/com.github.proto-openapi.spec.v2", "application/com.github.proto-openapi.spec.v3");
    let names = paths(&real(rest, "/openapi/v3", JSON).await);
    assert_eq!(names, paths(&ours(&server, "/openapi/v3", JSON).await));
    let all = names.iter().map(|name| (format!("/openapi/v3/{name}"), three));
    for (path, kind) in all.chain([("/openapi/v2".to_owned(), two)]) {
        let protobuf = format!("{kind}.v1.0+protobuf");
        for accept in [JSON, &protobuf] {
            let (real, ours) = (real(rest, &path, accept).await, ours(&server, &path, accept).await);
            assert!(real == ours, "{path} as {accept}: {} and {} bytes differ", real.len(), ours.len());
        }
    }
    for definition in definitions() {
        let _: Value = rest.post().path(DEFINITIONS).json(&definition).value().await.unwrap();
        let request = http::Request::post(DEFINITIONS).body(definition.to_string().into()).unwrap();
        assert_eq!(server.handle(request).await.status(), 201);
    }
    let expected = paths(&ours(&server, "/openapi/v3", JSON).await);
    let count = definitions().len();
    // The real server publishes definitions some time later, and there is no event to wait for.
    loop {
        let is_published = paths(&real(rest, "/openapi/v3", JSON).await) == expected;
        let version_two: Value = serde_json::from_slice(&real(rest, "/openapi/v2", JSON).await).unwrap();
        let custom = version_two["definitions"].as_object().unwrap().keys().filter(|name| name.starts_with("invalid."));
        if is_published && custom.count() >= 2 * count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let mut wrong = Vec::new();
    let custom =
        expected.iter().filter(|name| !names.contains(name)).map(|name| (format!("/openapi/v3/{name}"), three));
    for (path, kind) in custom.chain([("/openapi/v2".to_owned(), two)]) {
        let parse = |bytes: &Bytes| serde_json::from_slice::<Value>(bytes).unwrap();
        let (real_json, our_json) = (real(rest, &path, JSON).await, ours(&server, &path, JSON).await);
        differences(&path, &parse(&real_json), &parse(&our_json), &mut wrong);
        let protobuf = format!("{kind}.v1.0+protobuf");
        let (real_bytes, our_bytes) = (real(rest, &path, &protobuf).await, ours(&server, &path, &protobuf).await);
        if real_bytes != our_bytes {
            wrong.push(format!("{path}: protobuf differs"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn openapi_documents_match_real_server() {
    let Some(programs) = Programs::for_tests().unwrap() else {
        // The output of `eprintln!` is shown only if the test fails.
        let why = b"skipped: OpenAPI documents of both servers, since there is no kube-apiserver\n";
        return std::io::stderr().write_all(why).unwrap();
    };
    let server = Server::start(&programs).unwrap();
    let files = KubeconfigFiles::explicit(server.kubeconfig());
    let config = Config::load(&files, &Overrides::default().context("token")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { compare(&Client::from_config(&config).unwrap().rest()).await });
}

//! OpenAPI documents: found through the index, and followed when they move.

use std::sync::atomic::{AtomicU32, Ordering};

use klient::{
    ErrorKind,
    client::{discovery::OpenApiClient, http::Body},
    resource::GroupVersion,
};
use serde_json::json;

use crate::{
    support::routed::Routed,
    support::scripted::{json_response, response},
};

fn index(hash: u32) -> http::Response<Body> {
    let entry = |path: &str| json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")});
    let paths = json!({"api": entry("api"), "api/v1": entry("api/v1"), "apis/apps": entry("apis/apps"),
        "apis/apps/v1": entry("apis/apps/v1"), "version": entry("version")});
    // The content type of a real server.
    response(200, "text/plain; charset=utf-8", json!({"paths": paths}).to_string())
}

fn apps() -> GroupVersion {
    GroupVersion::new("apps", "v1")
}

#[tokio::test]
async fn document_is_found_through_the_index() {
    let server = Routed::new(|request| match request.uri().to_string().as_str() {
        "/openapi/v3" => index(7),
        "/openapi/v3/apis/apps/v1?hash=7" => json_response(200, &json!({"openapi": "3.0.0"})),
        "/openapi/v2" => json_response(200, &json!({"swagger": "2.0"})),
        other => panic!("{other}"),
    });
    let openapi = OpenApiClient::new(server.client());
    let versions: Vec<String> = openapi.index().await.unwrap().group_versions().map(|v| v.to_string()).collect();
    assert_eq!(versions, ["v1", "apps/v1"]);
    assert_eq!(openapi.document(&apps()).await.unwrap(), r#"{"openapi":"3.0.0"}"#);
    assert_eq!(openapi.value(&apps()).await.unwrap()["openapi"], "3.0.0");
    assert_eq!(openapi.document_v2().await.unwrap(), r#"{"swagger":"2.0"}"#);
    assert!(openapi.value(&GroupVersion::new("none", "v1")).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn moved_document_is_looked_up_again() {
    let hash = AtomicU32::new(0);
    let server = Routed::new(move |request| match request.uri().to_string().as_str() {
        "/openapi/v3" => index(hash.fetch_add(1, Ordering::SeqCst)),
        "/openapi/v3/apis/apps/v1?hash=1" => json_response(200, &json!({"openapi": "3.0.0"})),
        _ => response(301, "text/html", ""),
    });
    OpenApiClient::new(server.client()).value(&apps()).await.unwrap();
    assert_eq!(server.seen().len(), 4);

    let lost = Routed::new(|request| if request.uri() == "/openapi/v3" { index(1) } else { response(301, "", "") });
    OpenApiClient::new(lost.client()).value(&apps()).await.unwrap_err();
    assert_eq!(lost.seen().len(), 4);
}

#[tokio::test]
async fn invalid_document_is_an_error() {
    for (content_type, body) in [("text/html", "{}"), ("application/json", "<html>"), ("application/json", "{\"a\":")] {
        let server =
            Routed::new(
                move |request| {
                    if request.uri() == "/openapi/v3" { index(1) } else { response(200, content_type, body) }
                },
            );
        let openapi = OpenApiClient::new(server.client());
        assert_eq!(openapi.document(&apps()).await.unwrap_err().kind(), ErrorKind::Decode);
        assert_eq!(openapi.document_v2().await.unwrap_err().kind(), ErrorKind::Decode);
    }
    for index in [json!({}), json!({"paths": []}), json!({"paths": {"a": {}}})] {
        let server = Routed::new(move |_| json_response(200, &index));
        assert_eq!(OpenApiClient::new(server.client()).index().await.unwrap_err().kind(), ErrorKind::Decode);
    }
}

#[tokio::test]
async fn document_is_never_fetched_from_another_server() {
    for address in ["https://elsewhere/openapi", "elsewhere", ""] {
        let server = Routed::new(move |_| {
            json_response(200, &json!({"paths": {"apis/apps/v1": {"serverRelativeURL": address}}}))
        });
        let error = OpenApiClient::new(server.client()).value(&apps()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert_eq!(server.paths(), ["/openapi/v3"]);
    }
}

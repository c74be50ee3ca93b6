//! How responses are decoded: as objects, or as errors with a reason.

use std::time::Duration;

use klient::{
    Api, ErrorKind,
    client::{Deleted, http::Body},
    object::DynamicObject,
    request::{Target, media_type},
    resource::{ApiResource, GroupVersionKind, Scope},
    status::{Status, StatusReason},
};
use serde_json::json;

use crate::support::scripted::{
    Script, chain, endless, fed, json_response, map, map_json, map_response, response, streamed, with,
};

async fn get_error(response: http::Response<Body>) -> klient::Error {
    let script = Script::new([response]);
    let error = script.maps().get("web").await.unwrap_err();
    script.played();
    error
}

fn invalid() -> Status {
    serde_json::from_value(json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid",
        "message": "web is invalid",
        "details": {"name": "web", "kind": "ConfigMap", "retryAfterSeconds": 7, "causes": [
            {"reason": "FieldValueInvalid", "message": "too odd", "field": "data.key"},
        ]},
    }))
    .unwrap()
}

fn as_protobuf(status: Status) -> Vec<u8> {
    klient::wire::meta::encode("v1", &k8s_openapi::apimachinery::pkg::apis::meta::v1::Status::from(status))
}

#[tokio::test]
async fn status_in_either_format_becomes_a_typed_error() {
    let json = serde_json::to_vec(&invalid()).unwrap();
    for response in [
        response(422, media_type::JSON, json.clone()),
        response(422, "application/json; charset=utf-8", json.clone()),
        // Some proxies change the content type.
        response(422, "text/plain", json),
        response(422, media_type::PROTOBUF, as_protobuf(invalid())),
    ] {
        let error = get_error(response).await;
        assert!(error.is_invalid(), "{error:?}");
        assert_eq!(error.to_string(), "web is invalid");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        let status = error.status().unwrap();
        assert_eq!((status.reason.clone(), status.code), (StatusReason::Invalid, 422));
        assert_eq!(status.causes()[0].field, "data.key");
    }
}

#[tokio::test]
async fn error_without_a_status_has_the_kind_of_its_code() {
    let html = "<html><body><h1>502 Bad Gateway</h1></body></html>";
    let cases: [(u16, &str, &[u8], ErrorKind); 8] = [
        (502, "text/html", html.as_bytes(), ErrorKind::Unavailable),
        (500, "text/plain", b"", ErrorKind::Unavailable),
        (500, "text/plain", b"\xff\xfe\x00 no text", ErrorKind::Unavailable),
        (404, media_type::JSON, br#"{"kind":"Status","apiVer"#, ErrorKind::NotFound),
        (403, media_type::PROTOBUF, b"k8s\0\xff\xff", ErrorKind::Forbidden),
        (401, media_type::JSON, b"null", ErrorKind::Unauthorized),
        (409, media_type::JSON, b"[]", ErrorKind::Conflict),
        (302, "text/html", b"over there", ErrorKind::Unavailable),
    ];
    for (code, content_type, body, kind) in cases {
        let error = get_error(response(code, content_type, body)).await;
        assert_eq!(error.kind(), kind, "{error:?}");
        assert_eq!(error.status().unwrap().code, i32::from(code), "{error:?}");
        assert!(!error.to_string().is_empty());
    }
}

#[tokio::test]
async fn error_without_a_status_has_the_delay_of_the_header() {
    // A conflict is never retried.
    let error = get_error(with(response(409, "text/plain", "busy"), "retry-after", "3")).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
}

#[tokio::test]
async fn compressed_body_of_an_error_is_decoded() {
    let body = crate::streams::gzip(&serde_json::to_vec(&invalid()).unwrap());
    for code in [401, 422] {
        let response = with(response(code, media_type::JSON, body.clone()), "content-encoding", "gzip");
        assert_eq!(get_error(response).await.to_string(), "web is invalid", "{code}");
    }
}

#[tokio::test]
async fn error_with_a_broken_or_endless_body_keeps_its_kind() {
    let (sender, body) = fed();
    sender.send(Err("reset".into())).unwrap();
    assert!(get_error(streamed(404, media_type::JSON, body)).await.is_not_found());
    assert!(get_error(streamed(404, "text/plain", endless("a"))).await.is_not_found());
}

#[tokio::test(start_paused = true)]
async fn error_whose_body_never_arrives_keeps_its_kind() {
    let (_sender, body) = fed();
    let error = get_error(streamed(404, media_type::JSON, body)).await;
    assert!(error.is_not_found(), "{error:?}");
}

#[tokio::test]
async fn failure_status_with_a_success_code_is_an_error() {
    let not_found = serde_json::to_value(Status::not_found(&"configmaps".into(), "web")).unwrap();
    assert!(get_error(json_response(200, &not_found)).await.is_not_found());
    let protobuf = response(200, media_type::PROTOBUF, as_protobuf(invalid()));
    assert!(get_error(protobuf).await.is_invalid());

    let script = Script::new([json_response(200, &not_found)]);
    let error = script.maps().delete("web").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");

    let widgets = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Namespaced);
    let script = Script::new([json_response(200, &not_found)]);
    let api = Api::<DynamicObject>::dynamic(script.client(), widgets, Target::Namespace("default".to_owned()));
    let error = api.get("web").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
}

#[tokio::test]
async fn success_status_instead_of_an_object_is_an_error() {
    let success = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 200});
    let error = get_error(json_response(200, &success)).await;
    assert_eq!(error.kind(), ErrorKind::Decode, "{error:?}");
}

#[tokio::test]
async fn delete_returns_an_object_or_a_status() {
    let success = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 200});
    let status: Status = serde_json::from_value(success.clone()).unwrap();
    for (response, left) in [
        (json_response(200, &success), Deleted::Status(status.clone())),
        (response(200, media_type::PROTOBUF, as_protobuf(status.clone())), Deleted::Status(status)),
        (json_response(202, &map_json("web")), Deleted::Object(Box::new(map("web")))),
        (map_response("web"), Deleted::Object(Box::new(map("web")))),
    ] {
        let script = Script::new([response]);
        assert_eq!(script.maps().delete("web").await.unwrap(), left);
    }
}

#[tokio::test]
async fn json_is_decoded_although_protobuf_was_requested() {
    let script = Script::new([json_response(200, &map_json("web"))]);
    assert_eq!(script.maps().get("web").await.unwrap(), map("web"));
    let seen = script.played();
    assert_eq!(seen[0].request.headers()["accept"], media_type::ACCEPT_PROTOBUF_OR_JSON);
}

#[tokio::test]
async fn malformed_response_is_a_decode_error_with_the_resource() {
    let protobuf = klient::wire::encode_body(&map("web")).unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}});
    for response in [
        response(200, "text/html", "<html>log in</html>"),
        response(200, "", map_json("web").to_string()),
        response(200, media_type::JSON, ""),
        response(200, media_type::JSON, &b"{\"apiVersion\":\"v1\",\"kind\":\"Conf"[..]),
        response(200, media_type::JSON, &b"\xff\xfe"[..]),
        response(200, media_type::PROTOBUF, protobuf[..protobuf.len() - 3].to_vec()),
        response(200, media_type::PROTOBUF, map_json("web").to_string()),
        json_response(200, &secret),
    ] {
        let error = get_error(response).await;
        assert_eq!(error.kind(), ErrorKind::Decode, "{error:?}");
        assert!(error.to_string().contains("configmaps"), "{error:?}");
    }
}

#[tokio::test]
async fn endless_object_is_an_error() {
    let error = get_error(streamed(200, media_type::JSON, endless(" "))).await;
    assert_eq!(error.kind(), ErrorKind::Decode, "{error:?}");
    assert!(chain(&error).contains("longer than"), "{error:?}");
}

#[tokio::test]
async fn truncated_object_is_an_error() {
    let (sender, body) = fed();
    sender.send(Ok("{".into())).unwrap();
    sender.send(Err("reset".into())).unwrap();
    let error = get_error(streamed(200, media_type::JSON, body)).await;
    assert_eq!(error.kind(), ErrorKind::Transport, "{error:?}");
}

#[tokio::test]
async fn get_opt_returns_none_only_if_not_found() {
    let not_found = serde_json::to_value(Status::not_found(&"configmaps".into(), "web")).unwrap();
    let script = Script::new([json_response(404, &not_found), response(500, "text/plain", ""), map_response("web")]);
    let maps = script.maps();
    assert_eq!(maps.get_opt("web").await.unwrap(), None);
    assert!(maps.get_opt("web").await.unwrap_err().is_unavailable());
    assert_eq!(maps.get_opt("web").await.unwrap(), Some(map("web")));
}

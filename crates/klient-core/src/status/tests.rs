//! Statuses are read and printed as real ones, and predicates decide as client-go's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{GroupKind, GroupResource, Verb};

fn deployments() -> GroupResource {
    GroupResource::new("apps", "deployments")
}

#[test]
fn statuses_outside_api_errors_have_the_servers_messages() {
    for (status, code, reason, message) in [
        (Status::version_too_large(9, 7, 1), 504, "Timeout", "Timeout: Too large resource version: 9, current: 7"),
        (
            Status::not_acceptable(&["application/json", "application/yaml"]),
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml",
        ),
        (
            Status::unsupported_media_type(&["application/json"]),
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json",
        ),
    ] {
        assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (code, reason, message));
        assert_eq!(i32::from(status.http_code().unwrap().as_u16()), code);
    }
}

/// Generated with Kubernetes' Go code (apimachinery 0.37, `api/errors`), in the order of the calls in the test.
const GO_STATUSES: &str = include_str!("tests/go_statuses.jsonl");

#[test]
fn statuses_equal_those_of_the_go_code() {
    let (pods, kind) = (GroupResource::from("pods"), GroupKind::new("apps", "Deployment"));
    let required = || StatusCause::required("spec.selector", "");
    let ours = [
        Status::not_found(&deployments(), "we\"b\x01é\u{200b}"),
        Status::already_exists(&deployments(), "web"),
        Status::generate_name_conflict(&pods, "web", 1),
        Status::unauthorized(""),
        Status::forbidden(&GroupResource::new("", ""), "", "no"),
        Status::forbidden(&pods, "", "no"),
        Status::forbidden(&pods, "web", "no"),
        Status::conflict(&pods, "web", "x"),
        Status::apply_conflict(vec![], "m"),
        Status::gone("m"),
        Status::expired("m"),
        Status::invalid(&kind, "web", vec![]),
        Status::invalid(&kind, "web", vec![required(), required()]),
        Status::invalid(&kind, "web", every_cause()),
        Status::bad_request("m"),
        Status::too_many_requests("m", 3),
        Status::service_unavailable("m"),
        Status::method_not_supported(&deployments(), "patch"),
        Status::server_timeout(&deployments(), "get", 2),
        Status::internal_error("m"),
        Status::timeout("m", 1),
        Status::request_entity_too_large("m"),
    ];
    let codes = [400, 401, 403, 404, 405, 406, 409, 410, 415, 418, 422, 429, 500, 502, 503, 504];
    let generic = codes.map(|code| Status::from_http(code, "bo\"dy"));
    let about = [
        Status::from_http(409, "body").about_request(Verb::Create, &deployments(), "web"),
        Status::from_http(503, "body").about_request(Verb::List, &deployments(), ""),
    ];
    let ours: Vec<_> = ours.into_iter().chain(generic).chain(about).collect();
    let theirs: Vec<Status> = GO_STATUSES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.into_iter().zip(theirs) {
        assert_eq!(ours, theirs);
    }
}

fn every_cause() -> Vec<StatusCause> {
    vec![
        StatusCause::required("a", "d"),
        StatusCause::forbidden("b", "d"),
        StatusCause::invalid("c", -1, "d"),
        StatusCause::invalid("c", "x\"y", "d"),
        StatusCause::invalid("c", json!({"a": [1]}), "d"),
        StatusCause::not_found("d", true),
        StatusCause::duplicate("e", "x"),
        StatusCause::not_supported("f", "x", &["a", "b"]),
        StatusCause::not_supported("f", "x", &[]),
        StatusCause::too_long("g", 128),
        StatusCause::too_long("g", 1),
        StatusCause::too_many("h", 3, 1),
        StatusCause::type_invalid("i", 1.5, ""),
    ]
}

#[test]
fn about_request_does_not_change_a_servers_status() {
    let status = Status::conflict(&deployments(), "web", "x");
    assert_eq!(status.clone().about_request(Verb::Create, &"pods".into(), "other"), status);
}

#[test]
fn status_is_written_like_a_servers() {
    assert_eq!(
        serde_json::to_string(&Status::not_found(&deployments(), "web")).unwrap(),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"web\" not found","reason":"NotFound","details":{"name":"web","group":"apps","kind":"deployments"},"code":404}"#
    );
    assert_eq!(
        serde_json::to_value(Status::success()).unwrap(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}),
    );
}

#[test]
fn status_accepts_nulls_and_rejects_other_kinds() {
    let status: Status = serde_json::from_value(json!({
        "kind": "Status", "apiVersion": "meta.k8s.io/v1", "metadata": null, "message": null, "reason": "Strange",
        "details": {"causes": null, "name": "x", "kind": "pods"}, "code": 418,
    }))
    .unwrap();
    assert_eq!(status.reason, StatusReason::Other("Strange".into()));
    assert_eq!(status.to_string(), "request failed: Strange (code 418) (pods \"x\")");
    let error = serde_json::from_value::<Status>(json!({"kind": "Pod", "apiVersion": "v1"})).unwrap_err();
    assert_eq!(error.to_string(), "expected v1 Status, found v1 Pod");
}

#[test]
fn predicates_use_the_code_only_without_a_reason() {
    let code = |code| Status { code, ..Status::default() };
    let other = |code| Status { reason: StatusReason::Other("Strange".into()), ..Status { code, ..Status::default() } };
    assert!(code(404).is_not_found() && other(404).is_not_found());
    assert!(code(409).is_conflict() && !code(409).is_already_exists());
    assert!(!Status::already_exists(&deployments(), "x").is_conflict());
    assert!(code(410).is_gone() && !code(410).is_expired() && code(410).needs_relist());
    assert!(!Status::expired("").is_gone() && Status::expired("").needs_relist());
    assert!(code(422).is_invalid() && code(400).is_bad_request() && code(401).is_unauthorized());
    assert!(code(403).is_forbidden() && code(405).is_method_not_allowed() && code(406).is_not_acceptable());
    assert!(code(415).is_unsupported_media_type() && code(500).is_internal_error() && code(504).is_timeout());
    assert!(code(503).is_service_unavailable() && !code(500).is_server_timeout());
    // These two use the code even if the reason differs.
    let forbidden = |code| Status { code, ..Status::forbidden(&deployments(), "", "") };
    assert!(forbidden(429).is_too_many_requests() && forbidden(413).is_request_entity_too_large());
    assert!(!forbidden(404).is_not_found());
    assert!(Status::failure("StorageReadError".into(), 500, "").is_store_read_error());
}

#[test]
fn retry_after_is_read_from_the_details() {
    let seconds = |status: Status| status.retry_after().map(|wait| wait.as_secs());
    assert_eq!(seconds(Status::too_many_requests("", 5)), Some(5));
    assert_eq!(seconds(Status::too_many_requests("", 0)), None);
    assert_eq!(seconds(Status::server_timeout(&deployments(), "get", 0)), Some(0));
    assert_eq!(seconds(Status::gone("")), None);
    assert_eq!(seconds(Status::gone("").with_retry_after(-1)), None);
}

#[test]
fn too_large_version_is_recognized_in_all_forms() {
    assert!(Status::version_too_large(2, 1, 1).is_version_too_large());
    assert!(Status::timeout("Too large resource version: 2, current: 1", 1).is_version_too_large());
    assert!(!Status::timeout("slow", 1).is_version_too_large());
    assert!(!Status::bad_request("Too large resource version").is_version_too_large());
}

#[test]
fn status_prints_the_object_unless_the_message_names_it() {
    assert_eq!(Status::not_found(&deployments(), "web").to_string(), r#"deployments.apps "web" not found"#);
    let status = Status { message: "boom".into(), ..Status::not_found(&deployments(), "web") };
    assert_eq!(status.to_string(), r#"boom (deployments.apps "web")"#);
    assert_eq!(Status::success().to_string(), "success");
}

#[test]
fn response_without_a_status_is_converted() {
    for (code, body, message) in [
        (404, "404 page not found", "the server could not find the requested resource"),
        (403, " no entry\n", "no entry"),
        (406, "", "the server was unable to respond with a content type that the client supports"),
        (404, r#"{"message": "some other JSON"}"#, "the server could not find the requested resource"),
        (404, r#"{"kind": "Status", "code": "x"}"#, "the server could not find the requested resource"),
    ] {
        let status = Status::from_http(code, body);
        assert_eq!(status.message, message);
        assert!(status.is_unexpected_response() && status.code == i32::from(code));
    }
}

#[test]
fn from_http_reads_the_body_and_the_http_code() {
    let status = Status::from_http(404, r#"{"kind": "Status", "reason": "NotFound", "message": "m"}"#);
    assert_eq!(status, Status::failure(StatusReason::NotFound, 404, "m"));
}

#[test]
fn status_is_small() {
    assert!(size_of::<Status>() <= 80);
}

#[test]
fn foreign_body_is_truncated() {
    let status = Status::from_http(500, &"é".repeat(3000));
    assert_eq!(status.causes()[0].message.len(), 2048);
    let status = Status::from_http(500, &format!("x{}", "é".repeat(3000)));
    assert_eq!(status.causes()[0].message.len(), 2047);
}

prop_compose! {
    fn any_status()(
        success in any::<bool>(),
        code in any::<i32>(),
        reason in "(NotFound|Expired|[A-Za-z]{0,8})",
        message in ".{0,12}",
        details in prop::option::of((".{0,4}", ".{0,4}", ".{0,4}", ".{0,4}", any::<i32>())),
        causes in prop::collection::vec((".{0,4}", ".{0,4}", ".{0,4}"), 0..3),
        token in prop::option::of("[a-z]{1,4}"),
    ) -> Status {
        Status {
            outcome: if success { StatusOutcome::Success } else { StatusOutcome::Failure },
            code,
            reason: reason.as_str().into(),
            message,
            details: details.map(|(name, group, kind, uid, retry_after_seconds)| Box::new(StatusDetails {
                name,
                group,
                kind,
                uid,
                causes: causes.into_iter().map(|(reason, field, message)| StatusCause { reason, message, field }).collect(),
                retry_after_seconds,
            })),
            metadata: token.map(|token| Box::new(meta::ListMeta { continue_: Some(token), ..meta::ListMeta::default() })),
        }
    }
}

proptest! {
    #[test]
    fn any_status_round_trips_through_json_and_openapi(status in any_status()) {
        let text = serde_json::to_string(&status).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Status>(&text).unwrap(), &status);
        prop_assert_eq!(&serde_json::from_str::<meta::Status>(&text).unwrap(), &meta::Status::from(status.clone()));
        prop_assert_eq!(Status::from(meta::Status::from(status.clone())), status.clone());
        prop_assert!(!status.to_string().is_empty());
    }

    #[test]
    fn from_http_never_panics(code in any::<u16>(), body in "(\\{\"kind\": ?\"Status\".{0,20}\\}|.{0,40})") {
        let status = Status::from_http(code, &body);
        prop_assert!(status.code != 0 || code == 0);
    }
}

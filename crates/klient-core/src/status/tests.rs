//! Statuses read and print as real ones do, and predicates decide as client-go's do.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{GroupKind, GroupResource};

fn deployments() -> GroupResource {
    GroupResource::new("apps", "deployments")
}

#[test]
fn answers_word_for_word_as_a_real_server() {
    let kind = GroupKind::new("apps", "Deployment");
    let cause = StatusCause::required("spec.selector", "");
    for (status, code, reason, message) in [
        (Status::not_found(&"pods".into(), "web"), 404, "NotFound", r#"pods "web" not found"#),
        (
            Status::already_exists(&deployments(), "web"),
            409,
            "AlreadyExists",
            r#"deployments.apps "web" already exists"#,
        ),
        (
            Status::conflict(&"pods".into(), "web", Status::OBJECT_MODIFIED),
            409,
            "Conflict",
            "Operation cannot be fulfilled on pods \"web\": the object has been modified; please apply your changes to \
             the latest version and try again",
        ),
        (
            Status::generate_name_conflict(&"pods".into(), "web-x", 1),
            409,
            "AlreadyExists",
            "pods \"web-x\" already exists, the server was not able to generate a unique name for the object",
        ),
        (Status::unauthorized(""), 401, "Unauthorized", "not authorized"),
        (Status::forbidden(&GroupResource::new("", ""), "", "no"), 403, "Forbidden", "forbidden: no"),
        (Status::forbidden(&"pods".into(), "", "no"), 403, "Forbidden", "pods is forbidden: no"),
        (Status::forbidden(&"pods".into(), "web", "no"), 403, "Forbidden", r#"pods "web" is forbidden: no"#),
        (Status::gone("m"), 410, "Gone", "m"),
        (Status::expired("m"), 410, "Expired", "m"),
        (Status::invalid(&kind, "web", vec![]), 422, "Invalid", r#"Deployment.apps "web" is invalid"#),
        (
            Status::invalid(&kind, "web", vec![cause.clone(), cause.clone()]),
            422,
            "Invalid",
            r#"Deployment.apps "web" is invalid: spec.selector: Required value"#,
        ),
        (
            Status::invalid(&kind, "web", vec![cause, StatusCause::invalid("spec.replicas", -1, "too few")]),
            422,
            "Invalid",
            "Deployment.apps \"web\" is invalid: [spec.selector: Required value, spec.replicas: Invalid value: -1: \
             too few]",
        ),
        (Status::bad_request("m"), 400, "BadRequest", "m"),
        (Status::too_many_requests("m", 3), 429, "TooManyRequests", "m"),
        (Status::service_unavailable("m"), 503, "ServiceUnavailable", "m"),
        (
            Status::method_not_supported(&deployments(), "patch"),
            405,
            "MethodNotAllowed",
            r#"patch is not supported on resources of kind "deployments.apps""#,
        ),
        (
            Status::server_timeout(&deployments(), "get", 2),
            500,
            "ServerTimeout",
            "The get operation against deployments.apps could not be completed at this time, please try again.",
        ),
        (Status::timeout("m", 1), 504, "Timeout", "Timeout: m"),
        (Status::version_too_large(9, 7, 1), 504, "Timeout", "Timeout: Too large resource version: 9, current: 7"),
        (Status::internal_error("m"), 500, "InternalError", "Internal error occurred: m"),
        (
            Status::request_entity_too_large("limit is 3145728"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
        ),
        (
            Status::not_acceptable(&["application/json", "application/yaml"]),
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml",
        ),
    ] {
        assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (code, reason, message));
        assert!(!status.is_success());
        assert_eq!(i32::from(status.http_code().unwrap().as_u16()), code);
    }
}

#[test]
fn causes_say_what_a_real_server_says() {
    for (cause, message) in [
        (StatusCause::required("f", "must be set"), "Required value: must be set"),
        (StatusCause::forbidden("f", "no"), "Forbidden: no"),
        (StatusCause::invalid("f", "a\"b", "no"), r#"Invalid value: "a\"b": no"#),
        (StatusCause::invalid("f", json!({"a": [1]}), "no"), r#"Invalid value: {"a":[1]}: no"#),
        (StatusCause::duplicate("f", "x"), r#"Duplicate value: "x""#),
        (StatusCause::not_found("f", true), "Not found: true"),
        (StatusCause::not_supported("f", "x", &["a", "b"]), r#"Unsupported value: "x": supported values: "a", "b""#),
        (StatusCause::too_long("f", 128), "Too long: may not be more than 128 bytes"),
        (StatusCause::too_many("f", 3, 1), "Too many: 3: must have at most 1 item"),
        (StatusCause::type_invalid("f", 1, ""), "Invalid value: 1"),
    ] {
        assert_eq!((cause.field.as_str(), cause.message.as_str()), ("f", message));
    }
}

#[test]
fn writes_the_shape_of_a_real_answer() {
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
fn reads_nulls_and_refuses_other_kinds() {
    let status: Status = serde_json::from_value(json!({
        "kind": "Status", "apiVersion": "meta.k8s.io/v1", "metadata": null, "message": null, "reason": "Strange",
        "details": {"causes": null, "name": "x", "kind": "pods"}, "code": 418,
    }))
    .unwrap();
    assert_eq!(status.reason, StatusReason::Other("Strange".into()));
    assert_eq!(status.to_string(), "request failed: Strange (code 418) (pods \"x\")");
    let error = serde_json::from_value::<Status>(json!({"kind": "Pod", "apiVersion": "v1"})).unwrap_err();
    assert_eq!(error.to_string(), "expected v1 Status, got v1 Pod");
}

#[test]
fn goes_by_the_reason_and_by_the_code_only_without_one() {
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
    // These two go by the code even against the reason.
    let forbidden = |code| Status { code, ..Status::forbidden(&deployments(), "", "") };
    assert!(forbidden(429).is_too_many_requests() && forbidden(413).is_request_entity_too_large());
    assert!(!forbidden(404).is_not_found());
    assert!(Status::failure("StorageReadError".into(), 500, "").is_store_read_error());
}

#[test]
fn knows_how_long_to_wait() {
    let seconds = |status: Status| status.retry_after().map(|wait| wait.as_secs());
    assert_eq!(seconds(Status::too_many_requests("", 5)), Some(5));
    assert_eq!(seconds(Status::too_many_requests("", 0)), None);
    assert_eq!(seconds(Status::server_timeout(&deployments(), "get", 0)), Some(0));
    assert_eq!(seconds(Status::gone("")), None);
    assert_eq!(seconds(Status::gone("").with_retry_after(-1)), None);
}

#[test]
fn tells_a_version_that_is_too_large_in_every_way_it_was_ever_said() {
    assert!(Status::version_too_large(2, 1, 1).is_version_too_large());
    assert!(Status::timeout("Too large resource version: 2, current: 1", 1).is_version_too_large());
    assert!(!Status::timeout("slow", 1).is_version_too_large());
    assert!(!Status::bad_request("Too large resource version").is_version_too_large());
}

#[test]
fn prints_the_object_unless_the_message_names_it() {
    assert_eq!(Status::not_found(&deployments(), "web").to_string(), r#"deployments.apps "web" not found"#);
    let status = Status { message: "boom".into(), ..Status::not_found(&deployments(), "web") };
    assert_eq!(status.to_string(), r#"boom (deployments.apps "web")"#);
    assert_eq!(Status::success().to_string(), "success");
}

#[test]
fn makes_sense_of_answers_that_are_no_status() {
    for (code, body, reason, message) in [
        (404, "404 page not found", "NotFound", "the server could not find the requested resource"),
        (403, "no entry\n", "Forbidden", "no entry"),
        (406, "", "NotAcceptable", "the server was unable to respond with a content type that the client supports"),
        (415, "only yaml", "UnsupportedMediaType", "only yaml"),
        (409, "", "Conflict", "the server reported a conflict"),
        (
            502,
            "bad \"gate\"",
            "InternalError",
            "an error on the server (\"bad \\\"gate\\\"\") has prevented the request from succeeding",
        ),
        (418, "teapot", "", "the server responded with the status code 418 but did not return more information"),
        (404, r#"{"message": "some other JSON"}"#, "NotFound", "the server could not find the requested resource"),
    ] {
        let status = Status::from_http(code, body);
        assert_eq!((status.reason.as_str(), status.message.as_str()), (reason, message));
        assert!(status.is_unexpected_response() && status.code == i32::from(code));
    }
}

#[test]
fn takes_a_status_from_the_body_and_the_code_from_http() {
    let status = Status::from_http(404, r#"{"kind": "Status", "reason": "NotFound", "message": "m"}"#);
    assert_eq!(status, Status::failure(StatusReason::NotFound, 404, "m"));
}

#[test]
fn is_small_enough_for_the_error_half_of_a_result() {
    assert!(size_of::<Status>() <= 80);
}

#[test]
fn keeps_at_most_two_kibibytes_of_a_foreign_body() {
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
    fn any_status_comes_back_from_json_and_from_openapi(status in any_status()) {
        let text = serde_json::to_string(&status).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Status>(&text).unwrap(), &status);
        prop_assert_eq!(&serde_json::from_str::<meta::Status>(&text).unwrap(), &meta::Status::from(status.clone()));
        prop_assert_eq!(Status::from(meta::Status::from(status.clone())), status.clone());
        prop_assert!(!status.to_string().is_empty());
    }

    #[test]
    fn no_body_makes_it_panic(code in any::<u16>(), body in "(\\{\"kind\": ?\"Status\".{0,20}\\}|.{0,40})") {
        let status = Status::from_http(code, &body);
        prop_assert!(status.code != 0 || code == 0);
    }
}

//! The statuses that a real API server answers with, word for word.
//!
//! For the embedded server, and for tests that want to see what a real one would say.
//! In client-go: the `New...` functions of `api/errors`.

use std::{collections::HashSet, fmt};

use super::{Status, StatusCause, StatusDetails, StatusOutcome, StatusReason, quote::Quoted};
use crate::{GroupKind, GroupResource};

/// What real servers answer.
impl Status {
    /// The part of a [`conflict`](Self::conflict) that says an object was changed in between.
    #[doc(alias = "OptimisticLockErrorMsg")]
    pub const OBJECT_MODIFIED: &str =
        "the object has been modified; please apply your changes to the latest version and try again";

    /// 200: done, and there is no object to show.
    pub fn success() -> Self {
        Self { outcome: StatusOutcome::Success, ..Self::default() }
    }

    /// 404: no object of that name.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::about(StatusReason::NotFound, 404, resource, name, format!("{resource} {} not found", Quoted(name)))
    }

    /// 409: there is an object of that name.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} already exists", Quoted(name));
        Self::about(StatusReason::AlreadyExists, 409, resource, name, message)
    }

    /// 409: every name that was generated is taken.
    pub fn generate_name_conflict(resource: &GroupResource, name: &str, retry_after_seconds: i32) -> Self {
        let quoted = Quoted(name);
        let message = format!(
            "{resource} {quoted} already exists, the server was not able to generate a unique name for the object"
        );
        Self::about(StatusReason::AlreadyExists, 409, resource, name, message).with_retry_after(retry_after_seconds)
    }

    /// 409: the object is not as the request assumed; see [`OBJECT_MODIFIED`](Self::OBJECT_MODIFIED).
    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", Quoted(name));
        Self::about(StatusReason::Conflict, 409, resource, name, message)
    }

    /// 409: an apply sets fields that other managers own, one cause for each.
    pub fn apply_conflict(causes: Vec<StatusCause>, message: impl Into<String>) -> Self {
        let details = StatusDetails { causes, ..StatusDetails::default() };
        Self { details: Some(Box::new(details)), ..Self::failure(StatusReason::Conflict, 409, message) }
    }

    /// 401: the server does not know who asks.
    pub fn unauthorized(why: &str) -> Self {
        Self::failure(StatusReason::Unauthorized, 401, if why.is_empty() { "not authorized" } else { why })
    }

    /// 403: refused. The resource and the name may be empty.
    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = match (resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {} is forbidden: {why}", Quoted(name)),
        };
        Self::about(StatusReason::Forbidden, 403, resource, name, message)
    }

    /// 410: not available any more.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::failure(StatusReason::Gone, 410, message)
    }

    /// 410: a version that is no longer kept.
    #[doc(alias = "NewResourceExpired")]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(StatusReason::Expired, 410, message)
    }

    /// 422: an object is not valid, for each of the causes.
    pub fn invalid(kind: &GroupKind, name: &str, causes: Vec<StatusCause>) -> Self {
        let mut message = format!("{kind} {} is invalid", Quoted(name));
        if !causes.is_empty() {
            message.push_str(": ");
            message.push_str(&aggregate(&causes));
        }
        let details = StatusDetails {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            causes,
            ..StatusDetails::default()
        };
        Self { details: Some(Box::new(details)), ..Self::failure(StatusReason::Invalid, 422, message) }
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(StatusReason::BadRequest, 400, message)
    }

    /// 429: try again later.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: i32) -> Self {
        Self::failure(StatusReason::TooManyRequests, 429, message).with_retry_after(retry_after_seconds)
    }

    /// 503: cannot answer at the moment.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(StatusReason::ServiceUnavailable, 503, message)
    }

    /// 405: the resource does not have that verb.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {}", Quoted(&resource.to_string()));
        Self::about(StatusReason::MethodNotAllowed, 405, resource, "", message)
    }

    /// 500: could not be done right now.
    pub fn server_timeout(resource: &GroupResource, operation: &str, retry_after_seconds: i32) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        Self::about(StatusReason::ServerTimeout, 500, resource, operation, message)
            .with_retry_after(retry_after_seconds)
    }

    /// 504: not done in time; it may still be.
    pub fn timeout(message: impl fmt::Display, retry_after_seconds: i32) -> Self {
        Self::failure(StatusReason::Timeout, 504, format!("Timeout: {message}")).with_retry_after(retry_after_seconds)
    }

    /// 504: a version that has not been reached yet.
    #[doc(alias = "NewTooLargeResourceVersionError")]
    pub fn version_too_large(asked: u64, current: u64, retry_after_seconds: i32) -> Self {
        let mut status =
            Self::timeout(format_args!("Too large resource version: {asked}, current: {current}"), retry_after_seconds);
        let cause = StatusCause::new(StatusCause::RESOURCE_VERSION_TOO_LARGE, "", "Too large resource version");
        status.details.get_or_insert_default().causes.push(cause);
        status
    }

    /// 500: the server failed.
    pub fn internal_error(why: impl fmt::Display) -> Self {
        let why = why.to_string();
        let message = format!("Internal error occurred: {why}");
        let details = StatusDetails { causes: vec![StatusCause::new("", "", why)], ..StatusDetails::default() };
        Self { details: Some(Box::new(details)), ..Self::failure(StatusReason::InternalError, 500, message) }
    }

    /// 413: the body is too large.
    pub fn request_entity_too_large(message: impl fmt::Display) -> Self {
        let message = format!("Request entity too large: {message}");
        Self::failure(StatusReason::RequestEntityTooLarge, 413, message)
    }

    /// 406: the client takes none of these.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::failure(StatusReason::NotAcceptable, 406, message)
    }

    /// 415: the body is in none of these.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::failure(StatusReason::UnsupportedMediaType, 415, message)
    }

    /// Returns a failure of any kind.
    pub fn failure(reason: StatusReason, code: u16, message: impl Into<String>) -> Self {
        Self { code: code.into(), reason, message: message.into(), ..Self::default() }
    }

    fn about(reason: StatusReason, code: u16, resource: &GroupResource, name: &str, message: String) -> Self {
        let details = StatusDetails {
            name: name.to_owned(),
            group: resource.group.to_string(),
            kind: resource.resource.to_string(),
            ..StatusDetails::default()
        };
        Self { details: Some(Box::new(details)), ..Self::failure(reason, code, message) }
    }
}

/// Returns all causes in one text: each once, in brackets if there are several.
fn aggregate(causes: &[StatusCause]) -> String {
    let mut seen = HashSet::new();
    let texts: Vec<_> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .filter(|text| seen.insert(text.clone()))
        .collect();
    match texts.as_slice() {
        [text] => text.clone(),
        texts => format!("[{}]", texts.join(", ")),
    }
}

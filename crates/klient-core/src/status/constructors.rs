//! The statuses of a real API server, word for word.
//!
//! They are used by the embedded server and by tests. In client-go: the `New...` functions of `api/errors`.

use std::{collections::HashSet, fmt};

use super::{Status, StatusCause, StatusDetails, StatusOutcome, StatusReason};
use crate::quoted::Quoted;
use crate::{GroupKind, GroupResource};

/// Statuses of real servers.
impl Status {
    /// The reason of a [`conflict`](Self::conflict) after a concurrent change.
    #[doc(alias = "OptimisticLockErrorMsg")]
    pub const OBJECT_MODIFIED: &str =
        "the object has been modified; please apply your changes to the latest version and try again";

    /// Creates status 200, for a request without an object in the response.
    pub fn success() -> Self {
        Self { outcome: StatusOutcome::Success, ..Self::default() }
    }

    /// Creates status 404: there is no object of that name.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::about(StatusReason::NotFound, 404, resource, name, format!("{resource} {} not found", Quoted(name)))
    }

    /// Creates status 409: an object of that name already exists.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} already exists", Quoted(name));
        Self::about(StatusReason::AlreadyExists, 409, resource, name, message)
    }

    /// Creates status 409: every generated name already exists.
    pub fn generate_name_conflict(resource: &GroupResource, name: &str, retry_after_seconds: i32) -> Self {
        let quoted = Quoted(name);
        let message = format!(
            "{resource} {quoted} already exists, the server was not able to generate a unique name for the object"
        );
        Self::about(StatusReason::AlreadyExists, 409, resource, name, message).with_retry_after(retry_after_seconds)
    }

    /// Creates status 409: the object differs from the request's; see [`OBJECT_MODIFIED`](Self::OBJECT_MODIFIED).
    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", Quoted(name));
        Self::about(StatusReason::Conflict, 409, resource, name, message)
    }

    /// Creates status 409: an apply sets fields of other managers, one cause each.
    pub fn apply_conflict(causes: Vec<StatusCause>, message: impl Into<String>) -> Self {
        let details = StatusDetails { causes, ..StatusDetails::default() };
        Self { details: Some(Box::new(details)), ..Self::failure(StatusReason::Conflict, 409, message) }
    }

    /// Creates status 401: the client is not authenticated.
    pub fn unauthorized(why: &str) -> Self {
        Self::failure(StatusReason::Unauthorized, 401, if why.is_empty() { "not authorized" } else { why })
    }

    /// Creates status 403: the request is not authorized. The resource and the name may be empty.
    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = match (resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {} is forbidden: {why}", Quoted(name)),
        };
        Self::about(StatusReason::Forbidden, 403, resource, name, message)
    }

    /// Creates status 410: permanently removed.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::failure(StatusReason::Gone, 410, message)
    }

    /// Creates status 410: the resource version has expired.
    #[doc(alias = "NewResourceExpired")]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(StatusReason::Expired, 410, message)
    }

    /// Creates status 422: the object is invalid, for each of the causes.
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

    /// Creates status 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(StatusReason::BadRequest, 400, message)
    }

    /// Creates status 429: retry later.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: i32) -> Self {
        Self::failure(StatusReason::TooManyRequests, 429, message).with_retry_after(retry_after_seconds)
    }

    /// Creates status 503: temporarily unavailable.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(StatusReason::ServiceUnavailable, 503, message)
    }

    /// Creates status 405: the resource does not support the verb.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {}", Quoted(&resource.to_string()));
        Self::about(StatusReason::MethodNotAllowed, 405, resource, "", message)
    }

    /// Creates status 500: not completed in time.
    pub fn server_timeout(resource: &GroupResource, operation: &str, retry_after_seconds: i32) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        Self::about(StatusReason::ServerTimeout, 500, resource, operation, message)
            .with_retry_after(retry_after_seconds)
    }

    /// Creates status 504: timed out, but possibly still executing.
    pub fn timeout(message: impl fmt::Display, retry_after_seconds: i32) -> Self {
        Self::failure(StatusReason::Timeout, 504, format!("Timeout: {message}")).with_retry_after(retry_after_seconds)
    }

    /// Creates status 504: the requested version is newer than the server's.
    #[doc(alias = "NewTooLargeResourceVersionError")]
    pub fn version_too_large(asked: u64, current: u64, retry_after_seconds: i32) -> Self {
        let mut status =
            Self::timeout(format_args!("Too large resource version: {asked}, current: {current}"), retry_after_seconds);
        let cause = StatusCause::new(StatusCause::RESOURCE_VERSION_TOO_LARGE, "", "Too large resource version");
        status.details.get_or_insert_default().causes.push(cause);
        status
    }

    /// Creates status 500: the server failed.
    pub fn internal_error(why: impl fmt::Display) -> Self {
        let why = why.to_string();
        let message = format!("Internal error occurred: {why}");
        let details = StatusDetails { causes: vec![StatusCause::new("", "", why)], ..StatusDetails::default() };
        Self { details: Some(Box::new(details)), ..Self::failure(StatusReason::InternalError, 500, message) }
    }

    /// Creates status 413: the body is too large.
    pub fn request_entity_too_large(message: impl fmt::Display) -> Self {
        let message = format!("Request entity too large: {message}");
        Self::failure(StatusReason::RequestEntityTooLarge, 413, message)
    }

    /// Creates status 406: the client accepts none of these formats.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::failure(StatusReason::NotAcceptable, 406, message)
    }

    /// Creates status 415: the body has none of these formats.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::failure(StatusReason::UnsupportedMediaType, 415, message)
    }

    /// Creates a failure of any kind.
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

/// Joins all causes: each once, in brackets if there are several.
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

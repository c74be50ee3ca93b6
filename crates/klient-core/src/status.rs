//! A server's response that is not an object: why a request failed, or that it succeeded.
//!
//! This type replaces `k8s-openapi`'s, whose fields are all optional strings: here a reason is an enum, the type is an
//! error, and the statuses of a real server are created with one call ([`Status::not_found`] and others). Reading and
//! writing is lossless, unknown reasons included, and both types convert into each other.
//!
//! Predicates use the reason, and the code only if the reason is unknown.
//! In client-go: `metav1.Status` and `api/errors`.

mod cause;
mod conflict;
mod constructors;
mod conversion;
mod generic;
mod reason;

use std::{fmt, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::Serialize;

pub use self::{cause::StatusCause, conflict::FieldConflict, reason::StatusReason};

/// The status of a request: why it failed, or that it succeeded.
///
/// ```
/// use klient_core::{GroupResource, Status, StatusReason};
///
/// let status: Status = serde_json::from_str(
///     r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
///         "message": "pods \"web\" not found", "details": {"name": "web", "kind": "pods"}}"#,
/// )?;
/// assert!(status.is_not_found());
/// assert_eq!(status.reason, StatusReason::NotFound);
/// assert_eq!(status, Status::not_found(&GroupResource::from("pods"), "web"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[doc(alias = "StatusError")]
#[doc(alias = "APIStatus")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Whether the request succeeded.
    pub outcome: StatusOutcome,
    /// The HTTP status code; 0 if absent.
    pub code: i32,
    /// The cause of a failure, for programs.
    pub reason: StatusReason,
    /// The message for people.
    pub message: String,
    /// The object that the status is about, and more.
    // Boxed, as is the metadata, because statuses are returned in results.
    pub details: Option<Box<StatusDetails>>,
    /// The metadata, with a continue token if a list expired half-way; absent if empty.
    pub metadata: Option<Box<ListMeta>>,
}

/// Whether a request succeeded. An absent status means failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// Exhaustive on purpose: the API has these two.
pub enum StatusOutcome {
    /// The request failed.
    #[default]
    Failure,
    /// The request succeeded.
    Success,
}

/// The details of a [`Status`]. Empty fields are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    /// The name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The group of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural of the resource in most responses, the kind in responses about invalid objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The UID of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The individual causes of the failure, such as one per invalid field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// The delay before a retry; 0 if absent.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: i32,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl Status {
    /// Sets the delay before a retry.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: i32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Returns whether the request succeeded.
    pub fn is_success(&self) -> bool {
        self.outcome == StatusOutcome::Success
    }

    /// Returns the status code, if it is a valid HTTP code.
    pub fn http_code(&self) -> Option<http::StatusCode> {
        http::StatusCode::from_u16(u16::try_from(self.code).ok()?).ok()
    }

    /// Returns the individual causes; most failures have none.
    pub fn causes(&self) -> &[StatusCause] {
        self.details.as_ref().map_or(&[], |details| details.causes.as_slice())
    }

    /// Returns the first cause of that type, such as [`StatusCause::FIELD_MANAGER_CONFLICT`].
    #[doc(alias = "HasStatusCause")]
    pub fn cause(&self, reason: &str) -> Option<&StatusCause> {
        self.causes().iter().find(|cause| cause.reason == reason)
    }

    /// Returns how long the server requests to wait before a retry.
    #[doc(alias = "SuggestsClientDelay")]
    pub fn retry_after(&self) -> Option<Duration> {
        let details = self.details.as_ref()?;
        let asked = self.reason == StatusReason::ServerTimeout || details.retry_after_seconds > 0;
        asked.then(|| Duration::from_secs(u64::try_from(details.retry_after_seconds).unwrap_or_default()))
    }

    /// Returns the token with which an expired list can continue, although at another version.
    pub fn continue_token(&self) -> Option<&str> {
        self.metadata.as_ref()?.continue_.as_deref().filter(|token| !token.is_empty())
    }

    /// Returns whether the object or the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is(&StatusReason::NotFound, 404)
    }

    /// Returns whether an object of this name already exists.
    pub fn is_already_exists(&self) -> bool {
        // The code is ambiguous here: conflicts have the same.
        self.reason == StatusReason::AlreadyExists
    }

    /// Returns whether the object was changed concurrently, or a field has another owner.
    pub fn is_conflict(&self) -> bool {
        self.is(&StatusReason::Conflict, 409)
    }

    /// Returns whether the resource was removed permanently.
    pub fn is_gone(&self) -> bool {
        self.is(&StatusReason::Gone, 410)
    }

    /// Returns whether the requested resource version has expired.
    #[doc(alias = "IsResourceExpired")]
    pub fn is_expired(&self) -> bool {
        self.reason == StatusReason::Expired
    }

    /// Returns whether the requested resource version is unavailable, so that a client must list again.
    pub fn needs_relist(&self) -> bool {
        self.is_expired() || self.is_gone()
    }

    /// Returns whether the requested version is newer than the server's.
    pub fn is_version_too_large(&self) -> bool {
        const TEXT: &str = "Too large resource version";
        self.cause(StatusCause::RESOURCE_VERSION_TOO_LARGE).is_some()
            || self.is_timeout()
                && (self.message.contains(TEXT) || self.causes().iter().any(|cause| cause.message == TEXT))
    }

    /// Returns whether the object is invalid. The causes have the fields.
    pub fn is_invalid(&self) -> bool {
        self.is(&StatusReason::Invalid, 422)
    }

    /// Returns whether the server could not understand the request.
    pub fn is_bad_request(&self) -> bool {
        self.is(&StatusReason::BadRequest, 400)
    }

    /// Returns whether the server could not authenticate the client.
    pub fn is_unauthorized(&self) -> bool {
        self.is(&StatusReason::Unauthorized, 401)
    }

    /// Returns whether the server does not authorize the request.
    pub fn is_forbidden(&self) -> bool {
        self.is(&StatusReason::Forbidden, 403)
    }

    /// Returns whether the server is overloaded, or an eviction must wait.
    pub fn is_too_many_requests(&self) -> bool {
        // The code decides whatever the reason is, as in client-go.
        self.reason == StatusReason::TooManyRequests || self.code == 429
    }

    /// Returns whether the request timed out. It may still be executed.
    pub fn is_timeout(&self) -> bool {
        self.is(&StatusReason::Timeout, 504)
    }

    /// Returns whether the server could not complete the request in time and requests a retry.
    pub fn is_server_timeout(&self) -> bool {
        self.reason == StatusReason::ServerTimeout
    }

    /// Returns whether the server failed.
    pub fn is_internal_error(&self) -> bool {
        self.is(&StatusReason::InternalError, 500)
    }

    /// Returns whether the server is temporarily unavailable.
    pub fn is_service_unavailable(&self) -> bool {
        self.is(&StatusReason::ServiceUnavailable, 503)
    }

    /// Returns whether the resource does not support the verb.
    #[doc(alias = "IsMethodNotSupported")]
    pub fn is_method_not_allowed(&self) -> bool {
        self.is(&StatusReason::MethodNotAllowed, 405)
    }

    /// Returns whether the server supports none of the accepted formats.
    pub fn is_not_acceptable(&self) -> bool {
        self.is(&StatusReason::NotAcceptable, 406)
    }

    /// Returns whether the server does not support the format of the body.
    pub fn is_unsupported_media_type(&self) -> bool {
        self.is(&StatusReason::UnsupportedMediaType, 415)
    }

    /// Returns whether the body is too large for the server.
    pub fn is_request_entity_too_large(&self) -> bool {
        // The code decides whatever the reason is, as in client-go.
        self.reason == StatusReason::RequestEntityTooLarge || self.code == 413
    }

    /// Returns whether stored data could not be read or decoded.
    pub fn is_store_read_error(&self) -> bool {
        self.reason == StatusReason::StoreReadError
    }

    /// Returns whether the response is not from a Kubernetes API server, such as a proxy's error page.
    #[doc(alias = "IsUnexpectedServerError")]
    pub fn is_unexpected_response(&self) -> bool {
        self.cause(StatusCause::UNEXPECTED_SERVER_RESPONSE).is_some()
    }

    fn is(&self, reason: &StatusReason, code: i32) -> bool {
        self.reason == *reason || (!self.reason.is_known() && self.code == code)
    }
}

/// Prints the message, and the object if the message does not name it.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message.is_empty(), self.outcome) {
            (false, _) => f.write_str(&self.message)?,
            (true, StatusOutcome::Success) => f.write_str("success")?,
            (true, StatusOutcome::Failure) => write!(f, "request failed: {} (code {})", self.reason, self.code)?,
        }
        match &self.details {
            Some(details) if !details.name.is_empty() && !self.message.contains(&details.name) => {
                let resource = crate::GroupResource::new(details.group.clone(), details.kind.clone());
                write!(f, " ({resource} {:?})", details.name)
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests;

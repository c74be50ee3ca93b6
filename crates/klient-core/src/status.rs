//! A server's answer that is not an object: why a request failed, or that it succeeded.
//!
//! A type of our own and not `k8s-openapi`'s, whose fields are all optional strings: here a reason is an enum, the type
//! is an error, and what a real server says can be made with one call ([`Status::not_found`] and its like). Nothing is
//! lost on the way in or out, unknown reasons included, and both types convert into each other.
//!
//! Predicates go by the reason, and by the code only where the reason is not a known one.
//! In client-go: `metav1.Status` and `api/errors`.

mod answers;
mod cause;
mod conversion;
mod generic;
mod quote;
mod reason;

use std::{fmt, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::Serialize;

pub use self::{cause::StatusCause, reason::StatusReason};

/// Why a request failed, or that it succeeded.
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
    /// The HTTP status code; 0 if not said.
    pub code: i32,
    /// The cause of a failure, for machines.
    pub reason: StatusReason,
    /// What happened, for people.
    pub message: String,
    /// Which object it is about, and more.
    // Boxed, as is the metadata, since statuses travel as the error half of results.
    pub details: Option<Box<StatusDetails>>,
    /// Carries a continue token when a list expired half-way; nothing, if there is nothing in it.
    pub metadata: Option<Box<ListMeta>>,
}

/// Whether a request succeeded. A server that does not say so means failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// Exhaustive on purpose: the API has these two.
pub enum StatusOutcome {
    /// It did not.
    #[default]
    Failure,
    /// It did.
    Success,
}

/// What a [`Status`] is about. Empty fields are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Group of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural of the resource in most answers, the kind in answers about invalid objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// UID of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The single causes of the failure, such as one for each invalid field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// How long to wait before another try; 0 if not said.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: i32,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl Status {
    /// Adds how long a client should wait before another try.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: i32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Returns whether the request succeeded.
    pub fn is_success(&self) -> bool {
        self.outcome == StatusOutcome::Success
    }

    /// Returns the code, if it is one that HTTP can carry.
    pub fn http_code(&self) -> Option<http::StatusCode> {
        http::StatusCode::from_u16(u16::try_from(self.code).ok()?).ok()
    }

    /// Returns the single causes; none for most failures.
    pub fn causes(&self) -> &[StatusCause] {
        self.details.as_ref().map_or(&[], |details| details.causes.as_slice())
    }

    /// Returns the first cause of that type, such as [`StatusCause::FIELD_MANAGER_CONFLICT`].
    #[doc(alias = "HasStatusCause")]
    pub fn cause(&self, reason: &str) -> Option<&StatusCause> {
        self.causes().iter().find(|cause| cause.reason == reason)
    }

    /// Returns how long the server asks to wait before another try.
    #[doc(alias = "SuggestsClientDelay")]
    pub fn retry_after(&self) -> Option<Duration> {
        let details = self.details.as_ref()?;
        let asked = self.reason == StatusReason::ServerTimeout || details.retry_after_seconds > 0;
        asked.then(|| Duration::from_secs(u64::try_from(details.retry_after_seconds).unwrap_or_default()))
    }

    /// Returns where an expired list may be continued, although not at the version it began with.
    pub fn continue_token(&self) -> Option<&str> {
        self.metadata.as_ref()?.continue_.as_deref().filter(|token| !token.is_empty())
    }

    /// Returns the object or the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is(&StatusReason::NotFound, 404)
    }

    /// Returns an object of that name exists already.
    pub fn is_already_exists(&self) -> bool {
        // The code says nothing here: conflicts have the same.
        self.reason == StatusReason::AlreadyExists
    }

    /// Returns the object was changed by someone else in between, or is owned by another field manager.
    pub fn is_conflict(&self) -> bool {
        self.is(&StatusReason::Conflict, 409)
    }

    /// What was asked for is gone, and no other address for it is known.
    pub fn is_gone(&self) -> bool {
        self.is(&StatusReason::Gone, 410)
    }

    /// Returns the version that was asked for is no longer kept.
    #[doc(alias = "IsResourceExpired")]
    pub fn is_expired(&self) -> bool {
        self.reason == StatusReason::Expired
    }

    /// Returns the version cannot be had any more, in either way of saying so: list anew.
    pub fn needs_relist(&self) -> bool {
        self.is_expired() || self.is_gone()
    }

    /// Returns the version that was asked for has not been reached by the server yet.
    pub fn is_version_too_large(&self) -> bool {
        const TEXT: &str = "Too large resource version";
        self.cause(StatusCause::RESOURCE_VERSION_TOO_LARGE).is_some()
            || self.is_timeout()
                && (self.message.contains(TEXT) || self.causes().iter().any(|cause| cause.message == TEXT))
    }

    /// Returns the object is not valid; the causes say where.
    pub fn is_invalid(&self) -> bool {
        self.is(&StatusReason::Invalid, 422)
    }

    /// Returns the request makes no sense to the server.
    pub fn is_bad_request(&self) -> bool {
        self.is(&StatusReason::BadRequest, 400)
    }

    /// Returns the server does not know who asks.
    pub fn is_unauthorized(&self) -> bool {
        self.is(&StatusReason::Unauthorized, 401)
    }

    /// Returns the server knows who asks, and refuses.
    pub fn is_forbidden(&self) -> bool {
        self.is(&StatusReason::Forbidden, 403)
    }

    /// Returns the server is too busy, or an eviction has to wait.
    pub fn is_too_many_requests(&self) -> bool {
        // By the code whatever the reason is, as client-go does.
        self.reason == StatusReason::TooManyRequests || self.code == 429
    }

    /// Returns the request took too long; it may still be carried out.
    pub fn is_timeout(&self) -> bool {
        self.is(&StatusReason::Timeout, 504)
    }

    /// Returns the server could not do it right now, and asks to try again.
    pub fn is_server_timeout(&self) -> bool {
        self.reason == StatusReason::ServerTimeout
    }

    /// Returns the server failed.
    pub fn is_internal_error(&self) -> bool {
        self.is(&StatusReason::InternalError, 500)
    }

    /// Returns the server cannot answer at the moment.
    pub fn is_service_unavailable(&self) -> bool {
        self.is(&StatusReason::ServiceUnavailable, 503)
    }

    /// Returns the resource does not have that verb.
    #[doc(alias = "IsMethodNotSupported")]
    pub fn is_method_not_allowed(&self) -> bool {
        self.is(&StatusReason::MethodNotAllowed, 405)
    }

    /// Returns the server has no form of the answer that the client takes.
    pub fn is_not_acceptable(&self) -> bool {
        self.is(&StatusReason::NotAcceptable, 406)
    }

    /// Returns the server does not read that form of body.
    pub fn is_unsupported_media_type(&self) -> bool {
        self.is(&StatusReason::UnsupportedMediaType, 415)
    }

    /// Returns the body is larger than the server takes.
    pub fn is_request_entity_too_large(&self) -> bool {
        // By the code whatever the reason is, as client-go does.
        self.reason == StatusReason::RequestEntityTooLarge || self.code == 413
    }

    /// Stored data could not be read or decoded.
    pub fn is_store_read_error(&self) -> bool {
        self.reason == StatusReason::StoreReadError
    }

    /// Returns the answer did not come from a Kubernetes API server, such as a proxy's error page.
    #[doc(alias = "IsUnexpectedServerError")]
    pub fn is_unexpected_response(&self) -> bool {
        self.cause(StatusCause::UNEXPECTED_SERVER_RESPONSE).is_some()
    }

    fn is(&self, reason: &StatusReason, code: i32) -> bool {
        self.reason == *reason || (!self.reason.is_known() && self.code == code)
    }
}

/// Prints the message, and which object it is about where the message does not say.
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

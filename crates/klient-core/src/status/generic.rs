//! The status of a response without one: a proxy's error page, or a malformed body.
//!
//! The texts are those of client-go (`errors.NewGenericServerResponse`).

use super::{Status, StatusCause, StatusReason};
use crate::quoted::Quoted;
use crate::{GroupResource, Verb};

/// The maximum length of a foreign body in a status.
const MAX_TEXT_BYTES: usize = 2048;

impl Status {
    /// Returns the status of an unsuccessful HTTP response: the one in the body, or else one derived from the code.
    ///
    /// A body that is not a status becomes a cause, truncated to 2 KiB.
    ///
    /// ```
    /// use klient_core::Status;
    ///
    /// let status = Status::from_http(503, "<html>upstream connect error</html>");
    /// assert!(status.is_service_unavailable() && status.is_unexpected_response());
    /// assert_eq!(status.message, "the server is currently unable to handle the request");
    /// ```
    #[doc(alias = "NewGenericServerResponse")]
    pub fn from_http(code: u16, body: &str) -> Self {
        if let Some(mut status) = parse(body) {
            if status.code == 0 {
                status.code = code.into();
            }
            return status;
        }
        let text = match cap(body.trim()) {
            "" => "unknown",
            text => text,
        };
        let (reason, message) = generic(code, text);
        let mut status = Self::failure(reason, code, message);
        let cause = StatusCause::new(StatusCause::UNEXPECTED_SERVER_RESPONSE, "", text);
        status.details.get_or_insert_default().causes.push(cause);
        status
    }

    /// Adds the request to a status that does not name it: in the message, in the details, and in the reason of a
    /// conflict, which for a create is an existing name. A server's own status is not changed.
    #[must_use]
    pub fn about_request(mut self, verb: Verb, resource: &GroupResource, name: &str) -> Self {
        if !self.is_unexpected_response() {
            return self;
        }
        if self.reason == StatusReason::Conflict && verb == Verb::Create {
            self.reason = StatusReason::AlreadyExists;
        }
        let method = verb.method().as_str().to_lowercase();
        let separator = if name.is_empty() { "" } else { " " };
        self.message = format!("{} ({method} {resource}{separator}{name})", self.message);
        let details = self.details.get_or_insert_default();
        details.name = name.to_owned();
        details.group = resource.group.to_string();
        details.kind = resource.resource.to_string();
        self
    }
}

/// Parses a body whose kind is `Status`. Other JSON objects would be read as an empty status.
fn parse(body: &str) -> Option<Status> {
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: String,
    }
    let kind: Kind = serde_json::from_str(body).ok()?;
    if kind.kind != "Status" {
        return None;
    }
    serde_json::from_str(body).ok()
}

fn cap(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or(text)
}

fn generic(code: u16, text: &str) -> (StatusReason, String) {
    let (reason, message) = match code {
        400 => (StatusReason::BadRequest, "the server rejected our request for an unknown reason"),
        401 => (StatusReason::Unauthorized, "the server has asked for the client to provide credentials"),
        // The body of these three explains the failure.
        403 => (StatusReason::Forbidden, text),
        406 if text == "unknown" => (
            StatusReason::NotAcceptable,
            "the server was unable to respond with a content type that the client supports",
        ),
        406 => (StatusReason::NotAcceptable, text),
        415 => (StatusReason::UnsupportedMediaType, text),
        404 => (StatusReason::NotFound, "the server could not find the requested resource"),
        405 => (StatusReason::MethodNotAllowed, "the server does not allow this method on the requested resource"),
        409 => (StatusReason::Conflict, "the server reported a conflict"),
        422 => (StatusReason::Invalid, "the server rejected our request due to an error in our request"),
        429 => (
            StatusReason::TooManyRequests,
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (StatusReason::ServiceUnavailable, "the server is currently unable to handle the request"),
        504 => (
            StatusReason::Timeout,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => {
            let message =
                format!("an error on the server ({}) has prevented the request from succeeding", Quoted(text));
            return (StatusReason::InternalError, message);
        }
        _ => {
            let message =
                format!("the server responded with the status code {code} but did not return more information");
            return (StatusReason::Unknown, message);
        }
    };
    (reason, message.to_owned())
}

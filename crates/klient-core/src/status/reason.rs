//! The reason of a failed request, for programs.

use std::fmt;

/// The reason of a failure. Unknown reasons are preserved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatusReason {
    /// The server sent no reason.
    #[default]
    Unknown,
    /// 401: the client is not authenticated.
    Unauthorized,
    /// 403: the request is not authorized.
    Forbidden,
    /// 404: the object or the resource does not exist.
    NotFound,
    /// 409: an object of this name already exists.
    AlreadyExists,
    /// 409: the object is not in the state that the request expects.
    Conflict,
    /// 410: permanently removed.
    Gone,
    /// 410: the requested resource version has expired.
    Expired,
    /// 422: the object is invalid.
    Invalid,
    /// 500: the server could not complete the request in time and requests a retry.
    ServerTimeout,
    /// 500: stored data could not be read.
    StoreReadError,
    /// 504: timed out, but possibly still executing.
    Timeout,
    /// 429: too many requests.
    TooManyRequests,
    /// 400: the request is malformed.
    BadRequest,
    /// 405: the resource does not support the verb.
    MethodNotAllowed,
    /// 406: the server supports none of the accepted formats.
    NotAcceptable,
    /// 413: the body is too large.
    RequestEntityTooLarge,
    /// 415: the server does not support the format of the body.
    UnsupportedMediaType,
    /// 500: the server failed.
    InternalError,
    /// 503: the server is temporarily unavailable.
    ServiceUnavailable,
    /// Any other reason.
    Other(String),
}

impl StatusReason {
    /// Returns the name on the wire. It is empty for [`Unknown`](Self::Unknown).
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(text) => text,
            known => NAMES.iter().find(|(reason, _)| reason == known).map_or("", |(_, name)| name),
        }
    }

    /// Returns whether this is one of the reasons listed here.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown | Self::Other(_))
    }
}

impl From<&str> for StatusReason {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::Unknown;
        }
        NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map_or_else(|| Self::Other(text.to_owned()), |(reason, _)| reason.clone())
    }
}

impl fmt::Display for StatusReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "unknown reason",
            reason => reason.as_str(),
        })
    }
}

const NAMES: [(StatusReason, &str); 19] = [
    (StatusReason::Unauthorized, "Unauthorized"),
    (StatusReason::Forbidden, "Forbidden"),
    (StatusReason::NotFound, "NotFound"),
    (StatusReason::AlreadyExists, "AlreadyExists"),
    (StatusReason::Conflict, "Conflict"),
    (StatusReason::Gone, "Gone"),
    (StatusReason::Expired, "Expired"),
    (StatusReason::Invalid, "Invalid"),
    (StatusReason::ServerTimeout, "ServerTimeout"),
    (StatusReason::StoreReadError, "StorageReadError"),
    (StatusReason::Timeout, "Timeout"),
    (StatusReason::TooManyRequests, "TooManyRequests"),
    (StatusReason::BadRequest, "BadRequest"),
    (StatusReason::MethodNotAllowed, "MethodNotAllowed"),
    (StatusReason::NotAcceptable, "NotAcceptable"),
    (StatusReason::RequestEntityTooLarge, "RequestEntityTooLarge"),
    (StatusReason::UnsupportedMediaType, "UnsupportedMediaType"),
    (StatusReason::InternalError, "InternalError"),
    (StatusReason::ServiceUnavailable, "ServiceUnavailable"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_round_trips() {
        for (reason, name) in &NAMES {
            assert_eq!(&StatusReason::from(*name), reason);
            assert_eq!(reason.as_str(), *name);
            assert!(reason.is_known());
        }
        for text in ["", "notfound", "SomethingElse"] {
            assert_eq!(StatusReason::from(text).as_str(), text);
            assert!(!StatusReason::from(text).is_known());
        }
    }
}

//! The reason of a failed request, for machines to branch on.

use std::fmt;

/// Why a request failed. Reasons that are not listed here are kept as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatusReason {
    /// The server gave none.
    #[default]
    Unknown,
    /// 401: the server does not know who asks.
    Unauthorized,
    /// 403: the server refuses.
    Forbidden,
    /// 404: the object or the resource does not exist.
    NotFound,
    /// 409: an object of that name exists.
    AlreadyExists,
    /// 409: the object is not in the state that the request assumed.
    Conflict,
    /// 410: not available any more, and no other address is known.
    Gone,
    /// 410: the version that was asked for is no longer kept.
    Expired,
    /// 422: the object is not valid.
    Invalid,
    /// 500: the server could not do it in time, and asks to try again.
    ServerTimeout,
    /// 500: stored data could not be read.
    StoreReadError,
    /// 504: not done in the time that the client gave; it may still be.
    Timeout,
    /// 429: too many requests.
    TooManyRequests,
    /// 400: the request makes no sense to the server.
    BadRequest,
    /// 405: the resource does not have that verb.
    MethodNotAllowed,
    /// 406: no form of the answer suits the client.
    NotAcceptable,
    /// 413: the body is too large.
    RequestEntityTooLarge,
    /// 415: the server does not read that form of body.
    UnsupportedMediaType,
    /// 500: the server failed.
    InternalError,
    /// 503: the server cannot answer at the moment.
    ServiceUnavailable,
    /// Any other.
    Other(String),
}

impl StatusReason {
    /// Returns the name on the wire; empty for [`Unknown`](Self::Unknown).
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(text) => text,
            known => NAMES.iter().find(|(reason, _)| reason == known).map_or("", |(_, name)| name),
        }
    }

    /// Returns whether this is one of the reasons with a meaning of their own.
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
    fn every_name_comes_back() {
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

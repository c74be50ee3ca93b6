//! The error type of this crate: opaque, with a kind to match on and a message for people.
//!
//! Kinds exist only for cases that callers handle differently. `Display` prints this level alone and [`source`] returns
//! the cause. Neither the wording nor the types of causes are part of the API.
//!
//! [`source`]: std::error::Error::source

use std::{borrow::Cow, fmt, time::Duration};

use klient_core::{
    BuildRequestError, ConvertObjectError, DurationRangeError, EncodePatchError, InvalidOptionError,
    InvalidSelectorError, LabelSyntaxError, OwnerRefError, ParseFieldPathError, ParseFieldSelectorError,
    ParseGoDurationError, ParseGroupVersionError, ParseJsonPointerError, ParseLabelSelectorError, ParseObjectKeyError,
    ParseObjectRefError, ParseQuantityError, ParseTimeError, PercentError, SetOwnerError, Status,
    UnrepresentableSelectorError,
};
use klient_proto::DecodeError;

use crate::retry::MAX_RETRY_AFTER;

/// The result of klient's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A boxed error that can be sent to other threads.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An error of this crate, with a [kind](ErrorKind), a message, and an optional cause.
///
/// ```
/// use klient::{Error, ErrorKind, resource::GroupResource, status::Status};
///
/// let error = Error::from(Status::not_found(&GroupResource::from("pods"), "web"));
/// assert!(error.is_not_found());
/// assert_eq!(error.to_string(), "pods \"web\" not found");
///
/// let error = error.context("cannot restart default/web");
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert_eq!(error.to_string(), "cannot restart default/web");
/// ```
#[doc(alias = "StatusError")]
pub struct Error {
    // Boxed, so that results stay small.
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    what: What,
    retry_after: Option<Duration>,
    /// Text after the message, in parentheses.
    note: Option<Box<str>>,
    source: Option<BoxError>,
}

enum What {
    Status(Status),
    Message(Cow<'static, str>),
}

/// The kind of an [`Error`], one for each way that callers handle it.
#[doc(alias = "ReasonForError")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The object or the resource does not exist.
    NotFound,
    /// An object of this name already exists.
    AlreadyExists,
    /// The object was changed concurrently, or a field has another owner. Read the object again and retry.
    Conflict,
    /// The requested resource version has expired. List again.
    Gone,
    /// The server authenticated the client, but does not authorize the request.
    Forbidden,
    /// The server could not authenticate the client.
    Unauthorized,
    /// The request or the object is invalid. A retry cannot succeed.
    Invalid,
    /// The server rejected the request because of a rate limit. Retry later.
    TooManyRequests,
    /// The request timed out. A write may have been executed.
    Timeout,
    /// The server failed, or is temporarily unavailable.
    Unavailable,
    /// The connection failed, or broke.
    Transport,
    /// The server's certificate is not trusted: it has an unknown authority or another name, or has expired.
    Untrusted,
    /// Credentials could not be obtained.
    Auth,
    /// The configuration is missing, unreadable or invalid.
    Config,
    /// A response or an object could not be decoded.
    Decode,
    /// The operation was canceled by this process.
    Canceled,
}

impl Error {
    /// Creates an error. The message says which operation failed on which object: lower case, no full stop.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::from_parts(kind, What::Message(message.into()), None)
    }

    fn from_parts(kind: ErrorKind, what: What, source: Option<BoxError>) -> Self {
        Self { inner: Box::new(Inner { kind, what, retry_after: None, note: None, source }) }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Adds text after the message, in parentheses.
    #[cfg(feature = "client")]
    pub(crate) fn with_note(mut self, note: String) -> Self {
        self.inner.note = Some(note.into());
        self
    }

    /// Adds the delay before a retry, for errors without a [`Status`].
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.inner.retry_after = Some(delay);
        self
    }

    /// Wraps this error in a message; kind, status and delay remain.
    #[must_use]
    pub fn context(self, message: impl Into<Cow<'static, str>>) -> Self {
        Self::from_parts(self.kind(), What::Message(message.into()), Some(Box::new(self)))
    }

    /// Returns the kind of this error.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns the server's status, if the server reported this error.
    pub fn status(&self) -> Option<&Status> {
        match &self.inner.what {
            What::Status(status) => Some(status),
            What::Message(_) => self.below()?.status(),
        }
    }

    /// Returns how long the server requests to wait before a retry, at most
    /// [`MAX_RETRY_AFTER`].
    pub fn retry_after(&self) -> Option<Duration> {
        let here = match &self.inner.what {
            What::Status(status) => status.retry_after(),
            What::Message(_) => None,
        };
        let requested = self.inner.retry_after.or(here).or_else(|| self.below()?.retry_after())?;
        Some(requested.min(MAX_RETRY_AFTER))
    }

    fn below(&self) -> Option<&Self> {
        self.inner.source.as_ref()?.downcast_ref()
    }

    /// Returns whether the object or the resource does not exist.
    #[doc(alias = "IsNotFound")]
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Returns whether an object of this name already exists.
    #[doc(alias = "IsAlreadyExists")]
    pub fn is_already_exists(&self) -> bool {
        self.kind() == ErrorKind::AlreadyExists
    }

    /// Returns whether the object was changed concurrently, or a field has another owner.
    #[doc(alias = "IsConflict")]
    pub fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    /// Returns whether the requested resource version has expired. List again.
    #[doc(alias = "IsGone")]
    #[doc(alias = "IsResourceExpired")]
    pub fn is_gone(&self) -> bool {
        self.kind() == ErrorKind::Gone
    }

    /// Returns whether the server authenticated the client, but does not authorize the request.
    #[doc(alias = "IsForbidden")]
    pub fn is_forbidden(&self) -> bool {
        self.kind() == ErrorKind::Forbidden
    }

    /// Returns whether the server could not authenticate the client.
    #[doc(alias = "IsUnauthorized")]
    pub fn is_unauthorized(&self) -> bool {
        self.kind() == ErrorKind::Unauthorized
    }

    /// Returns whether the request or the object is invalid.
    #[doc(alias = "IsInvalid")]
    pub fn is_invalid(&self) -> bool {
        self.kind() == ErrorKind::Invalid
    }

    /// Returns whether the server rejected the request because of a rate limit.
    #[doc(alias = "IsTooManyRequests")]
    pub fn is_too_many_requests(&self) -> bool {
        self.kind() == ErrorKind::TooManyRequests
    }

    /// Returns whether the request timed out. A write may have been executed.
    #[doc(alias = "IsTimeout")]
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Returns whether the server failed, or is temporarily unavailable.
    #[doc(alias = "IsServiceUnavailable")]
    pub fn is_unavailable(&self) -> bool {
        self.kind() == ErrorKind::Unavailable
    }
}

fn kind_of(status: &Status) -> ErrorKind {
    let kinds = [
        (status.is_not_found(), ErrorKind::NotFound),
        (status.is_already_exists(), ErrorKind::AlreadyExists),
        (status.needs_relist(), ErrorKind::Gone),
        (status.is_unauthorized(), ErrorKind::Unauthorized),
        (status.is_forbidden(), ErrorKind::Forbidden),
        (status.is_invalid() || status.is_bad_request(), ErrorKind::Invalid),
        // Checked before the conflict, because some servers report an eviction that must wait as both.
        (status.is_too_many_requests(), ErrorKind::TooManyRequests),
        (status.is_conflict(), ErrorKind::Conflict),
        (status.is_timeout(), ErrorKind::Timeout),
        (status.is_method_not_allowed() || status.is_not_acceptable(), ErrorKind::Invalid),
        (status.is_unsupported_media_type() || status.is_request_entity_too_large(), ErrorKind::Invalid),
    ];
    let by_code = if (400..500).contains(&status.code) { ErrorKind::Invalid } else { ErrorKind::Unavailable };
    kinds.into_iter().find_map(|(matches, kind)| matches.then_some(kind)).unwrap_or(by_code)
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::from_parts(kind_of(&status), What::Status(status), None)
    }
}

/// Converts the errors of klient's functions, so that `?` works on each of them.
macro_rules! from_errors {
    ($($error:ty => $kind:ident, $message:literal;)*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::from_parts(ErrorKind::$kind, What::Message(with_causes($message, &error).into()), None)
            }
        }
    )*};
}

/// Returns a message with the texts of an error and its causes: without them, it would not say what is wrong.
fn with_causes(message: &str, error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.fold(message.to_owned(), |text, cause| format!("{text}: {cause}"))
}

from_errors! {
    DecodeError => Decode, "cannot decode object";
    ConvertObjectError => Decode, "cannot convert object";
    BuildRequestError => Invalid, "cannot build request";
    InvalidOptionError => Invalid, "invalid request options";
    InvalidSelectorError => Invalid, "invalid selector";
    ParseLabelSelectorError => Invalid, "invalid label selector";
    ParseFieldSelectorError => Invalid, "invalid field selector";
    LabelSyntaxError => Invalid, "invalid label";
    ParseFieldPathError => Invalid, "invalid field path";
    ParseGroupVersionError => Invalid, "invalid API version";
    ParseObjectKeyError => Invalid, "invalid object key";
    ParseObjectRefError => Invalid, "invalid object reference";
    EncodePatchError => Invalid, "invalid patch";
    ParseJsonPointerError => Invalid, "invalid JSON pointer";
    UnrepresentableSelectorError => Invalid, "invalid selector";
    ParseQuantityError => Invalid, "invalid quantity";
    ParseTimeError => Invalid, "invalid time";
    ParseGoDurationError => Invalid, "invalid duration";
    DurationRangeError => Invalid, "invalid duration";
    PercentError => Invalid, "invalid percentage";
    OwnerRefError => Invalid, "cannot refer to owner";
    SetOwnerError => Invalid, "cannot set owner";
}

impl fmt::Display for Error {
    /// Writes the message of this error; with `{:#}`, also those of its causes, separated by colons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.what {
            What::Status(status) => write!(f, "{status}")?,
            What::Message(message) => f.write_str(message)?,
        }
        if let Some(note) = &self.inner.note {
            write!(f, " ({note})")?;
        }
        if f.alternate() {
            let mut cause = std::error::Error::source(self);
            while let Some(error) = cause {
                write!(f, ": {error}")?;
                cause = error.source();
            }
        }
        Ok(())
    }
}

/// Prints the kind, the message and the causes, because `main` and `unwrap` use `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Error");
        fields.field("kind", &self.kind()).field("message", &self.to_string());
        match &self.inner.source {
            Some(source) => fields.field("source", source),
            None => &mut fields,
        };
        fields.finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use klient_core::{GroupResource, StatusReason};

    use super::*;

    fn pods() -> GroupResource {
        GroupResource::from("pods")
    }

    fn status(reason: StatusReason, code: i32) -> Status {
        Status { reason, code, message: "boom".to_owned(), ..Status::default() }
    }

    #[test]
    fn kind_is_derived_from_the_status() {
        let unknown = || StatusReason::Unknown;
        for (status, kind) in [
            (Status::not_found(&pods(), "web"), ErrorKind::NotFound),
            (status(StatusReason::AlreadyExists, 409), ErrorKind::AlreadyExists),
            (status(StatusReason::Conflict, 409), ErrorKind::Conflict),
            (status(StatusReason::Expired, 410), ErrorKind::Gone),
            (status(StatusReason::Gone, 410), ErrorKind::Gone),
            (status(StatusReason::Forbidden, 403), ErrorKind::Forbidden),
            (status(StatusReason::Unauthorized, 401), ErrorKind::Unauthorized),
            (status(StatusReason::Invalid, 422), ErrorKind::Invalid),
            (status(StatusReason::BadRequest, 400), ErrorKind::Invalid),
            (status(StatusReason::MethodNotAllowed, 405), ErrorKind::Invalid),
            (status(StatusReason::TooManyRequests, 429), ErrorKind::TooManyRequests),
            (status(StatusReason::Timeout, 504), ErrorKind::Timeout),
            (status(StatusReason::ServerTimeout, 500), ErrorKind::Unavailable),
            (status(StatusReason::InternalError, 500), ErrorKind::Unavailable),
            (status(StatusReason::ServiceUnavailable, 503), ErrorKind::Unavailable),
            (status(unknown(), 404), ErrorKind::NotFound),
            (status(unknown(), 418), ErrorKind::Invalid),
            (status(unknown(), 502), ErrorKind::Unavailable),
            (status(unknown(), 0), ErrorKind::Unavailable),
        ] {
            let text = format!("{status:?}");
            assert_eq!(Error::from(status).kind(), kind, "{text}");
        }
    }

    #[test]
    fn context_keeps_status_and_delay() {
        let status = status(StatusReason::TooManyRequests, 429).with_retry_after(3);
        let error = Error::from(status.clone()).context("cannot list pods").context("cannot start");
        assert!(error.is_too_many_requests());
        assert_eq!(error.status(), Some(&status));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
        assert_eq!(error.to_string(), "cannot start");
        assert_eq!(error.source().unwrap().to_string(), "cannot list pods");
    }

    #[test]
    fn display_prints_one_level_and_source_returns_the_cause() {
        let io = std::io::Error::other("broken pipe");
        let error = Error::new(ErrorKind::Transport, "cannot reach https://host:6443").with_source(io);
        assert_eq!(error.to_string(), "cannot reach https://host:6443");
        assert_eq!(error.source().unwrap().to_string(), "broken pipe");
        assert!(format!("{error:?}").contains("broken pipe"), "{error:?}");
        assert_eq!(error.status(), None);
    }

    #[test]
    fn errors_of_own_functions_convert_with_their_message() {
        let error = Error::from("a in (".parse::<klient_core::LabelSelector>().unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().starts_with("invalid label selector: "), "{error}");
        assert!(error.to_string().contains("a in ("), "{error}");
        let error = Error::from("a/b/c".parse::<klient_core::ObjectKey>().unwrap_err());
        assert!(error.to_string().contains("a/b/c"), "{error}");
        let mut object = klient_core::DynamicObject::default();
        object.data = serde_json::json!({"spec": {"replicas": "three"}});
        let error = Error::from(object.try_parse::<k8s_openapi::api::apps::v1::Deployment>().unwrap_err());
        assert!(error.to_string().contains("three"), "{error}");
    }

    #[test]
    fn alternate_display_adds_the_causes() {
        let io = std::io::Error::other("broken pipe");
        let error = Error::new(ErrorKind::Transport, "cannot reach https://host:6443").with_source(io);
        let error = error.context("cannot list pods");
        assert_eq!(format!("{error}"), "cannot list pods");
        assert_eq!(format!("{error:#}"), "cannot list pods: cannot reach https://host:6443: broken pipe");
    }

    #[test]
    fn error_is_send_and_small() {
        fn check<T: Send + Sync + 'static>() {}
        check::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}

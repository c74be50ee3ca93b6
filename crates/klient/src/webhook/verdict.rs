//! The response of a handler.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::BoxError;

/// The decision of a handler about a request.
///
/// ```
/// use klient::webhook::Verdict;
///
/// let verdict = Verdict::deny("replicas must be odd").code(422).warn("see the handbook");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "Response")]
#[must_use]
pub struct Verdict {
    allowed: bool,
    message: String,
    code: Option<u16>,
    reason: String,
    warnings: Vec<String>,
    annotations: BTreeMap<String, String>,
}

impl Verdict {
    /// Allows the request.
    #[doc(alias = "Allowed")]
    pub fn allow() -> Self {
        Self {
            allowed: true,
            message: String::new(),
            code: None,
            reason: String::new(),
            warnings: Vec::new(),
            annotations: BTreeMap::new(),
        }
    }

    /// Denies the request, with a message for its sender. The code is 403 unless [`code`](Self::code) sets another.
    #[doc(alias = "Denied")]
    pub fn deny(message: impl Into<String>) -> Self {
        Self { allowed: false, message: message.into(), ..Self::allow() }
    }

    /// Sets the HTTP status code of a denial.
    pub fn code(mut self, code: u16) -> Self {
        self.code = Some(code);
        self
    }

    /// Sets the reason of a denial, for programs: `Invalid`, for example.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Adds a warning, which kubectl shows.
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds an annotation to the server's audit log. The server puts the name of the webhook before the key.
    pub fn annotate(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Returns whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Returns the response of a review.
    pub(super) fn to_response(&self, uid: &str, patch: Option<String>) -> Value {
        let mut response = Map::new();
        let mut set = |name: &str, value: Value| drop(response.insert(name.to_owned(), value));
        set("uid", json!(uid));
        set("allowed", json!(self.allowed));
        let code = self.code.unwrap_or(if self.allowed { 200 } else { 403 });
        let mut status = json!({"code": code});
        if !self.message.is_empty() {
            status["message"] = json!(self.message);
        }
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        } else if !self.allowed && self.code.is_none() {
            status["reason"] = json!("Forbidden");
        }
        set("status", status);
        if !self.warnings.is_empty() {
            set("warnings", json!(self.warnings));
        }
        if !self.annotations.is_empty() {
            set("auditAnnotations", json!(self.annotations));
        }
        if let Some(patch) = patch {
            set("patchType", json!("JSONPatch"));
            set("patch", json!(patch));
        }
        Value::Object(response)
    }
}

/// The object that a mutating handler returns, with its decision.
#[derive(Clone, Debug)]
pub struct Mutated<K> {
    pub(super) object: Option<K>,
    pub(super) verdict: Verdict,
}

impl<K> Mutated<K> {
    /// Allows the request with this object. The patch is computed from the difference to the object of the request.
    pub fn new(object: K) -> Self {
        Self { object: Some(object), verdict: Verdict::allow() }
    }

    /// Allows the request without a change.
    pub fn unchanged() -> Self {
        Self { object: None, verdict: Verdict::allow() }
    }

    /// Sets the decision, which may have warnings. The object of a denial is ignored.
    #[must_use]
    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }
}

impl<K> From<K> for Mutated<K> {
    fn from(object: K) -> Self {
        Self::new(object)
    }
}

/// A value that a validating handler can return.
pub trait IntoVerdict {
    /// Returns the decision. An error means that the handler failed: the failure policy of the registration decides then.
    ///
    /// # Errors
    ///
    /// Returns the error of the handler.
    fn into_verdict(self) -> Result<Verdict, BoxError>;
}

impl IntoVerdict for Verdict {
    fn into_verdict(self) -> Result<Verdict, BoxError> {
        Ok(self)
    }
}

impl<E: Into<BoxError>> IntoVerdict for Result<Verdict, E> {
    fn into_verdict(self) -> Result<Verdict, BoxError> {
        self.map_err(Into::into)
    }
}

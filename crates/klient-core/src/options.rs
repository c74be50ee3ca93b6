//! The options of requests: one struct for each verb.
//!
//! Every option is checked before a request is built, so that a mistake is reported where it was made and never sent.
//! The rules are those of a real server, with additional ones for options that a server would ignore or misinterpret.
//! Read the fields, and set them with the methods.

mod apply;
mod delete;
mod delete_collection;
mod get;
mod list;
mod log;
mod watch;
mod write;

use std::{borrow::Cow, fmt, time::Duration};

pub use self::{
    apply::ApplyOptions,
    delete::{DeleteOptions, Preconditions, PropagationPolicy},
    delete_collection::DeleteCollectionOptions,
    get::GetOptions,
    list::ListOptions,
    log::LogOptions,
    watch::WatchOptions,
    write::{CreateOptions, PatchOptions, UpdateOptions},
};
use crate::Query;

/// How a server treats unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldValidation {
    /// The server drops them silently.
    Ignore,
    /// The server drops them and sends a warning. This is the default.
    Warn,
    /// The server rejects the request.
    Strict,
}

impl FieldValidation {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

impl fmt::Display for FieldValidation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An option that every server would reject, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidOptionError {
    option: &'static str,
    why: Cow<'static, str>,
}

impl InvalidOptionError {
    pub(crate) fn new(option: &'static str, why: impl Into<Cow<'static, str>>) -> Self {
        Self { option, why: why.into() }
    }

    /// Returns the name of the option on the wire, such as `fieldManager`.
    pub fn option(&self) -> &'static str {
        self.option
    }
}

impl fmt::Display for InvalidOptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option {}: {}", self.option, self.why)
    }
}

impl std::error::Error for InvalidOptionError {}

/// The options of every write.
struct WriteQuery<'a> {
    dry_run: bool,
    field_manager: Option<&'a str>,
    field_validation: Option<FieldValidation>,
}

impl WriteQuery<'_> {
    fn validate(&self) -> Result<(), InvalidOptionError> {
        self.field_manager.map_or(Ok(()), validate_field_manager)
    }

    fn append(&self, query: &mut Query) {
        query.append_option("dryRun", self.dry_run.then_some("All"));
        query.append_option("fieldManager", self.field_manager);
        query.append_option("fieldValidation", self.field_validation);
    }
}

const MAX_FIELD_MANAGER_BYTES: usize = 128;

fn validate_field_manager(manager: &str) -> Result<(), InvalidOptionError> {
    let fail = |why: String| Err(InvalidOptionError::new("fieldManager", why));
    if manager.is_empty() {
        return fail("is empty: omit it to use the user agent".to_owned());
    }
    if manager.len() > MAX_FIELD_MANAGER_BYTES {
        return fail(format!("has {} bytes, at most {MAX_FIELD_MANAGER_BYTES} are allowed", manager.len()));
    }
    let unprintable = |c: char| c.is_control() || (c.is_whitespace() && c != ' ');
    match manager.char_indices().find(|(_, c)| unprintable(*c)) {
        Some((at, c)) => fail(format!("character {c:?} at byte {at} is not printable")),
        None => Ok(()),
    }
}

/// Returns whole seconds, rounded up and capped to the range of the API.
fn whole_seconds(duration: Duration) -> i64 {
    let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Returns the timeout of a list or watch. Zero is rejected, because a server would use its default.
fn timeout_seconds(timeout: Option<Duration>) -> Result<Option<i64>, InvalidOptionError> {
    match timeout {
        Some(Duration::ZERO) => Err(InvalidOptionError::new("timeoutSeconds", "is zero: omit it for no limit")),
        timeout => Ok(timeout.map(whole_seconds)),
    }
}

#[cfg(test)]
mod tests;

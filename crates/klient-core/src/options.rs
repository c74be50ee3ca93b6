//! What a request may ask for besides its object: one struct for each verb.
//!
//! Every option is checked before a request is made from it, so that a mistake is named where it was made and never
//! sent: by the rules of a real server, and where one would ignore an option or do what nobody means by it.
//! Fields are for reading; the methods set them.

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

/// What a server does with fields that it does not know, or that are given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldValidation {
    /// Drops them in silence.
    Ignore,
    /// Drops them and sends a warning; what servers do by default.
    Warn,
    /// Refuses the request.
    Strict,
}

impl FieldValidation {
    /// The name on the wire.
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

/// An option that no server would take: says which one and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidOptionError {
    option: &'static str,
    why: Cow<'static, str>,
}

impl InvalidOptionError {
    pub(crate) fn new(option: &'static str, why: impl Into<Cow<'static, str>>) -> Self {
        Self { option, why: why.into() }
    }

    /// The name of the option on the wire, such as `fieldManager`.
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

/// The options that every write has.
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
        return fail("is empty: leave it out to be named after the user agent".to_owned());
    }
    if manager.len() > MAX_FIELD_MANAGER_BYTES {
        return fail(format!("has {} bytes, may have {MAX_FIELD_MANAGER_BYTES}", manager.len()));
    }
    let unprintable = |c: char| c.is_control() || (c.is_whitespace() && c != ' ');
    match manager.char_indices().find(|(_, c)| unprintable(*c)) {
        Some((at, c)) => fail(format!("character {c:?} at byte {at} is not printable")),
        None => Ok(()),
    }
}

/// Whole seconds, of which the API knows only so many; a part of a second counts as one.
fn whole_seconds(duration: Duration) -> i64 {
    let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// A time limit on a list or watch; a server reads 0 as its own default, which nobody means by it.
fn timeout_seconds(timeout: Option<Duration>) -> Result<Option<i64>, InvalidOptionError> {
    match timeout {
        Some(Duration::ZERO) => Err(InvalidOptionError::new("timeoutSeconds", "is zero: leave it out for no limit")),
        timeout => Ok(timeout.map(whole_seconds)),
    }
}

#[cfg(test)]
mod tests;

//! Errors of building a request.

use std::fmt;

use super::Verb;
use crate::{EncodePatchError, GroupResource, InvalidOptionError};

/// An error of building a request, with the invalid part and the reason.
///
/// Every server would reject such a request, or misinterpret it.
#[derive(Debug)]
pub struct BuildRequestError {
    problem: Problem,
}

#[derive(Debug)]
pub(super) enum Problem {
    Segment { part: &'static str, text: String, why: &'static str },
    Scope { resource: GroupResource, verb: Verb, why: &'static str },
    SubresourceOfNothing { subresource: String },
    NoSubresource,
    ProxyPathWithoutProxy,
    Header { name: &'static str, value: String },
    Option(InvalidOptionError),
    Encode(serde_json::Error),
    EncodePatch(EncodePatchError),
    Http(http::Error),
}

impl From<Problem> for BuildRequestError {
    fn from(problem: Problem) -> Self {
        Self { problem }
    }
}

impl fmt::Display for BuildRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::Segment { part, text, why } => write!(f, "invalid {part} {text:?}: {why}"),
            Problem::Scope { resource, verb, why } => write!(f, "cannot {verb} {resource}: {why}"),
            Problem::SubresourceOfNothing { subresource } => {
                write!(f, "subresource {subresource:?} requires the name of an object")
            }
            Problem::NoSubresource => f.write_str("no subresource to post to: call `.subresource()`"),
            Problem::ProxyPathWithoutProxy => f.write_str("a proxy path requires the subresource `proxy`"),
            Problem::Header { name, value } => write!(f, "invalid header {name}: {value:?}"),
            Problem::Option(error) => error.fmt(f),
            Problem::Encode(error) => write!(f, "cannot serialize delete options: {error}"),
            Problem::EncodePatch(error) => error.fmt(f),
            Problem::Http(error) => write!(f, "invalid address: {error}"),
        }
    }
}

impl std::error::Error for BuildRequestError {}

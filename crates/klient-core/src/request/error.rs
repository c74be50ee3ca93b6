//! Errors of building a request.

use std::fmt;

use super::Verb;
use crate::{EncodePatchError, GroupResource, InvalidOptionError};

/// A request that cannot be built: names the part that is wrong, and why.
///
/// Every server would refuse such a request, or understand another one than was meant.
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
            Problem::Segment { part, text, why } => write!(f, "{part} {text:?} {why}"),
            Problem::Scope { resource, verb, why } => write!(f, "cannot {verb} {resource}: {why}"),
            Problem::SubresourceOfNothing { subresource } => {
                write!(f, "subresource {subresource:?} needs the name of an object")
            }
            Problem::NoSubresource => f.write_str("no subresource to post to"),
            Problem::ProxyPathWithoutProxy => f.write_str("a proxy path needs the subresource `proxy`"),
            Problem::Header { name, value } => write!(f, "{name} {value:?} is not a valid header value"),
            Problem::Option(error) => error.fmt(f),
            Problem::Encode(error) => write!(f, "cannot serialize delete options: {error}"),
            Problem::EncodePatch(error) => error.fmt(f),
            Problem::Http(error) => write!(f, "invalid address: {error}"),
        }
    }
}

impl std::error::Error for BuildRequestError {}

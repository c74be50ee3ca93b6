//! Why a request was not built.

use std::fmt;

use super::Verb;
use crate::{GroupResource, InvalidOptionError};

/// A request that was not built, because a server would refuse it or take it for another: says which part and why.
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
    ApplyAsPatch,
    Header { name: &'static str, value: String },
    Option(InvalidOptionError),
    Encode(serde_json::Error),
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
                write!(f, "subresource {subresource:?} is of one object, but none is named")
            }
            Problem::NoSubresource => f.write_str("no subresource is given to post to"),
            Problem::ProxyPathWithoutProxy => f.write_str("a proxy path is given, but the subresource is not proxy"),
            Problem::ApplyAsPatch => f.write_str("an apply patch needs a field manager: use apply and its options"),
            Problem::Header { name, value } => write!(f, "{name} {value:?} is not the value of a header"),
            Problem::Option(_) => f.write_str("the options make no sense"),
            Problem::Encode(_) => f.write_str("the body cannot be encoded"),
            Problem::Http(_) => f.write_str("the address is not one that HTTP can carry"),
        }
    }
}

impl std::error::Error for BuildRequestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Option(error) => Some(error),
            Problem::Encode(error) => Some(error),
            Problem::Http(error) => Some(error),
            _ => None,
        }
    }
}

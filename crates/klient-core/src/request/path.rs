//! The path of a request: `/api/v1/...` for the core group, `/apis/<group>/<version>/...` for all others.
//!
//! Every part becomes exactly one segment, or the path is rejected.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{BuildRequestError, error::Problem};
use crate::ApiResource;

/// The parts of a path.
pub(super) struct PathParts<'a> {
    pub(super) resource: &'a ApiResource,
    pub(super) namespace: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) subresource: Option<&'a str>,
    pub(super) proxy_path: Option<&'a str>,
}

pub(super) fn resource_path(parts: &PathParts<'_>) -> Result<String, BuildRequestError> {
    let resource = parts.resource;
    let mut path = String::with_capacity(96);
    if resource.group.is_empty() {
        path.push_str("/api");
    } else {
        path.push_str("/apis");
        push_segment(&mut path, "group", &resource.group)?;
    }
    push_segment(&mut path, "version", &resource.version)?;
    if let Some(namespace) = parts.namespace {
        path.push_str("/namespaces");
        push_segment(&mut path, "namespace", namespace)?;
    }
    push_segment(&mut path, "resource", &resource.plural)?;
    if let Some(name) = parts.name {
        push_segment(&mut path, "name", name)?;
    }
    if let Some(subresource) = parts.subresource {
        if parts.name.is_none() {
            return Err(Problem::SubresourceOfNothing { subresource: subresource.to_owned() }.into());
        }
        push_segment(&mut path, "subresource", subresource)?;
    }
    if let Some(proxy_path) = parts.proxy_path {
        if parts.subresource != Some(super::subresource::PROXY) {
            return Err(Problem::ProxyPathWithoutProxy.into());
        }
        push_proxy_path(&mut path, proxy_path)?;
    }
    Ok(path)
}

fn push_segment(path: &mut String, part: &'static str, text: &str) -> Result<(), BuildRequestError> {
    let why = match text {
        "" => "it is empty",
        "." | ".." => "it would change the path",
        _ if text.contains('/') => "it contains `/`",
        // A proxy may decode the path twice.
        _ if text.contains('%') => "it contains `%`",
        _ if text.contains(char::is_control) => "it contains a control character",
        _ => {
            path.push('/');
            path.extend(utf8_percent_encode(text, ESCAPED));
            return Ok(());
        }
    };
    Err(Problem::Segment { part, text: text.to_owned(), why }.into())
}

/// Appends a proxy path, which may contain anything, but must not leave the proxy.
fn push_proxy_path(path: &mut String, proxy_path: &str) -> Result<(), BuildRequestError> {
    for segment in proxy_path.strip_prefix('/').unwrap_or(proxy_path).split('/') {
        if matches!(segment, "." | "..") {
            let text = proxy_path.to_owned();
            return Err(Problem::Segment { part: "proxy path", text, why: "it would change the path" }.into());
        }
        path.push('/');
        path.extend(utf8_percent_encode(segment, ESCAPED));
    }
    Ok(())
}

/// All characters except those that RFC 3986 allows in a path segment.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

//! The action of a request, in the terms of authorization: a verb on a resource, or on a path.

use http::Method;
use klient_core::{FieldSelector, GroupResource, Quoted, Status};
use percent_encoding::percent_decode_str;

use super::User;
use crate::call::Call;

/// An action that may be allowed or not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    /// Whether the action is on a resource and not on a path.
    pub(crate) is_resource: bool,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
}

/// The contents of a request's path and method. The path need not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    pub(crate) is_resource: bool,
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) name: String,
}

impl RequestInfo {
    /// Reads a request.
    pub(crate) fn of(call: &Call) -> Self {
        let path = percent_decode_str(&call.path).decode_utf8_lossy().into_owned();
        let mut info = Self { verb: call.method.as_str().to_lowercase(), ..Self::default() };
        let trimmed = path.trim_matches('/');
        let mut parts: &[&str] = &trimmed.split('/').collect::<Vec<_>>();
        match parts {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                (*version).clone_into(&mut info.version);
                parts = rest;
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                (*group).clone_into(&mut info.group);
                (*version).clone_into(&mut info.version);
                parts = rest;
            }
            _ => {
                info.path = path;
                return info;
            }
        }
        info.is_resource = true;
        info.verb = match (parts, &call.method) {
            ([special @ ("proxy" | "watch"), rest @ ..], _) => {
                parts = rest;
                special
            }
            (_, &Method::POST) => "create",
            (_, &Method::GET | &Method::HEAD) => "get",
            (_, &Method::PUT) => "update",
            (_, &Method::PATCH) => "patch",
            (_, &Method::DELETE) => "delete",
            _ => "",
        }
        .to_owned();
        if let ["namespaces", namespace, rest @ ..] = parts {
            (*namespace).clone_into(&mut info.namespace);
            // A namespace is in itself.
            if !matches!(rest, [] | ["status" | "finalize", ..]) {
                parts = rest;
            }
        }
        let part = |at: usize| parts.get(at).copied().unwrap_or_default().to_owned();
        info.resource = part(0);
        info.name = part(1);
        if info.verb != "proxy" {
            info.subresource = part(2);
        }
        info.complete_verb(call);
        info.path = path;
        info
    }

    /// Replaces `get` and `delete` of a collection by the verbs for collections. A list of one name has that name.
    fn complete_verb(&mut self, call: &Call) {
        if !self.name.is_empty() {
            return;
        }
        match self.verb.as_str() {
            "get" => {
                self.verb = if call.flag("watch") { "watch" } else { "list" }.to_owned();
                let selector = call.param("fieldSelector").and_then(|text| text.parse::<FieldSelector>().ok());
                let name = selector.as_ref().and_then(|selector| selector.exact_value("metadata.name"));
                if let Some(name) = name.filter(|name| is_segment(name)) {
                    name.clone_into(&mut self.name);
                }
            }
            "delete" => self.verb = "deletecollection".to_owned(),
            _ => {}
        }
    }

    /// Returns the action of the request.
    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes {
            verb: &self.verb,
            is_resource: self.is_resource,
            group: &self.group,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            path: &self.path,
        }
    }
}

impl<'a> Attributes<'a> {
    /// Returns an action on a resource.
    pub(crate) fn on(verb: &'a str, group: &'a str, resource: &'a str, name: &'a str) -> Self {
        Self { verb, is_resource: true, group, resource, name, ..Self::default() }
    }

    /// Returns whether the resource, perhaps with its subresource, is the one that a rule names.
    pub(crate) fn is_resource_named(&self, rule: &str) -> bool {
        if self.subresource.is_empty() {
            return rule == self.resource;
        }
        let rest = rule.strip_prefix("*/").map(|rest| rest == self.subresource);
        rest == Some(true)
            || rule.strip_prefix(self.resource).and_then(|rest| rest.strip_prefix('/')) == Some(self.subresource)
    }

    /// Returns the error for an action that is not allowed.
    pub(crate) fn forbidden(&self, user: &User, reason: &str) -> Box<Status> {
        let mut why = escaped(&self.denial(user));
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        Box::new(Status::forbidden(
            &GroupResource::new(self.group.to_owned(), self.resource.to_owned()),
            self.name,
            why,
        ))
    }

    fn denial(&self, user: &User) -> String {
        let (name, verb) = (Quoted(&user.name), self.verb);
        if !self.is_resource {
            return format!("User {name} cannot {verb} path {}", Quoted(self.path));
        }
        let resource = match self.subresource {
            "" => Quoted(self.resource).to_string(),
            subresource => Quoted(&format!("{}/{subresource}", self.resource)).to_string(),
        };
        let group = Quoted(self.group);
        match self.namespace {
            "" => format!("User {name} cannot {verb} resource {resource} in API group {group} at the cluster scope"),
            namespace => format!(
                "User {name} cannot {verb} resource {resource} in API group {group} in the namespace {}",
                Quoted(namespace)
            ),
        }
    }
}

/// Returns a list of texts in quotes, as Go prints it.
pub(crate) fn quoted_list<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| Quoted(text.as_ref()).to_string()).collect();
    format!("[{}]", quoted.join(" "))
}

/// Returns a message that no browser takes for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn is_segment(name: &str) -> bool {
    name != "." && name != ".." && !name.contains(['/', '%'])
}

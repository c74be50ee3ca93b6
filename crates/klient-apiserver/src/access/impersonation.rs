//! Impersonation: requests of one user on behalf of another.
//!
//! Each mode has its own permissions. The modes of 1.36 are tried in order, and the one that worked last for a user is tried first.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::{Mutex, PoisonError},
};

use http::HeaderMap;
use klient_core::{Quoted, Status};
use percent_encoding::percent_decode_str;

use super::{
    Access, Attributes, RequestInfo, User,
    attributes::quoted_list,
    user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED},
};
use crate::{Result, metadata::formats};

/// The modes that worked last.
#[derive(Default)]
pub(super) struct LastModes {
    by_user: Mutex<HashMap<String, usize>>,
}

/// A user who is impersonated, and the verb that allowed it. Legacy impersonation has no verb of its own.
pub(crate) struct Impersonated {
    pub(crate) user: User,
    pub(crate) constraint: &'static str,
}

/// One set of permissions by which a user may be impersonated.
struct Mode {
    name: &'static str,
    verb: &'static str,
    /// Returns whether the mode is for this user, given the impersonating user.
    applies: fn(&User, &User) -> bool,
}

const MODES: [Mode; 5] = [
    Mode {
        name: "associated-node",
        verb: "impersonate:associated-node",
        applies: |wanted, own| {
            let node = own.extra.get(NODE_NAME).filter(|values| values.len() == 1);
            has_only_name(wanted)
                && own.account().is_some()
                && node_of(&wanted.name).is_some_and(|name| node.is_some_and(|node| node[0] == name))
        },
    },
    Mode {
        name: "arbitrary-node",
        verb: "impersonate:arbitrary-node",
        applies: |wanted, _| has_only_name(wanted) && node_of(&wanted.name).is_some(),
    },
    Mode {
        name: "serviceaccount",
        verb: "impersonate:serviceaccount",
        applies: |wanted, _| has_only_name(wanted) && wanted.account().is_some(),
    },
    Mode {
        name: "user-info",
        verb: "impersonate:user-info",
        applies: |wanted, _| node_of(&wanted.name).is_none() && wanted.account().is_none(),
    },
    Mode { name: "", verb: "impersonate", applies: |_, _| true },
];

/// Returns whether a request has headers of impersonation.
pub(super) fn is_requested(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("impersonate-"))
}

/// Returns the user that a request wants to be.
fn wanted(headers: &HeaderMap) -> Result<Option<User>> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut user = User { name: first("impersonate-user"), uid: first("impersonate-uid"), ..User::default() };
    user.groups = headers.get_all("impersonate-group").iter().map(text).collect();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            user.extra.entry(key).or_default().extend(headers.get_all(name).iter().map(text));
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if has_only_name(&user) {
        return Ok(None);
    }
    let message = format!("requested {} without impersonating a user name", go_user(&user));
    Err(Box::new(Status::bad_request(message)))
}

impl Access {
    /// Returns the user that a request impersonates, if it does.
    pub(crate) fn impersonated(
        &self,
        user: &User,
        headers: &HeaderMap,
        request: &RequestInfo,
    ) -> Result<Option<Impersonated>> {
        let Some(wanted) = wanted(headers)? else { return Ok(None) };
        let last = self.modes.by_user.lock().unwrap_or_else(PoisonError::into_inner).get(&user.name).copied();
        let order = last.into_iter().chain((0..MODES.len()).filter(|at| Some(*at) != last));
        let mut first_error = None;
        for at in order {
            let mode = &MODES[at];
            if !(mode.applies)(&wanted, user) {
                continue;
            }
            match self.check_mode(mode, user, &wanted, request) {
                Ok(user_now) => {
                    let mut modes = self.modes.by_user.lock().unwrap_or_else(PoisonError::into_inner);
                    if modes.len() >= MAX_USERS {
                        modes.clear();
                    }
                    modes.insert(user.name.clone(), at);
                    let constraint = if mode.name.is_empty() { "" } else { mode.verb };
                    return Ok(Some(Impersonated { user: user_now, constraint }));
                }
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| Box::new(Status::internal_error("all impersonation modes failed"))))
    }

    fn check_mode(&self, mode: &Mode, user: &User, wanted: &User, request: &RequestInfo) -> Result<User> {
        let is_constrained = !mode.name.is_empty();
        if is_constrained {
            let verb = format!("impersonate-on:{}:{}", mode.name, request.verb);
            self.require(user, &Attributes { verb: &verb, ..request.attributes() })?;
        }
        let mut now = wanted.clone();
        let names_group = if is_constrained { AUTHENTICATION } else { "" };
        let mut on_name = Attributes::on(mode.verb, names_group, "users", &wanted.name);
        if is_constrained && let Some(node) = node_of(&wanted.name) {
            on_name = Attributes::on(mode.verb, names_group, "nodes", node);
            if mode.name == "associated-node" {
                on_name.name = "*";
            }
            now.groups = vec!["system:nodes".to_owned()];
        }
        if let Some((namespace, name)) = wanted.account() {
            let on_account = Attributes::on(mode.verb, names_group, "serviceaccounts", name);
            on_name = Attributes { namespace, ..on_account };
            if wanted.groups.is_empty() {
                now.groups = User::service_account(namespace, name).groups;
            }
        }
        self.require(user, &on_name)?;
        if !wanted.uid.is_empty() {
            self.require(user, &Attributes::on(mode.verb, AUTHENTICATION, "uids", &wanted.uid))?;
        }
        self.check_groups(mode, names_group, user, &wanted.groups)?;
        self.check_extra(mode, user, &wanted.extra)?;
        let group = match now.name.as_str() {
            ANONYMOUS => Some(UNAUTHENTICATED),
            _ if now.is_in(UNAUTHENTICATED) => None,
            _ => Some(AUTHENTICATED),
        };
        if let Some(group) = group.filter(|group| !now.is_in(group)) {
            now.groups.push(group.to_owned());
        }
        Ok(now)
    }

    fn check_groups(&self, mode: &Mode, group: &str, user: &User, groups: &[String]) -> Result<()> {
        let on_group = |name| Attributes::on(mode.verb, group, "groups", name);
        if !mode.name.is_empty() {
            if groups.iter().any(String::is_empty) {
                return Err(on_group("").forbidden(user, "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(on_group(MASTERS).forbidden(user, why));
            }
            if groups.len() >= MANY && self.require(user, &on_group("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|name| self.require(user, &on_group(name)))
    }

    fn check_extra(&self, mode: &Mode, user: &User, extra: &BTreeMap<String, Vec<String>>) -> Result<()> {
        let all = Attributes::on(mode.verb, AUTHENTICATION, "userextras", "");
        if !mode.name.is_empty() {
            for (key, values) in extra {
                if let Some(problem) = extra_problem(key, values) {
                    return Err(all.forbidden(user, &problem));
                }
            }
            let is_large = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if is_large && self.require(user, &Attributes { subresource: "*", name: "*", ..all }).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.require(user, &Attributes { subresource: key, name: value, ..all })?;
            }
        }
        Ok(())
    }
}

/// Returns why constrained impersonation refuses an extra attribute.
fn extra_problem(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let has_domain =
        key.split_once('/').is_some_and(|(domain, path)| formats::is_subdomain(domain) && !path.is_empty());
    if !has_domain {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        let key = Quoted(key);
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {key}: {why}"
        ));
    }
    if key != key.to_lowercase() {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {}", Quoted(key)));
    }
    values
        .iter()
        .any(String::is_empty)
        .then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// Returns the name of the node that a user is.
fn node_of(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| formats::is_subdomain(name))
}

fn has_only_name(user: &User) -> bool {
    user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty()
}

/// Prints a user as Go prints the struct.
fn go_user(user: &User) -> String {
    let list = |values: &[String]| quoted_list(values).trim_matches(['[', ']']).replace("\" \"", "\", \"");
    let groups = match user.groups.is_empty() {
        true => "(nil)".to_owned(),
        false => format!("{{{}}}", list(&user.groups)),
    };
    let mut extra = String::new();
    for (key, values) in &user.extra {
        let comma = if extra.is_empty() { "" } else { ", " };
        let _ = write!(extra, "{comma}{}:[]string{{{}}}", Quoted(key), list(values));
    }
    let extra = if user.extra.is_empty() { "(nil)".to_owned() } else { format!("{{{extra}}}") };
    format!(
        "&user.DefaultInfo{{Name:\"\", UID:{}, Groups:[]string{groups}, Extra:map[string][]string{extra}}}",
        Quoted(&user.uid)
    )
}

/// The attribute with the node of a service account's pod.
pub(super) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const AUTHENTICATION: &str = "authentication.k8s.io";
/// From this number of values on, one check for all of them is tried first.
const MANY: usize = 4;
const MAX_USERS: usize = 10_000;

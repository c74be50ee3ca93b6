//! A user: a name, groups, and what else a credential says about its owner.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value, json};

use crate::metadata::formats;

/// A user of the server.
///
/// ```
/// use klient_apiserver::User;
///
/// let bob = User::new("bob").group("devs");
/// assert_eq!(bob.to_string(), "bob");
/// let controller = User::service_account("default", "controller");
/// assert_eq!(controller.name(), "system:serviceaccount:default:controller");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Returns a user without groups.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the user of a service account, with the groups that all service accounts and those of its namespace have.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("{ACCOUNT_PREFIX}{namespace}:{name}"))
            .group(ALL_ACCOUNTS)
            .group(format!("{ALL_ACCOUNTS}:{namespace}"))
    }

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Sets the UID.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = uid.into();
        self
    }

    /// Adds a value to an extra attribute.
    #[must_use]
    pub fn extra(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.extra.entry(key.into()).or_default().push(value.into());
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(String::as_str)
    }

    /// Returns the administrator, whom nothing is forbidden.
    pub(crate) fn administrator() -> Arc<Self> {
        static USER: LazyLock<Arc<User>> =
            LazyLock::new(|| Arc::new(User::new(ADMINISTRATOR).group(MASTERS).group(AUTHENTICATED)));
        Arc::clone(&USER)
    }

    /// Returns the user of requests without credentials.
    pub(crate) fn anonymous() -> Arc<Self> {
        static USER: LazyLock<Arc<User>> = LazyLock::new(|| Arc::new(User::new(ANONYMOUS).group(UNAUTHENTICATED)));
        Arc::clone(&USER)
    }

    /// Returns the user with the group of all authenticated users.
    pub(crate) fn authenticated(mut self) -> Arc<Self> {
        if !self.is_in(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        Arc::new(self)
    }

    /// Returns whether the user is in a group.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Returns the namespace and name of the service account that the user is, if it is one.
    pub(crate) fn account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.name.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
        (formats::is_label(namespace) && formats::is_subdomain(name)).then_some((namespace, name))
    }

    /// Returns the user as `UserInfo`, for reviews, admission and the audit log.
    pub(crate) fn info(&self) -> Value {
        let mut info = Map::new();
        if !self.name.is_empty() {
            info.insert("username".to_owned(), json!(self.name));
        }
        if !self.uid.is_empty() {
            info.insert("uid".to_owned(), json!(self.uid));
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}

impl From<&str> for User {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for User {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The user of the client certificate in the server's own kubeconfig.
pub(crate) const ADMINISTRATOR: &str = "kubernetes-admin";
pub(crate) const ANONYMOUS: &str = "system:anonymous";
/// The group that may do everything.
pub(crate) const MASTERS: &str = "system:masters";
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
pub(crate) const ALL_ACCOUNTS: &str = "system:serviceaccounts";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

//! Audit policies: which requests are logged, and how much of them.

use std::fmt;

use serde::Deserialize;

use super::event::Stage;
use crate::access::{Attributes, User};

/// A policy of the audit log, in the form of the real server's `audit.k8s.io/v1` `Policy`.
///
/// The first rule that matches a request decides. A request that no rule matches is not logged.
///
/// ```
/// use klient_apiserver::AuditPolicy;
///
/// let policy = AuditPolicy::from_yaml(
///     "
/// apiVersion: audit.k8s.io/v1
/// kind: Policy
/// omitStages: [RequestReceived]
/// rules:
/// - level: None
///   verbs: [watch]
/// - level: Metadata
///   resources: [{group: '', resources: [secrets]}]
/// - level: RequestResponse
/// ",
/// );
/// assert!(policy.is_ok());
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditPolicy {
    rules: Vec<Rule>,
    omit_stages: Vec<Stage>,
    omit_managed_fields: bool,
}

/// An error of an audit policy that cannot be used.
#[derive(Debug)]
pub struct AuditPolicyError {
    message: String,
}

/// How much of a request is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
pub(super) enum Level {
    None,
    Metadata,
    Request,
    RequestResponse,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    urls: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

/// The decision of a policy about a request.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) level: Level,
    omitted: Vec<Stage>,
    pub(super) omits_managed_fields: bool,
}

impl AuditPolicy {
    /// Returns a policy that logs who did what, but no bodies.
    pub fn metadata() -> Self {
        Self::of(Level::Metadata)
    }

    /// Returns a policy that logs all bodies, including those of secrets.
    pub fn request_response() -> Self {
        Self::of(Level::RequestResponse)
    }

    fn of(level: Level) -> Self {
        let rule = Rule {
            level,
            users: Vec::new(),
            user_groups: Vec::new(),
            verbs: Vec::new(),
            resources: Vec::new(),
            namespaces: Vec::new(),
            urls: Vec::new(),
            omit_stages: Vec::new(),
            omit_managed_fields: None,
        };
        Self { rules: vec![rule], ..Self::default() }
    }

    /// Parses a policy in YAML or JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a policy, or if the policy has a level, stage, path or rule that the real server refuses.
    pub fn from_yaml(text: &str) -> Result<Self, AuditPolicyError> {
        let failed = |message: String| AuditPolicyError { message };
        let value: serde_json::Value = serde_saphyr::from_str(text).map_err(|error| failed(error.to_string()))?;
        let (api_version, kind) = (&value["apiVersion"], &value["kind"]);
        if api_version != "audit.k8s.io/v1" || kind != "Policy" {
            return Err(failed(format!("expected a Policy of audit.k8s.io/v1, found {kind} of {api_version}")));
        }
        let policy = Self::deserialize(value).map_err(|error| failed(error.to_string()))?;
        for (at, rule) in policy.rules.iter().enumerate() {
            rule.check().map_err(|why| failed(format!("rules[{at}]: {why}")))?;
        }
        Ok(policy)
    }

    /// Returns what the policy wants for a request.
    pub(super) fn choose(&self, user: &User, action: &Attributes<'_>) -> Chosen {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(user, action)) else {
            return Chosen { level: Level::None, omitted: Vec::new(), omits_managed_fields: false };
        };
        Chosen {
            level: rule.level,
            omitted: [&self.omit_stages[..], &rule.omit_stages].concat(),
            omits_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

impl Chosen {
    /// Returns whether a stage is not logged.
    pub(super) fn omits(&self, stage: Stage) -> bool {
        self.omitted.contains(&stage)
    }
}

impl Rule {
    fn check(&self) -> Result<(), &'static str> {
        let is_about_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if is_about_resources && !self.urls.is_empty() {
            return Err("rules cannot apply to both regular resources and non-resource URLs");
        }
        for url in self.urls.iter().filter(|url| *url != "*") {
            if !url.starts_with('/') {
                return Err("non-resource URL rules must begin with a '/' character");
            }
            if url[..url.len() - 1].contains('*') {
                return Err("non-resource URL wildcards '*' must be the final character of the rule");
            }
        }
        let is_nameless = |found: &GroupResources| !found.resource_names.is_empty() && found.resources.is_empty();
        if self.resources.iter().any(is_nameless) {
            return Err("using resourceNames requires at least one resource");
        }
        Ok(())
    }

    fn matches(&self, user: &User, action: &Attributes<'_>) -> bool {
        let has = |list: &[String], text: &str| list.is_empty() || list.iter().any(|own| own == text);
        if !has(&self.users, &user.name) || !has(&self.verbs, action.verb) {
            return false;
        }
        if !self.user_groups.is_empty() && !self.user_groups.iter().any(|group| user.is_in(group)) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return action.is_resource
                && has(&self.namespaces, action.namespace)
                && (self.resources.is_empty() || self.resources.iter().any(|found| found.matches(action)));
        }
        let covers = |url: &String| {
            url == action.path || (url.ends_with('*') && action.path.starts_with(url.trim_end_matches('*')))
        };
        self.urls.is_empty() || (!action.is_resource && self.urls.iter().any(covers))
    }
}

impl GroupResources {
    fn matches(&self, action: &Attributes<'_>) -> bool {
        if self.group != "*" && self.group != action.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let is_named = self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == action.name);
        let is_own = |resource: &String| {
            resource == "*"
                || action.is_resource_named(resource)
                || resource.strip_suffix("/*").is_some_and(|resource| resource == action.resource)
        };
        is_named && self.resources.iter().any(is_own)
    }
}

impl fmt::Display for AuditPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid audit policy: {}", self.message)
    }
}

impl std::error::Error for AuditPolicyError {}

//! A webhook of a configuration, parsed.

use std::time::Duration;

use klient_core::LabelSelector;
use serde_json::Value;

use crate::{admission::expressions::Source, metadata, peers::Location, store::Store};

/// A webhook of a configuration.
#[derive(Debug)]
pub(in crate::admission) struct Hook {
    /// The configuration, the name and the position among hooks of this name.
    pub(super) id: String,
    pub(super) configuration: String,
    pub(super) name: String,
    pub(super) rules: Vec<Rule>,
    pub(super) namespaces: Selector,
    pub(super) objects: Selector,
    /// The match conditions.
    pub(super) conditions: Vec<Source>,
    /// Whether failed calls are ignored.
    pub(super) fails_open: bool,
    /// Whether rules match other versions of the resource, too.
    pub(super) is_equivalent: bool,
    /// Whether the hook may be called for a dry run.
    pub(super) allows_dry_run: bool,
    /// Whether the hook is called again if the object changed after it.
    pub(super) is_called_again: bool,
    pub(super) timeout: Duration,
    /// The version of reviews that the hook reads, if the server knows one of them.
    pub(super) review_version: Option<&'static str>,
    pub(super) location: Option<Location>,
}

/// A rule: the requests that a hook is called for.
#[derive(Debug)]
pub(in crate::admission) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) scope: String,
}

/// A label selector, or the error that it is invalid.
pub(in crate::admission) type Selector = Result<LabelSelector, String>;

impl Hook {
    /// Returns the hooks of all configurations of a table, in the order of their names.
    pub(super) fn all(store: &Store, table: &str) -> Vec<Self> {
        let mut hooks = Vec::new();
        for stored in store.list(table, "").objects {
            let configuration = stored.value();
            let name = metadata::text(&configuration, "name");
            let mut counts = std::collections::HashMap::new();
            for hook in configuration["webhooks"].as_array().into_iter().flatten() {
                let count: &mut usize = counts.entry(hook["name"].as_str().unwrap_or_default()).or_default();
                hooks.push(Self::parse(name, *count, hook));
                *count += 1;
            }
        }
        hooks
    }

    pub(in crate::admission) fn parse(configuration: &str, count: usize, hook: &Value) -> Self {
        let text = |name: &str| hook[name].as_str().unwrap_or_default();
        let name = text("name").to_owned();
        let mut versions = hook["admissionReviewVersions"].as_array().into_iter().flatten();
        Self {
            id: format!("{configuration}/{name}/{count}"),
            configuration: configuration.to_owned(),
            rules: hook["rules"].as_array().into_iter().flatten().map(Rule::parse).collect(),
            namespaces: selector(&hook["namespaceSelector"]),
            objects: selector(&hook["objectSelector"]),
            conditions: Source::all(&hook["matchConditions"]),
            fails_open: text("failurePolicy") == "Ignore",
            is_equivalent: text("matchPolicy") != "Exact",
            allows_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            is_called_again: text("reinvocationPolicy") == "IfNeeded",
            timeout: Duration::from_secs(hook["timeoutSeconds"].as_u64().unwrap_or(10)),
            review_version: versions.find_map(|version| match version.as_str() {
                Some("v1") => Some("v1"),
                Some("v1beta1") => Some("v1beta1"),
                _ => None,
            }),
            location: Location::parse(&hook["clientConfig"]),
            name,
        }
    }
}

impl Rule {
    pub(in crate::admission) fn parse(rule: &Value) -> Self {
        let texts = |name: &str| {
            let items = rule[name].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }
}

pub(in crate::admission) fn selector(value: &Value) -> Selector {
    let parsed = serde_json::from_value::<Option<_>>(value.clone()).map_err(|error| error.to_string())?;
    let Some(parsed) = parsed else { return Ok(LabelSelector::default()) };
    LabelSelector::from_api(Some(&parsed)).map_err(|error| error.to_string())
}

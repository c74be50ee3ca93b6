//! One rule of a role: which actions it allows, and which other rules it covers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::{Attributes, attributes::quoted_list};

/// A policy rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    #[serde(deserialize_with = "list")]
    pub(crate) verbs: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) urls: Vec<String>,
}

/// Reads a list that may be null.
fn list<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Rule {
    /// Returns the rules that allow everything.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec!["*".to_owned()];
        [
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), urls: all(), ..Self::default() },
        ]
    }

    /// Reads the rules of a role.
    pub(crate) fn all_of(role: &Value) -> Vec<Self> {
        let rules = role["rules"].as_array().into_iter().flatten();
        rules.filter_map(|rule| Self::deserialize(rule).ok()).collect()
    }

    /// Returns whether the rule allows an action.
    pub(crate) fn allows(&self, action: &Attributes<'_>) -> bool {
        if !has_or_all(&self.verbs, action.verb) {
            return false;
        }
        if !action.is_resource {
            return self.urls.iter().any(|url| covers_url(url, action.path));
        }
        has_or_all(&self.api_groups, action.group)
            && self.resources.iter().any(|resource| resource == "*" || action.is_resource_named(resource))
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == action.name))
    }

    /// Returns rules with one group, resource, verb and name each, which together allow the same.
    pub(crate) fn singles(&self) -> Vec<Self> {
        let mut singles = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let single = Self {
                        verbs: vec![verb.clone()],
                        api_groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        singles.push(single);
                    } else {
                        let named = |name: &String| Self { resource_names: vec![name.clone()], ..single.clone() };
                        singles.extend(self.resource_names.iter().map(named));
                    }
                }
            }
        }
        for url in &self.urls {
            let on_url = |verb: &String| Self { verbs: vec![verb.clone()], urls: vec![url.clone()], ..Self::default() };
            singles.extend(self.verbs.iter().map(on_url));
        }
        singles
    }

    /// Returns whether the rule allows everything that another one with single values allows.
    pub(crate) fn covers(&self, single: &Self) -> bool {
        let all = |own: &[String], other: &[String]| other.iter().all(|text| own.contains(text));
        let stars_or_all = |own: &[String], other: &[String]| own.iter().any(|text| text == "*") || all(own, other);
        let names = match single.resource_names.is_empty() {
            true => self.resource_names.is_empty(),
            false => self.resource_names.is_empty() || all(&self.resource_names, &single.resource_names),
        };
        names
            && stars_or_all(&self.verbs, &single.verbs)
            && stars_or_all(&self.api_groups, &single.api_groups)
            && single.resources.iter().all(|resource| self.covers_resource(resource))
            && single.urls.iter().all(|url| self.urls.iter().any(|own| covers_url(own, url)))
    }

    fn covers_resource(&self, resource: &str) -> bool {
        let of_any = resource.split_once('/').map(|(_, subresource)| subresource);
        self.resources
            .iter()
            .any(|own| own == "*" || own == resource || (of_any.is_some() && own.strip_prefix("*/") == of_any))
    }
}

impl std::fmt::Display for Rule {
    /// Writes the rule as messages about escalation show it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lists = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts = lists.iter().filter(|(_, list)| !list.is_empty());
        let parts: Vec<String> = parts.map(|(name, list)| format!("{name}:{}", quoted_list(*list))).collect();
        write!(f, "{{{}}}", parts.join(", "))
    }
}

/// Returns the single rules that no rule of `owned` covers.
pub(crate) fn not_covered(owned: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let singles = wanted.iter().flat_map(Rule::singles);
    singles.filter(|single| !owned.iter().any(|own| own.covers(single))).collect()
}

/// Joins rules that differ in their verbs only.
pub(crate) fn compacted(rules: Vec<Rule>) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::new();
    for rule in rules {
        let is_simple = rule.urls.is_empty()
            && rule.resource_names.len() <= 1
            && rule.api_groups.len() == 1
            && rule.resources.len() == 1;
        let same = compacted.iter_mut().find(|other| {
            is_simple
                && (&other.api_groups, &other.resources, &other.resource_names, &other.urls)
                    == (&rule.api_groups, &rule.resources, &rule.resource_names, &rule.urls)
        });
        match same {
            Some(same) => same.verbs.extend(rule.verbs),
            None => compacted.push(rule),
        }
    }
    compacted
}

fn has_or_all(list: &[String], text: &str) -> bool {
    list.iter().any(|own| own == "*" || own == text)
}

/// Returns whether a URL of a rule is a path, or a prefix of it that ends in stars.
fn covers_url(own: &str, path: &str) -> bool {
    own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}

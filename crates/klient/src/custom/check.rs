//! Checks of definitions that otherwise the server makes: call [`check`] in a test.
//!
//! Each rule is one of the server's (`apiextensions-apiserver/pkg/apis/apiextensions/validation`). A definition that passes may
//! still be refused for what only the server knows: names that are taken, types in CEL rules.

mod field_paths;
mod names;
mod schema;

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// Checks a definition as the server does: names, structural schemas, merge keys, and CEL rules with their estimated cost.
///
/// ```
/// # use klient::{CustomResource, CustomResourceExt};
/// #[derive(CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// #[kube(group = "example.com", version = "v1", kind = "Shop")]
/// struct ShopSpec {
///     size: u32,
/// }
///
/// // In a test:
/// klient::custom::check(&Shop::crd()).unwrap();
/// ```
///
/// # Errors
///
/// Returns all problems, each with kind, version, path and reason.
pub fn check(definition: &CustomResourceDefinition) -> Result<(), InvalidDefinition> {
    let mut problems = Problems { kind: definition.spec.names.kind.clone(), version: String::new(), found: Vec::new() };
    names::check(definition, &mut problems);
    for version in &definition.spec.versions {
        problems.version.clone_from(&version.name);
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        match schema.map(serde_json::to_value) {
            Some(Ok(schema)) => {
                schema::check(&schema, &mut problems);
                names::check_paths(version, &schema, &mut problems);
            }
            _ => problems.add("", "has no schema: derive one, or set `schema.openAPIV3Schema`"),
        }
    }
    let Problems { found, .. } = problems;
    if found.is_empty() { Ok(()) } else { Err(InvalidDefinition { problems: found }) }
}

/// A problem of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The kind that is defined.
    pub kind: String,
    /// The version; empty if the problem concerns all versions.
    pub version: String,
    /// The path to the field, such as `spec.rules[].name`; empty for the whole object.
    pub path: String,
    /// The mistake, and the remedy.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.version.is_empty() {
            write!(f, " {}", self.version)?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// An error that lists the problems of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDefinition {
    problems: Vec<Problem>,
}

impl InvalidDefinition {
    /// Returns the problems, at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for InvalidDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidDefinition {}

/// The problems that were found so far.
struct Problems {
    kind: String,
    version: String,
    found: Vec<Problem>,
}

impl Problems {
    fn add(&mut self, path: &str, reason: impl Into<String>) {
        let (kind, version) = (self.kind.clone(), self.version.clone());
        self.found.push(Problem {
            kind,
            version,
            path: path.trim_start_matches('.').to_owned(),
            reason: reason.into(),
        });
    }
}

fn is_set(schema: &Value, keyword: &str) -> bool {
    schema[keyword] == Value::Bool(true)
}

#[cfg(test)]
mod tests;

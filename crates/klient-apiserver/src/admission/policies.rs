//! Admission policies: CEL expressions that refuse or change requests.
//!
//! Policies and bindings are parsed when one of them changes, and not per request.

mod mutating;
mod parameters;
mod validating;

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicUsize, Ordering},
};

use klient_cel::{Expression, Variables};
use serde_json::{Value, json};

use self::mutating::Mutation;
pub(super) use self::{mutating::MutatingPolicies, validating::ValidatingPolicies};
use super::{
    Attributes, Stage,
    expressions::{self, Condition, Source},
    webhooks::{
        hook::{Hook, Rule},
        is_exempt, matching,
    },
};
use crate::{Result, metadata, server::Core, store::Store};

/// The policies of a server, each with its bindings.
#[derive(Default)]
pub(crate) struct Policies {
    validating: List,
    mutating: List,
}

#[derive(Default)]
struct List {
    policies: RwLock<Arc<Vec<Policy>>>,
    /// The number of bindings, which is read for each request.
    count: AtomicUsize,
}

/// A policy.
#[derive(Debug)]
struct Policy {
    name: String,
    constraints: Constraints,
    conditions: Vec<Source>,
    variables: Vec<(String, Expression)>,
    fails_open: bool,
    runs_again: bool,
    /// The kind of parameters: API version and kind.
    parameters: Option<(String, String)>,
    validations: Vec<validating::Validation>,
    annotations: Vec<(String, Source)>,
    mutations: Vec<Mutation>,
    bindings: Vec<Binding>,
}

/// A binding of a policy.
#[derive(Debug)]
struct Binding {
    name: String,
    constraints: Option<Constraints>,
    reference: Value,
    actions: Vec<String>,
}

/// The requests that a policy or binding applies to.
#[derive(Debug)]
struct Constraints {
    hook: Hook,
    /// Rules with the names of objects, which those of webhooks do not have.
    rules: Vec<(Rule, Vec<String>)>,
    excluded: Vec<(Rule, Vec<String>)>,
}

impl Policies {
    /// Parses the stored policies again.
    pub(crate) fn reload(&self, store: &Store) {
        self.validating.replace(Policy::all(store, "validating"));
        self.mutating.replace(Policy::all(store, "mutating"));
    }

    fn of(&self, stage: Stage) -> &List {
        match stage {
            Stage::Mutating => &self.mutating,
            Stage::Validating => &self.validating,
        }
    }

    fn has_any(&self, stage: Stage) -> bool {
        self.of(stage).count.load(Ordering::Relaxed) > 0
    }

    fn apply_to(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        let is_review = matches!(request.resource.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io");
        self.has_any(stage) && !is_exempt(request) && !is_review
    }
}

impl List {
    fn replace(&self, policies: Vec<Policy>) {
        let mut current = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        self.count.store(policies.iter().map(|policy| policy.bindings.len()).sum(), Ordering::Relaxed);
        *current = Arc::new(policies);
    }

    fn all(&self) -> Arc<Vec<Policy>> {
        Arc::clone(&self.policies.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Policy {
    fn all(store: &Store, prefix: &str) -> Vec<Self> {
        let table = |kind: &str| format!("{prefix}admission{kind}.admissionregistration.k8s.io");
        let bindings: Vec<Value> =
            store.list(&table("policybindings"), "").objects.iter().map(|found| found.value()).collect();
        let policies = store.list(&table("policies"), "").objects;
        policies.iter().map(|found| Self::parse(&found.value(), &bindings)).collect()
    }

    fn parse(policy: &Value, bindings: &[Value]) -> Self {
        let (name, spec) = (metadata::text(policy, "name").to_owned(), &policy["spec"]);
        let items = |field: &str| spec[field].as_array().into_iter().flatten();
        let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let variable = |variable: &Value| {
            let expression = Expression::parse(&text(variable, "expression")).ok()?;
            Some((text(variable, "name"), expression))
        };
        let kind = &spec["paramKind"];
        let own = bindings.iter().filter(|binding| binding["spec"]["policyName"] == name.as_str());
        Self {
            constraints: Constraints::parse(&spec["matchConstraints"]),
            conditions: Source::all(&spec["matchConditions"]),
            variables: items("variables").filter_map(variable).collect(),
            fails_open: spec["failurePolicy"] == "Ignore",
            runs_again: spec["reinvocationPolicy"] == "IfNeeded",
            parameters: kind.is_object().then(|| (text(kind, "apiVersion"), text(kind, "kind"))),
            validations: items("validations").map(validating::Validation::parse).collect(),
            annotations: items("auditAnnotations")
                .map(|found| (text(found, "key"), Source::new(&text(found, "valueExpression"))))
                .collect(),
            mutations: items("mutations").map(Mutation::parse).collect(),
            bindings: own.map(Binding::parse).collect(),
            name,
        }
    }

    /// Returns whether the match conditions hold, or the reason that they cannot be evaluated.
    fn is_conditional_on(&self, variables: &Variables<'_>) -> std::result::Result<bool, String> {
        match expressions::conditions_hold(&self.conditions, variables) {
            Condition::Holds => Ok(true),
            Condition::DoesNotHold => Ok(false),
            Condition::Fails(why) => Err(why),
        }
    }
}

impl Binding {
    fn parse(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        Self {
            name: metadata::text(binding, "name").to_owned(),
            constraints: spec.get("matchResources").filter(|found| found.is_object()).map(Constraints::parse),
            reference: spec["paramRef"].clone(),
            actions: actions.filter_map(|action| action.as_str().map(str::to_owned)).collect(),
        }
    }

    fn has(&self, action: &str) -> bool {
        self.actions.iter().any(|known| known == action)
    }

    fn matches(&self, core: &Arc<Core>, request: &Attributes<'_>) -> Result<bool> {
        self.constraints.as_ref().map_or(Ok(true), |constraints| constraints.matches(core, request))
    }
}

impl Constraints {
    fn parse(constraints: &Value) -> Self {
        let rules = |field: &str| -> Vec<(Rule, Vec<String>)> {
            let names = |rule: &Value| {
                let names = rule["resourceNames"].as_array().into_iter().flatten();
                names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
            };
            let rules = constraints[field].as_array().into_iter().flatten();
            rules.map(|rule| (Rule::parse(rule), names(rule))).collect()
        };
        // Without rules, all requests match.
        let everything =
            json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*", "*/*"]}]);
        let given = constraints.get("resourceRules").filter(|rules| rules.is_array()).unwrap_or(&everything);
        let hook = json!({
            "rules": given, "namespaceSelector": constraints["namespaceSelector"],
            "objectSelector": constraints["objectSelector"], "matchPolicy": constraints["matchPolicy"],
        });
        Self { hook: Hook::parse("", 0, &hook), rules: rules("resourceRules"), excluded: rules("excludeResourceRules") }
    }

    fn matches(&self, core: &Arc<Core>, request: &Attributes<'_>) -> Result<bool> {
        let is_named = |names: &[String]| names.is_empty() || names.contains(&request.name);
        let matches = |rules: &[(Rule, Vec<String>)]| {
            rules.iter().any(|(rule, names)| rule.matches(request, request.resource) && is_named(names))
        };
        if matches(&self.excluded) || matching::of_hook(core, &self.hook, request)?.is_none() {
            return Ok(false);
        }
        // Names count only in rules of the requested version.
        Ok(self.rules.iter().all(|(_, names)| names.is_empty()) || matches(&self.rules))
    }
}

impl Core {
    /// Reads the policies, after one of them or a binding changed.
    pub(crate) fn reload_policies(&self) {
        self.policies.reload(&self.store);
    }
}

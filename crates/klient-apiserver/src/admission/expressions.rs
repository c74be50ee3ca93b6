//! The variables of CEL expressions in admission, for match conditions and policies.

use std::sync::Arc;

use klient_cel::{AccessQuery, Authorizer, Budget, CelValue, Decision, Expression, Variables, to_cel};
use serde_json::{Value, json};

use super::Attributes;
use crate::{
    access::{self, User},
    metadata,
    server::Core,
};

/// An expression with its text, which messages show.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) expression: Result<Expression, String>,
}

/// The verdict of match conditions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Holds,
    DoesNotHold,
    /// A condition failed, and none is false.
    Fails(String),
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), expression: Expression::parse(text).map_err(|error| error.to_string()) }
    }

    /// Returns the expressions of a list of objects that have one each.
    pub(crate) fn all(list: &Value) -> Vec<Self> {
        let items = list.as_array().into_iter().flatten();
        items.map(|item| Self::new(item["expression"].as_str().unwrap_or_default())).collect()
    }

    /// Evaluates the expression. Errors show it.
    pub(crate) fn evaluate(&self, variables: &Variables<'_>, budget: &mut Budget) -> Result<CelValue, String> {
        let failed = |why: &dyn std::fmt::Display| format!("expression '{}' resulted in error: {why}", self.text);
        let expression = self.expression.as_ref().map_err(|why| failed(why))?;
        let mut part = budget.part(EXPRESSION_BUDGET);
        let result = expression.evaluate(variables, &mut part);
        budget.deduct(&part);
        result.map_err(|error| failed(&error))
    }
}

/// Evaluates match conditions. One that is false decides, even if others fail.
pub(crate) fn conditions_hold(conditions: &[Source], variables: &Variables<'_>) -> Condition {
    let mut budget = Budget::new(CONDITIONS_BUDGET);
    let mut failed = None;
    for condition in conditions {
        match condition.evaluate(variables, &mut budget) {
            Ok(CelValue::Bool(true)) => {}
            Ok(_) => return Condition::DoesNotHold,
            Err(why) => drop(failed.get_or_insert(why)),
        }
    }
    failed.map_or(Condition::Holds, Condition::Fails)
}

/// Returns the variables `object`, `oldObject`, `request` and `authorizer` of a request. Objects have the version of the argument.
pub(crate) fn variables<'a>(
    core: &Arc<Core>,
    request: &'a Attributes<'_>,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
) -> Variables<'a> {
    let mut variables = Variables::new();
    variables.set_lazy("object", move || shown(object));
    variables.set_lazy("oldObject", move || shown(old));
    variables.set_lazy("request", move || to_cel(&request_value(request), &Value::Null));
    let core = Arc::clone(core);
    variables.set_lazy("authorizer", move || authorizer(&core, request).into());
    variables
}

/// Returns the namespace of a request, as the variable `namespaceObject`.
pub(crate) fn namespace_object(core: &Core, request: &Attributes<'_>) -> CelValue {
    let is_namespace = request.resource.plural == "namespaces" && request.resource.group.is_empty();
    if request.namespace.is_empty() || is_namespace {
        return CelValue::Null;
    }
    core.store.get("namespaces", &request.namespace).map_or(CelValue::Null, |found| shown(Some(&found.value())))
}

/// Returns an object as expressions see it.
pub(crate) fn shown(object: Option<&Value>) -> CelValue {
    let Some(object) = object else { return CelValue::Null };
    let mut object = object.clone();
    metadata::of(&mut object).remove("managedFields");
    to_cel(&object, &Value::Null)
}

fn request_value(request: &Attributes<'_>) -> Value {
    let kind = request.kind();
    let resource = request.resource;
    json!({
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "subResource": request.subresource,
        "requestKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "requestResource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "requestSubResource": request.subresource,
        "name": request.name,
        "namespace": request.namespace,
        "operation": request.operation.name(),
        "userInfo": request.user().info(),
        "dryRun": request.dry_run,
        "options": request.options(),
    })
}

fn authorizer(core: &Arc<Core>, request: &Attributes<'_>) -> Authorizer {
    let asked = AccessQuery {
        group: request.resource.group.clone(),
        resource: request.resource.plural.clone(),
        subresource: request.subresource.to_owned(),
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        ..AccessQuery::default()
    };
    let (core, user) = (Arc::clone(core), Arc::clone(&request.call.user));
    Authorizer::new(asked, move |query| decide(&core, &user, query))
}

fn decide(core: &Core, user: &User, query: &AccessQuery) -> Decision {
    let account = query.service_account.as_ref().map(|(namespace, name)| {
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let account = User::new(format!("system:serviceaccount:{namespace}:{name}"));
        groups.into_iter().fold(account, User::group).authenticated()
    });
    let action = access::Attributes {
        verb: &query.verb,
        is_resource: query.path.is_none(),
        group: &query.group,
        resource: &query.resource,
        subresource: &query.subresource,
        namespace: &query.namespace,
        name: &query.name,
        path: query.path.as_deref().unwrap_or_default(),
    };
    let decision = core.access.decide(account.as_deref().unwrap_or(user), &action);
    Decision { allowed: decision.is_allowed(), reason: decision.reason(), ..Decision::default() }
}

/// The cost limit of one expression, as on the real server.
const EXPRESSION_BUDGET: u64 = 1_000_000;
/// The cost limit of the match conditions of a webhook or policy, as on the real server.
const CONDITIONS_BUDGET: u64 = 2_500_000;

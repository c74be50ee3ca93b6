//! The plugin that evaluates validating policies.

use std::{future::ready, sync::Arc};

use klient_cel::{Budget, CelValue, Variables};
use klient_core::{Status, StatusCause, StatusReason};
use serde_json::{Value, json};

use super::{Binding, Policy, parameters};
use crate::{
    Result,
    admission::{
        Attributes, Plugin, Stage, Verdict,
        expressions::{self, Source},
    },
    registry::Resource,
    server::Core,
};

/// The plugin that evaluates validating policies.
pub(crate) struct ValidatingPolicies;

/// One expression of a policy that must be true.
#[derive(Debug)]
pub(super) struct Validation {
    expression: Source,
    message: String,
    computed: Option<Source>,
    reason: String,
}

/// An expression that is not true.
struct Failure {
    message: String,
    reason: String,
    index: usize,
}

impl Failure {
    fn invalid(message: String) -> Self {
        Self { message, reason: "Invalid".to_owned(), index: 0 }
    }
}

impl Plugin for ValidatingPolicies {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn is_active(&self, core: &Core, _: &Resource) -> bool {
        core.policies.has_any(Stage::Validating)
    }

    fn handles(&self, core: &Core, stage: Stage, request: &Attributes<'_>) -> bool {
        core.policies.apply_to(stage, request)
    }

    fn validate<'a>(&'a self, core: &'a Arc<Core>, request: &'a Attributes<'_>) -> Verdict<'a> {
        Box::pin(ready(validate(core, request)))
    }
}

impl Validation {
    pub(super) fn parse(validation: &Value) -> Self {
        let text = |field: &str| validation[field].as_str().unwrap_or_default();
        Self {
            expression: Source::new(text("expression")),
            message: text("message").trim().to_owned(),
            computed: validation["messageExpression"].as_str().filter(|text| !text.is_empty()).map(Source::new),
            reason: validation["reason"].as_str().unwrap_or("Invalid").to_owned(),
        }
    }

    /// Returns the failure, if the expression is not true. Errors of evaluation follow the failure policy.
    fn failure(
        &self,
        index: usize,
        variables: &Variables<'_>,
        budget: &mut Budget,
        fails_open: bool,
    ) -> Option<Failure> {
        let (message, reason) = match self.expression.evaluate(variables, budget) {
            Ok(CelValue::Bool(true)) => return None,
            Ok(_) => (self.message(variables, budget), self.reason.clone()),
            Err(_) if fails_open => return None,
            Err(why) => (why, "Invalid".to_owned()),
        };
        Some(Failure { message, reason, index })
    }

    fn message(&self, variables: &Variables<'_>, budget: &mut Budget) -> String {
        let computed = self.computed.as_ref().and_then(|computed| match computed.evaluate(variables, budget) {
            Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        });
        let is_usable = |text: &String| !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE;
        match (computed.filter(is_usable), self.message.as_str()) {
            (Some(text), _) => text,
            (None, "") => format!("failed expression: {}", self.expression.text.trim()),
            (None, message) => message.to_owned(),
        }
    }
}

fn validate(core: &Arc<Core>, request: &Attributes<'_>) -> Result<()> {
    let mut denied = None;
    let mut audited = Vec::new();
    for policy in core.policies.of(Stage::Validating).all().iter() {
        if !policy.constraints.matches(core, request)? {
            continue;
        }
        // An error of the configuration denies, whatever the actions of bindings are.
        let misconfigured = |binding: Option<&Binding>, why: String| {
            (!policy.fails_open).then(|| denial(policy, binding, request, &Failure::invalid(why)))
        };
        if let Err(why) = parameters::check(core, policy) {
            denied = denied.or_else(|| misconfigured(None, why));
            continue;
        }
        for binding in &policy.bindings {
            if !binding.matches(core, request)? {
                continue;
            }
            let parameters = match parameters::of(core, policy, binding, request) {
                Ok(parameters) => parameters,
                Err(why) => {
                    denied = denied.or_else(|| misconfigured(Some(binding), why));
                    continue;
                }
            };
            for failure in failures(core, policy, parameters, request) {
                if binding.has("Warn") {
                    let (policy, binding) = (&policy.name, &binding.name);
                    let text = format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {}",
                        failure.message
                    );
                    request.notes().warn(Stage::Validating, text);
                }
                if binding.has("Audit") {
                    audited.push(json!({
                        "message": failure.message, "policy": policy.name, "binding": binding.name,
                        "expressionIndex": failure.index, "validationActions": binding.actions,
                    }));
                }
                if binding.has("Deny") && denied.is_none() {
                    denied = Some(denial(policy, Some(binding), request, &failure));
                }
            }
        }
    }
    if !audited.is_empty() {
        let key = "validation.policy.admission.k8s.io/validation_failure";
        request.notes().annotate(key, Value::Array(audited).to_string());
    }
    denied.map_or(Ok(()), Err)
}

/// Evaluates a policy for a request. Returns the expressions that are not true.
fn failures(
    core: &Arc<Core>,
    policy: &Policy,
    parameters: Vec<Option<Value>>,
    request: &Attributes<'_>,
) -> Vec<Failure> {
    let ignored = |message: String| if policy.fails_open { Vec::new() } else { vec![Failure::invalid(message)] };
    let mut all = Vec::new();
    for parameter in parameters {
        let mut variables = expressions::variables(core, request, request.object.as_ref(), request.old);
        variables.set("params", expressions::shown(parameter.as_ref()));
        variables.set_lazy("namespaceObject", || expressions::namespace_object(core, request));
        match policy.is_conditional_on(&variables) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                all.extend(ignored(why));
                continue;
            }
        }
        let mut budget = Budget::new(BUDGET);
        variables.with_expressions(&policy.variables, |variables| {
            let found = policy.validations.iter().enumerate();
            all.extend(found.filter_map(|(index, validation)| {
                validation.failure(index, variables, &mut budget, policy.fails_open)
            }));
            for (key, value) in &policy.annotations {
                if let Ok(CelValue::String(text)) = value.evaluate(variables, &mut budget) {
                    request.notes().annotate(format!("{}/{key}", policy.name), text.to_string());
                }
            }
        });
    }
    all
}

fn denial(policy: &Policy, binding: Option<&Binding>, request: &Attributes<'_>, failure: &Failure) -> Box<Status> {
    let binding = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
    let message = format!("ValidatingAdmissionPolicy '{}'{binding} denied request: {}", policy.name, failure.message);
    let mut status = Status::forbidden(&request.resource.group_resource(), &request.shown_name(), message.clone());
    let (reason, code) = match failure.reason.as_str() {
        "Unauthorized" => (StatusReason::Unauthorized, 401),
        "Forbidden" => (StatusReason::Forbidden, 403),
        "RequestEntityTooLarge" => (StatusReason::RequestEntityTooLarge, 413),
        _ => (StatusReason::Invalid, 422),
    };
    (status.reason, status.code) = (reason, code);
    if let Some(details) = &mut status.details {
        details.causes.push(StatusCause::new("", "", message));
    }
    Box::new(status)
}

/// The cost limit of one evaluation of a policy, as on the real server.
pub(super) const BUDGET: u64 = 10_000_000;
const MAX_MESSAGE: usize = 5 << 10;

//! The plugin that evaluates mutating policies, one after the other.

use std::{future::ready, sync::Arc};

use klient_cel::{Budget, Variables, from_cel};
use klient_core::{Status, StatusCause, StatusReason};
use serde_json::Value;

use super::{Binding, Policy, parameters, validating::BUDGET};
use crate::{
    Result,
    admission::{
        Attributes, Operation, Passes, Plugin, Stage, Verdict,
        expressions::{self, Source},
    },
    builtin, decode, managed,
    patch::Patch,
    registry::Resource,
    server::Core,
};

/// The plugin that evaluates mutating policies.
pub(crate) struct MutatingPolicies;

/// A change of an object.
#[derive(Debug)]
pub(super) enum Mutation {
    /// Operations of a JSON patch.
    Patch(Source),
    /// Fields that are merged into the object.
    Apply(Source),
}

impl Mutation {
    pub(super) fn parse(mutation: &Value) -> Self {
        let source = |field: &str| Source::new(mutation[field]["expression"].as_str().unwrap_or_default());
        if mutation["patchType"] == "ApplyConfiguration" {
            Self::Apply(source("applyConfiguration"))
        } else {
            Self::Patch(source("jsonPatch"))
        }
    }

    /// Returns the changed object.
    fn applied(
        &self,
        resource: &Resource,
        object: &Value,
        variables: &Variables<'_>,
        budget: &mut Budget,
    ) -> std::result::Result<Value, String> {
        match self {
            Self::Patch(source) => {
                let operations = source.evaluate(variables, budget)?;
                let operations = from_cel(&operations).ok_or("JSON Patch: value has no form in JSON")?;
                let patch =
                    Patch::of_review(operations.to_string().as_bytes()).map_err(|why| format!("JSON Patch: {why}"))?;
                match patch.apply_reviewed(object) {
                    // A failed test means that the patch does not apply.
                    Err(why) if why.contains("test failed") => Ok(object.clone()),
                    Err(why) => Err(format!("JSON Patch: {why}")),
                    Ok(changed) => Ok(changed),
                }
            }
            Self::Apply(source) => {
                let fields = source.evaluate(variables, budget)?;
                let mut fields = from_cel(&fields).ok_or("error applying patch: value has no form in JSON")?;
                fields["apiVersion"] = object["apiVersion"].clone();
                fields["kind"] = object["kind"].clone();
                managed::merged(resource, object, fields).map_err(|why| format!("error applying patch: {why}"))
            }
        }
    }
}

impl Plugin for MutatingPolicies {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_active(&self, core: &Core, _: &Resource) -> bool {
        core.policies.has_any(Stage::Mutating)
    }

    fn handles(&self, core: &Core, stage: Stage, request: &Attributes<'_>) -> bool {
        request.operation != Operation::Delete && request.object.is_some() && core.policies.apply_to(stage, request)
    }

    fn admit<'a>(
        &'a self,
        core: &'a Arc<Core>,
        request: &'a mut Attributes<'_>,
        passes: &'a mut Passes,
    ) -> Verdict<'a> {
        if passes.is_second() {
            passes.of_plugin(NAME).resume(request.object.as_ref());
        }
        let outcome = admit(core, request, passes);
        passes.of_plugin(NAME).finish(request.object.as_ref());
        Box::pin(ready(outcome))
    }
}

fn admit(core: &Arc<Core>, request: &mut Attributes<'_>, passes: &mut Passes) -> Result<()> {
    for policy in core.policies.of(Stage::Mutating).all().iter() {
        if !policy.constraints.matches(core, request)? {
            continue;
        }
        if passes.is_second() && !passes.of_plugin(NAME).runs_again(&policy.name) {
            continue;
        }
        match parameters::check(core, policy) {
            Ok(()) => {}
            Err(_) if policy.fails_open => continue,
            Err(why) => {
                let message = format!("policy \"{}\" denied request: {why}", policy.name);
                return Err(refusal(request, StatusReason::Forbidden, vec![message]));
            }
        }
        for binding in &policy.bindings {
            if !binding.matches(core, request)? {
                continue;
            }
            let changed = mutate(core, policy, binding, request)?;
            if changed {
                passes.of_plugin(NAME).changed();
                passes.request_second();
            }
        }
        if policy.runs_again {
            passes.of_plugin(NAME).invoked(&policy.name);
        }
    }
    Ok(())
}

/// Applies the mutations of a policy. Returns whether they changed the object.
fn mutate(core: &Arc<Core>, policy: &Policy, binding: &Binding, request: &mut Attributes<'_>) -> Result<bool> {
    let denied =
        |why: &String| format!("policy '{}' with binding '{}' denied request: {why}", policy.name, binding.name);
    let parameters = match parameters::of(core, policy, binding, request) {
        Ok(parameters) => parameters,
        Err(_) if policy.fails_open => return Ok(false),
        Err(why) => return Err(refusal(request, StatusReason::Forbidden, vec![denied(&why)])),
    };
    let before = request.object.clone();
    let mut problems = Vec::new();
    for parameter in parameters {
        for mutation in &policy.mutations {
            let Some(mut object) = request.object.clone() else { return Ok(false) };
            // Expressions do not see the owners of fields, and changes have none.
            let entries = managed::take_entries(&mut object);
            let object = &object;
            let mut variables = expressions::variables(core, request, request.object.as_ref(), request.old);
            variables.set("params", expressions::shown(parameter.as_ref()));
            variables.set_lazy("namespaceObject", || expressions::namespace_object(core, request));
            match policy.is_conditional_on(&variables) {
                Ok(true) => {}
                Ok(false) => break,
                Err(why) => {
                    problems.push(why);
                    break;
                }
            }
            let mut budget = Budget::new(BUDGET);
            let changed = variables.with_expressions(&policy.variables, |variables| {
                mutation.applied(request.resource, object, variables, &mut budget)
            });
            drop(variables);
            match changed.and_then(|object| shaped(request.resource, object)) {
                Ok(mut changed) => {
                    managed::set_entries(&mut changed, Some(entries).filter(|entries| !entries.is_null()));
                    request.object = Some(changed);
                }
                Err(why) => problems.push(why),
            }
        }
    }
    if !problems.is_empty() && !policy.fails_open {
        return Err(refusal(request, StatusReason::Invalid, problems.iter().map(denied).collect()));
    }
    Ok(request.object != before)
}

/// Returns a changed object with its defaults.
fn shaped(resource: &Resource, mut object: Value) -> std::result::Result<Value, String> {
    decode::shape(resource, &mut object).map_err(|status| status.message)?;
    builtin::complete(resource, &mut object);
    Ok(object)
}

fn refusal(request: &Attributes<'_>, reason: StatusReason, messages: Vec<String>) -> Box<Status> {
    let mut status = Status::forbidden(&request.resource.group_resource(), &request.shown_name(), String::new());
    status.reason = reason;
    status.message = messages.first().cloned().unwrap_or_default();
    if let Some(details) = &mut status.details {
        details.causes.extend(messages.into_iter().map(|message| StatusCause::new("", "", message)));
    }
    Box::new(status)
}

const NAME: &str = "MutatingAdmissionPolicy";

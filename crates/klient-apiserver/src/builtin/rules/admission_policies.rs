//! Validation of admission policies and their bindings, whose expressions are compiled.

use klient_cel::{Expression, Scope, Type, check};
use klient_core::StatusCause;
use serde_json::Value;

use super::field::Field;
use crate::causes::Causes;

/// Validates a policy or a binding.
pub(in crate::builtin) fn policy(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    let spec = &object["spec"];
    match object["kind"].as_str() {
        Some("ValidatingAdmissionPolicy") => validating(spec, causes),
        Some("MutatingAdmissionPolicy") => mutating(spec, causes),
        Some("ValidatingAdmissionPolicyBinding") => {
            parameter_reference(&Field::of(object, "spec"), causes);
            binding(spec, causes);
        }
        Some("MutatingAdmissionPolicyBinding") => parameter_reference(&Field::of(object, "spec"), causes),
        _ => {}
    }
}

fn validating(spec: &Value, causes: &mut Causes) {
    let scope = conditions_and_variables(spec, causes);
    let items = |field: &str| spec[field].as_array().map_or(&[][..], Vec::as_slice);
    if items("validations").is_empty() && items("auditAnnotations").is_empty() {
        for field in ["spec.validations", "spec.auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            causes.add(|| StatusCause::required(field, detail));
        }
    }
    for (index, validation) in items("validations").iter().enumerate() {
        let at = |field: &str| format!("spec.validations[{index}].{field}");
        let text = |field: &str| validation[field].as_str().unwrap_or_default();
        expression(&at("expression"), text("expression"), &scope, "bool", causes);
        let message = text("message");
        if !message.is_empty() && message.trim().is_empty() {
            causes.add(|| StatusCause::invalid(at("message"), message, "message must be non-empty if specified"));
        } else if message.trim().contains(['\n', '\r']) {
            causes.add(|| StatusCause::invalid(at("message"), message, "must not contain line breaks"));
        }
        if !text("messageExpression").is_empty() {
            expression(&at("messageExpression"), text("messageExpression"), &scope, "string", causes);
        }
        let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
        if let Some(reason) = validation["reason"].as_str().filter(|reason| !reasons.contains(reason)) {
            causes.add(|| StatusCause::not_supported(at("reason"), reason, &reasons));
        }
    }
}

fn mutating(spec: &Value, causes: &mut Causes) {
    let scope = conditions_and_variables(spec, causes);
    for (index, mutation) in spec["mutations"].as_array().into_iter().flatten().enumerate() {
        for part in ["applyConfiguration", "jsonPatch"] {
            if let Some(text) = mutation[part]["expression"].as_str() {
                expression(&format!("spec.mutations[{index}].{part}.expression"), text, &scope, "", causes);
            }
        }
    }
}

/// Checks the match conditions and the variables. Returns the scope of the other expressions.
fn conditions_and_variables(spec: &Value, causes: &mut Causes) -> Scope {
    let names = ["object", "oldObject", "request", "params", "namespaceObject", "authorizer"];
    let scope = names.into_iter().fold(Scope::new(), |scope, name| scope.with(name, Type::Dyn));
    for (index, condition) in spec["matchConditions"].as_array().into_iter().flatten().enumerate() {
        let text = condition["expression"].as_str().unwrap_or_default();
        expression(&format!("spec.matchConditions[{index}].expression"), text, &scope, "bool", causes);
    }
    let scope = scope.with("variables", Type::Dyn);
    for (index, variable) in spec["variables"].as_array().into_iter().flatten().enumerate() {
        let text = variable["expression"].as_str().unwrap_or_default();
        expression(&format!("spec.variables[{index}].expression"), text, &scope, "", causes);
    }
    scope
}

/// Checks an expression, and that its type is the wanted one, if there is one.
fn expression(field: &str, text: &str, scope: &Scope, wanted: &str, causes: &mut Causes) {
    if text.trim().is_empty() {
        causes.add(|| StatusCause::required(field, "expression is not specified"));
        return;
    }
    let compiled = Expression::parse(text).map_err(|error| error.to_string());
    let compiled = compiled.and_then(|expression| check(&expression, scope).map_err(|error| error.to_string()));
    match compiled {
        Err(why) => causes.add(|| StatusCause::invalid(field, text, &format!("compilation failed: {why}"))),
        Ok(found) if wanted.is_empty() || found.to_string() == wanted => {}
        // A rule may have any type until it is evaluated, a message must be a text.
        Ok(Type::Dyn) if wanted == "bool" => {}
        Ok(found) => {
            let detail = format!("must evaluate to {wanted} but got {found}");
            causes.add(|| StatusCause::invalid(field, text, &detail));
        }
    }
}

fn binding(spec: &Value, causes: &mut Causes) {
    let actions = &spec["validationActions"];
    let has = |action: &str| actions.as_array().is_some_and(|actions| actions.iter().any(|known| known == action));
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        causes.add(|| StatusCause::invalid("spec.validationActions", actions.clone(), detail));
    }
}

fn parameter_reference(spec: &Field<'_, '_>, causes: &mut Causes) {
    let Some(reference) = spec.set("paramRef") else { return };
    let (name, selector) = (reference.field("name"), reference.field("selector"));
    let (has_name, has_selector) = (!name.text().is_empty(), selector.is_set());
    if has_name {
        name.segment(causes);
    }
    if has_name && has_selector {
        name.forbidden("name and selector are mutually exclusive", causes);
    }
    if has_selector {
        selector.label_selector(causes);
    }
    if has_name && has_selector {
        selector.forbidden("name and selector are mutually exclusive", causes);
    }
    if !has_name && !has_selector {
        reference.required("one of name or selector must be specified", causes);
    }
    reference.field("parameterNotFoundAction").one_of(&["Deny", "Allow"], causes);
}

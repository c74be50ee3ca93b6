//! Reviews: objects that are posted to ask a question. The server fills in their status and stores nothing.
//!
//! Without RBAC, every authenticated user may do everything.

use klient_core::{GroupKind, Status, StatusCause};
use serde_json::{Value, json};

use crate::{
    Result,
    access::{Attributes, RequestInfo, Rule, User},
    call::Call,
    causes::Causes,
    server::Core,
};

/// Returns the user of the request.
pub(super) fn who_am_i(core: &Core, call: &Call, review: &mut Value) -> Result<()> {
    review["metadata"] = json!({"creationTimestamp": crate::metadata::time(core.clock.now())});
    review["status"] = json!({"userInfo": call.user.info()});
    Ok(())
}

/// Returns the user of a token.
pub(super) fn token(core: &Core, _: &Call, review: &mut Value) -> Result<()> {
    let spec = &review["spec"];
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Box::new(Status::bad_request("token is required for TokenReview in authentication")));
    }
    let audiences: Vec<String> = serde_json::from_value(spec["audiences"].clone()).unwrap_or_default();
    review["status"] = match core.review_token(token, &audiences) {
        Ok(accepted) => {
            json!({"authenticated": true, "user": accepted.user.info(), "audiences": accepted.audiences})
        }
        Err(why) => json!({"user": {}, "error": why}),
    };
    Ok(())
}

/// Returns everything that the user may do in a namespace.
pub(super) fn rules(core: &Core, call: &Call, review: &mut Value) -> Result<()> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Box::new(Status::bad_request("no namespace on request")));
    }
    let held = core.access.rules_of(&call.user, namespace);
    let on_resources = |rule: &&Rule| !rule.resources.is_empty();
    let resources: Vec<Value> = held.rules.iter().filter(on_resources).map(resource_rule).collect();
    let urls = held.rules.iter().filter(|rule| !rule.urls.is_empty());
    let urls: Vec<Value> = urls.map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls})).collect();
    // The real server returns a new object.
    review["metadata"] = json!({});
    review["spec"] = json!({});
    review["status"] = json!({"resourceRules": resources, "nonResourceRules": urls, "incomplete": false});
    if !held.missing.is_empty() {
        review["status"]["evaluationError"] = json!(crate::access::aggregate(&held.missing));
    }
    Ok(())
}

fn resource_rule(rule: &Rule) -> Value {
    let mut value = json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
    if !rule.resource_names.is_empty() {
        value["resourceNames"] = json!(rule.resource_names);
    }
    value
}

/// Decides whether the user of the request may do something.
pub(super) fn own_access(core: &Core, call: &Call, review: &mut Value) -> Result<()> {
    check(review, false, None)?;
    let user = call.user.clone();
    decide(core, &user, review);
    Ok(())
}

/// Decides whether a user may do something.
pub(super) fn access(core: &Core, _: &Call, review: &mut Value) -> Result<()> {
    check(review, true, None)?;
    decide(core, &subject(&review["spec"]), review);
    Ok(())
}

/// Decides whether a user may do something in a namespace.
pub(super) fn local_access(core: &Core, call: &Call, review: &mut Value) -> Result<()> {
    let namespace = RequestInfo::of(call).namespace;
    // The namespace of the request is filled in before the object is checked.
    let given = crate::metadata::text(review, "namespace").to_owned();
    if !given.is_empty() && given != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Box::new(Status::bad_request(message)));
    }
    crate::metadata::of(review).insert("namespace".to_owned(), json!(namespace));
    check(review, true, Some(&namespace))?;
    decide(core, &subject(&review["spec"]), review);
    Ok(())
}

/// Returns the user that a review is about.
fn subject(spec: &Value) -> User {
    User {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: serde_json::from_value(spec["groups"].clone()).unwrap_or_default(),
        extra: serde_json::from_value(spec["extra"].clone()).unwrap_or_default(),
    }
}

fn decide(core: &Core, user: &User, review: &mut Value) {
    let spec = &review["spec"];
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let text = |value: &'_ Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let of_resource =
        ["verb", "group", "resource", "subresource", "namespace", "name"].map(|name| text(resource, name));
    let of_path = ["verb", "path"].map(|name| text(other, name));
    let [verb, group, plural, subresource, namespace, name] = &of_resource;
    let [path_verb, path] = &of_path;
    let action = match resource.is_object() {
        true => Attributes { verb, is_resource: true, group, resource: plural, subresource, namespace, name, path: "" },
        false => Attributes { verb: path_verb, path, ..Attributes::default() },
    };
    let decision = core.access.decide(user, &action);
    let mut status = json!({"allowed": decision.is_allowed()});
    let reason = decision.reason();
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    let problems = selector_problems(resource);
    if !problems.is_empty() {
        status["evaluationError"] = json!(problems.join("; "));
    }
    review["status"] = status;
}

/// Returns messages about selectors that cannot be parsed.
fn selector_problems(resource: &Value) -> Vec<&'static str> {
    let raw = |name: &str| resource[name]["rawSelector"].as_str().filter(|text| !text.is_empty());
    let mut problems = Vec::new();
    if raw("fieldSelector").is_some_and(|text| text.parse::<klient_core::FieldSelector>().is_err()) {
        problems.push("spec.resourceAttributes.fieldSelector ignored due to parse error");
    }
    if raw("labelSelector").is_some_and(|text| text.parse::<klient_core::LabelSelector>().is_err()) {
        problems.push("spec.resourceAttributes.labelSelector ignored due to parse error");
    }
    problems
}

/// Validates a review. A review of the request's user names no other user.
fn check(review: &Value, names_user: bool, namespace: Option<&str>) -> Result<()> {
    let spec = &review["spec"];
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    // Go prints the struct without the names of JSON.
    let text = |name: &str| other[name].as_str().unwrap_or_default();
    let shown = || json!({"Path": text("path"), "Verb": text("verb")});
    let mut causes = Causes::new();
    match (resource.is_object(), other.is_object()) {
        (true, true) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            causes.add(|| StatusCause::invalid("spec.nonResourceAttributes", shown(), detail));
        }
        (false, false) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.add(|| StatusCause::invalid("spec.resourceAttributes", Value::Null, detail));
        }
        _ => {}
    }
    let is_empty = |name: &str| match &spec[name] {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    if names_user && is_empty("user") && is_empty("groups") {
        causes.add(|| StatusCause::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    for name in ["fieldSelector", "labelSelector"] {
        check_selector(&resource[name], &format!("spec.resourceAttributes.{name}"), &mut causes);
    }
    let metadata = review["metadata"].as_object().cloned().unwrap_or_default();
    let allowed = if namespace.is_some() { &["managedFields", "namespace"][..] } else { &["managedFields"][..] };
    let is_extra = |(name, value): (&String, &Value)| !allowed.contains(&name.as_str()) && !value.is_null();
    if metadata.iter().any(is_extra) {
        let detail = if namespace.is_some() { "must be empty except for namespace" } else { "must be empty" };
        causes.add(|| StatusCause::invalid("metadata", review["metadata"].clone(), detail));
    }
    if let Some(namespace) = namespace {
        let given = resource["namespace"].as_str().unwrap_or_default();
        if resource.is_object() && given != namespace {
            let field = "spec.resourceAttributes.namespace";
            causes.add(|| StatusCause::invalid(field, given, "must match metadata.namespace"));
        }
        if other.is_object() {
            let detail = "disallowed on this kind of request";
            causes.add(|| StatusCause::invalid("spec.nonResourceAttributes", shown(), detail));
        }
    }
    if causes.is_empty() {
        return Ok(());
    }
    // The real server's errors do not name the kind.
    Err(Box::new(Status::invalid(&GroupKind::new("authorization.k8s.io", ""), "", causes.into_vec())))
}

fn check_selector(selector: &Value, path: &str, causes: &mut Causes) {
    if !selector.is_object() {
        return;
    }
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let has_requirements = selector["requirements"].as_array().is_some_and(|list| !list.is_empty());
    if !raw.is_empty() && has_requirements {
        let detail = "may not specified at the same time as requirements";
        causes.add(|| StatusCause::invalid(format!("{path}.rawSelector"), raw, detail));
    }
    if raw.is_empty() && !has_requirements {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        causes.add(|| StatusCause::required(format!("{path}.requirements"), &detail));
    }
}

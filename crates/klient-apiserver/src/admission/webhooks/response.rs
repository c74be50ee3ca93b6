//! The response of a webhook, and the checks that the real server makes of it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use klient_core::Status;
use serde_json::Value;

use super::{Failure, hook::Hook, review::Review};
use crate::{
    admission::{Attributes, Stage},
    decode,
};

/// A valid response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
}

/// Reads a response. Adds its warnings and annotations to the request, and returns an error if the webhook denies the request.
pub(super) fn read(
    hook: &Hook,
    stage: Stage,
    review: &Review,
    request: &Attributes<'_>,
    body: &[u8],
) -> Result<Answer, Failure> {
    let called = |why: String| Failure::calling(hook, format!("failed to call webhook: {why}"));
    let invalid = |why: String| Failure::calling(hook, format!("received invalid webhook response: {why}"));
    let value = decode::parse_response(body).map_err(called)?;
    check_kind(&value, review).map_err(called)?;
    let response = match &value["response"] {
        Value::Null => return Err(invalid("webhook response was absent".to_owned())),
        response => response,
    };
    check_types(response).map_err(called)?;
    let text = |name: &str| response[name].as_str().unwrap_or_default();
    // Older reviews check neither the uid nor the kind.
    let is_strict = review.version == "v1";
    if is_strict && text("uid") != review.uid {
        return Err(invalid(format!("expected response.uid={:?}, got {:?}", review.uid, text("uid"))));
    }
    if is_strict && (value["apiVersion"] != "admission.k8s.io/v1" || value["kind"] != "AdmissionReview") {
        let found = kind_of(&value);
        return Err(invalid(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {found}"
        )));
    }
    let patch = STANDARD.decode(text("patch")).unwrap_or_default();
    let patch_type = response["patchType"].as_str();
    let problem = match (stage, patch.is_empty(), patch_type) {
        _ if !is_strict => None,
        (Stage::Validating, false, _) => Some("validating webhook may not return response.patch".to_owned()),
        (Stage::Validating, true, Some(_)) => Some("validating webhook may not return response.patchType".to_owned()),
        (Stage::Mutating, false, None) => Some("webhook returned response.patch but not response.patchType".to_owned()),
        (Stage::Mutating, true, Some(_)) => {
            Some("webhook returned response.patchType but not response.patch".to_owned())
        }
        (Stage::Mutating, false, Some("")) => Some("webhook returned invalid response.patchType of \"\"".to_owned()),
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(invalid(problem));
    }
    note(hook, stage, request, response);
    if response["allowed"] != true {
        return Err(Failure::Refused(denial(hook, &response["status"])));
    }
    let patch_type = if is_strict { patch_type.unwrap_or_default() } else { "JSONPatch" };
    Ok(Answer { patch, patch_type: patch_type.to_owned() })
}

/// Adds warnings and audit annotations to a request.
fn note(hook: &Hook, stage: Stage, request: &Attributes<'_>, response: &Value) {
    for (key, value) in response["auditAnnotations"].as_object().into_iter().flatten() {
        if let Some(value) = value.as_str() {
            request.notes().annotate(format!("{}/{key}", hook.name), value);
        }
    }
    for warning in response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        request.notes().warn(stage, warning);
    }
}

/// Returns the error of a request that a webhook denied.
fn denial(hook: &Hook, status: &Value) -> Box<Status> {
    let mut denied: Status = serde_json::from_value(status.clone()).unwrap_or_default();
    denied.code = denied.code.max(400);
    denied.outcome = klient_core::StatusOutcome::Failure;
    let by = format!("admission webhook \"{}\" denied the request", hook.name);
    let reason = denied.reason.as_str().to_owned();
    denied.message = match (denied.message.as_str(), reason.as_str()) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    Box::new(denied)
}

/// Checks that a response is of a kind that the decoder knows. A response without kind is accepted here.
fn check_kind(value: &Value, review: &Review) -> Result<(), String> {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let is_known = matches!(version, "" | "admission.k8s.io/v1" | "admission.k8s.io/v1beta1")
        && matches!(kind, "" | "AdmissionReview");
    if is_known && !version.is_empty() && !version.ends_with(&format!("/{}", review.version)) {
        let found = version.rsplit('/').next().unwrap_or_default();
        let wanted = review.version;
        return Err(format!("converting ({found}.AdmissionReview) to ({wanted}.AdmissionReview): unknown conversion"));
    }
    if is_known {
        return Ok(());
    }
    let version = if version.is_empty() { format!("admission.k8s.io/{}", review.version) } else { version.to_owned() };
    let kind = if kind.is_empty() { "AdmissionReview" } else { kind };
    Err(format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""))
}

/// Returns Go's error for a field of the wrong type.
fn check_types(response: &Value) -> Result<(), String> {
    let wrong = |what: &Value, field: &str, go: &str| {
        let word = decode::type_word(what);
        Err(format!("json: cannot unmarshal {word} into Go struct field {field} of type {go}"))
    };
    if !response.is_object() {
        return wrong(response, "AdmissionReview.response", "v1.AdmissionResponse");
    }
    for (field, go, is_right) in [
        ("uid", "types.UID", Value::is_string as fn(&Value) -> bool),
        ("allowed", "bool", Value::is_boolean),
        ("patch", "[]uint8", Value::is_string),
        ("patchType", "v1.PatchType", Value::is_string),
        ("status", "v1.Status", Value::is_object),
        ("warnings", "[]string", Value::is_array),
        ("auditAnnotations", "map[string]string", Value::is_object),
    ] {
        if let Some(found) = response.get(field).filter(|found| !found.is_null() && !is_right(found)) {
            return wrong(found, &format!("AdmissionResponse.response.{field}"), go);
        }
    }
    Ok(())
}

fn kind_of(value: &Value) -> String {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
    format!("{version}, Kind={}", text("kind"))
}

//! Validation of events. Events with `eventTime` also need the fields of the new group.

use klient_core::StatusCause;
use serde_json::Value;

use crate::causes::Causes;

/// Validates a new event of the group `events.k8s.io` or of the core group.
pub(super) fn validate(is_new_group: bool, event: &Value, causes: &mut Causes) {
    let names = if is_new_group { NEW } else { CORE };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (about, own) = (text(&event[names.about]["namespace"]), text(&event["metadata"]["namespace"]));
    let has_time = event["eventTime"].is_string();
    // Events about cluster-scoped objects are in the default namespace.
    let is_elsewhere = match (about.as_str(), has_time) {
        ("", true) => own != "default" && own != "kube-system",
        ("", false) => own != "default",
        (_, true) => false,
        (about, false) => about != own,
    };
    if is_elsewhere {
        let detail = "does not match event.namespace";
        causes.add(|| StatusCause::invalid("involvedObject.namespace", about, detail));
    }
    if has_time {
        let controller = text(&event[names.controller]);
        if controller.is_empty() {
            causes.add(|| StatusCause::required(names.controller, ""));
        }
        for why in crate::metadata::qualified_name_problems(&controller) {
            causes.add(|| StatusCause::invalid(names.controller, controller.as_str(), &why));
        }
        for field in ["reportingInstance", "action", "reason"] {
            let given = text(&event[field]);
            if given.is_empty() {
                causes.add(|| StatusCause::required(field, ""));
            } else if given.len() > MAX_WORD {
                causes.add(|| StatusCause::invalid(field, "", &format!("can have at most {MAX_WORD} characters")));
            }
        }
        if text(&event[names.message]).len() > MAX_MESSAGE {
            let detail = format!("can have at most {MAX_MESSAGE} characters");
            causes.add(|| StatusCause::invalid("message", "", &detail));
        }
    }
    if is_new_group {
        new_form(event, has_time, causes);
    }
}

/// Validates what only the new group requires. Messages use the field names of the core group.
fn new_form(event: &Value, has_time: bool, causes: &mut Causes) {
    if let Some(series) = event.get("series").filter(|series| series.is_object()) {
        if series["count"].as_i64().unwrap_or_default() < 2 {
            causes.add(|| StatusCause::invalid("series.count", "", "should be at least 2"));
        }
        if !series["lastObservedTime"].is_string() {
            causes.add(|| StatusCause::required("series.lastObservedTime", ""));
        }
    }
    if !has_time {
        causes.add(|| StatusCause::required("eventTime", ""));
    }
    let kind = event["type"].as_str().unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        causes.add(|| StatusCause::invalid("type", "", &format!("has invalid value: {kind}")));
    }
    let has_source = ["component", "host"]
        .iter()
        .any(|part| event["deprecatedSource"][*part].as_str().is_some_and(|text| !text.is_empty()));
    for (field, is_set) in [
        ("firstTimestamp", event["deprecatedFirstTimestamp"].is_string()),
        ("lastTimestamp", event["deprecatedLastTimestamp"].is_string()),
        ("count", event["deprecatedCount"].as_i64().unwrap_or_default() != 0),
        ("source", has_source),
    ] {
        if is_set {
            causes.add(|| StatusCause::invalid(field, "", "needs to be unset"));
        }
    }
}

/// The names of fields that differ between the groups.
struct Names {
    about: &'static str,
    controller: &'static str,
    message: &'static str,
}

const CORE: Names = Names { about: "involvedObject", controller: "reportingComponent", message: "message" };
const NEW: Names = Names { about: "regarding", controller: "reportingController", message: "note" };
const MAX_WORD: usize = 128;
const MAX_MESSAGE: usize = 1024;

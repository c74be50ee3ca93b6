//! Validation of the status of jobs. Rules about a part of the status hold if a write changes that part.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    field::{Causes, Field},
    indexes,
    same::is_same,
};

/// Validates the status of a job.
pub(in crate::builtin) fn validate(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    for name in ["active", "succeeded", "failed", "ready", "terminating"] {
        status.field(name).not_negative(causes);
    }
    uncounted(&status.field("uncountedTerminatedPods"), causes);
    conditions(object, old, causes);
    times(object, old, causes);
    finished(object, old, causes);
    index_lists(object, old, causes);
    rest(object, old, causes);
    transitions(object, old, causes);
}

fn uncounted(pods: &Field<'_, '_>, causes: &mut Causes) {
    let mut seen: HashSet<&str> = HashSet::new();
    for list in ["succeeded", "failed"] {
        for uid in pods.field(list).items() {
            if uid.text().is_empty() {
                uid.invalid("must not be empty", causes);
            } else if seen.contains(&uid.text()) {
                uid.duplicate(causes);
            } else {
                seen.insert(uid.text());
            }
        }
    }
}

fn conditions(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let at = status.field("conditions");
    let complete_changed = is(object, "Complete") != is(old, "Complete");
    let failed_changed = is(object, "Failed") != is(old, "Failed");
    let target_changed = is(object, "FailureTarget") != is(old, "FailureTarget");
    if (complete_changed || failed_changed) && is(object, "Complete") && is(object, "Failed") {
        at.invalid_hidden("cannot set Complete=True and Failed=true conditions", causes);
    }
    if (complete_changed || target_changed) && is(object, "Complete") && is(object, "FailureTarget") {
        at.invalid_hidden("cannot set Complete=True and FailureTarget=true conditions", causes);
    }
}

fn times(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let (start, completion) = (status.field("startTime"), status.field("completionTime"));
    let complete_changed = is(object, "Complete") != is(old, "Complete");
    let completion_changed = *completion.value != old["status"]["completionTime"];
    let start_changed = *start.value != old["status"]["startTime"];
    if complete_changed || completion_changed {
        if completion.is_set() && !is(object, "Complete") {
            completion.invalid("cannot set completionTime when there is no Complete=True condition", causes);
        }
        if !completion.is_set() && is(object, "Complete") {
            completion.required("completionTime is required for Complete jobs", causes);
        }
    }
    if (start_changed || completion_changed)
        && start.is_set()
        && completion.is_set()
        && completion.text() < start.text()
    {
        completion.invalid("must be equal to or after `startTime`", causes);
    }
}

fn finished(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let at = status.field("conditions");
    let failed_changed = is(object, "Failed") != is(old, "Failed")
        || object["status"]["failedIndexes"] != old["status"]["failedIndexes"];
    if failed_changed && is(object, "Failed") && !is(object, "FailureTarget") {
        at.invalid_hidden("cannot set Failed=True condition without the FailureTarget=true condition", causes);
    }
    let complete_changed = is(object, "Complete") != is(old, "Complete")
        || is(object, "SuccessCriteriaMet") != is(old, "SuccessCriteriaMet");
    if complete_changed && is(object, "Complete") && !is(object, "SuccessCriteriaMet") {
        at.invalid_hidden("cannot set Complete=True condition without the SuccessCriteriaMet=true condition", causes);
    }
    let is_finished = is_over(object);
    let has_ended = is_finished != is_over(old);
    let differs = |name: &str| object["status"][name] != old["status"][name];
    let active = status.field("active");
    if (has_ended || differs("active")) && active.number() > 0 && is_finished {
        active.invalid("active>0 is invalid for finished job", causes);
    }
    let is_idle = object["spec"]["suspend"] == true && object["spec"]["completions"] == 0;
    let start = status.field("startTime");
    if (has_ended || differs("startTime")) && !is_idle && !start.is_set() && is_finished {
        start.required("startTime is required for finished job", causes);
    }
    let pods = status.field("uncountedTerminatedPods");
    let is_uncounted = !pods.field("failed").is_empty() || !pods.field("succeeded").is_empty();
    if (has_ended || !is_same(pods.value, &old["status"]["uncountedTerminatedPods"])) && is_finished && is_uncounted {
        let of = |name: &str| if pods.field(name).is_empty() { Value::Null } else { pods.field(name).value.clone() };
        let shown = format!("{{\"Succeeded\":{},\"Failed\":{}}}", of("succeeded"), of("failed"));
        pods.invalid_text(&shown, "must be empty for finished job", causes);
    }
}

fn index_lists(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let (completed, failed) = (status.field("completedIndexes"), status.field("failedIndexes"));
    let completed_changed = completed.text() != old["status"]["completedIndexes"].as_str().unwrap_or_default();
    let failed_changed = *failed.value != old["status"]["failedIndexes"];
    let completions = object["spec"]["completions"].as_i64();
    let per_index = &object["spec"]["backoffLimitPerIndex"];
    if let Some(completions) = completions {
        if completed_changed && let Err(why) = indexes::count(completed.text(), completions) {
            completed.invalid(&format!("error parsing completedIndexes: {why}"), causes);
        }
        if failed_changed
            && !per_index.is_null()
            && failed.is_set()
            && let Err(why) = indexes::count(failed.text(), completions)
        {
            failed.invalid(&format!("error parsing failedIndexes: {why}"), causes);
        }
    }
    let is_indexed = object["spec"]["completionMode"] == "Indexed";
    if completed_changed && !completed.text().is_empty() && !is_indexed {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        completed.invalid(detail, causes);
    }
    if failed_changed && per_index.is_null() && failed.is_set() {
        failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null", causes);
    }
    if (completed_changed || failed_changed)
        && failed.is_set()
        && let Some(index) = completions.and_then(|most| indexes::overlap(completed.text(), failed.text(), most))
    {
        failed.invalid(&format!("failedIndexes and completedIndexes overlap at index: {index}"), causes);
    }
}

fn rest(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let differs = |name: &str| object["status"][name] != old["status"][name];
    let terminating = status.field("terminating");
    let has_ended = is_over(object) != is_over(old);
    if (has_ended || differs("terminating")) && terminating.number() > 0 && is_over(object) {
        terminating.invalid("terminating>0 is invalid for finished job", causes);
    }
    let (ready, active) = (status.field("ready"), status.field("active"));
    if (differs("ready") || differs("active")) && ready.is_set() && ready.number() > active.number() {
        ready.invalid("cannot set more ready pods than active", causes);
    }
    let at = status.field("conditions");
    let is_met = is(object, "SuccessCriteriaMet");
    if is_met && is(object, "Failed") {
        at.invalid_hidden("cannot set SuccessCriteriaMet=True and Failed=true conditions", causes);
    }
    if is_met && is(object, "FailureTarget") {
        at.invalid_hidden("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", causes);
    }
    if object["spec"].get("successPolicy").is_some() && !is_met && is(object, "Complete") {
        let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        at.invalid_hidden(detail, causes);
    }
}

fn transitions(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let at = status.field("conditions");
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is(old, kind) && !is(object, kind) {
            at.invalid_hidden(&format!("cannot disable the terminal {kind}=True condition"), causes);
        }
    }
    let is_lower = |name: &str| status.field(name).number() < old["status"][name].as_i64().unwrap_or_default();
    if is_lower("failed") {
        let failed = status.field("failed");
        failed.invalid_as(failed.number(), "cannot decrease the failed counter", causes);
    }
    let spec = &object["spec"];
    let can_shrink = spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"];
    if is_lower("succeeded") && !can_shrink {
        let succeeded = status.field("succeeded");
        succeeded.invalid_as(succeeded.number(), "cannot decrease the succeeded counter", causes);
    }
    let (start, completion) = (status.field("startTime"), status.field("completionTime"));
    let before = &old["status"]["completionTime"];
    if completion.is_set() && !before.is_null() && completion.value != before {
        completion.invalid("field is immutable", causes);
    }
    let is_resuming = is(old, "Suspended") && has(object, "Suspended", "False");
    let before = &old["status"]["startTime"];
    if !before.is_null() && start.value != before && spec["suspend"] != true && !is_resuming {
        start.invalid_as(start.value.clone(), "field is immutable for unsuspended job once set", causes);
    }
    if is(old, "SuccessCriteriaMet") && !is(object, "SuccessCriteriaMet") {
        at.invalid_hidden("cannot disable the SuccessCriteriaMet=True condition", causes);
    }
    if is(old, "Complete") && !is(old, "SuccessCriteriaMet") && is(object, "SuccessCriteriaMet") {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        at.invalid_hidden(detail, causes);
    }
}

fn is(job: &Value, kind: &str) -> bool {
    has(job, kind, "True")
}

fn has(job: &Value, kind: &str, status: &str) -> bool {
    let conditions = job["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == status)
}

fn is_over(job: &Value) -> bool {
    is(job, "Complete") || is(job, "Failed")
}

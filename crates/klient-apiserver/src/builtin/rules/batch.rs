//! Validation of jobs and cron jobs.

use klient_core::StatusCause;
use serde_json::Value;

use super::pod_spec;

/// Validates a job.
pub(in crate::builtin) fn job(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    job_spec(&object["spec"], "spec", causes);
    let Some(old) = old else { return };
    for field in
        ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        if object["spec"][field] != old["spec"][field] {
            let value = object["spec"][field].clone();
            causes.push(StatusCause::invalid(format!("spec.{field}"), value, "field is immutable"));
        }
    }
}

/// Validates a cron job.
pub(in crate::builtin) fn cron_job(object: &Value, _: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let spec = &object["spec"];
    let schedule = spec["schedule"].as_str().unwrap_or_default();
    if schedule.is_empty() {
        causes.push(StatusCause::required("spec.schedule", ""));
    } else if !schedule.starts_with('@') && !schedule.contains("TZ") {
        let count = schedule.split_whitespace().count();
        if count != 5 {
            let detail = format!("expected exactly 5 fields, found {count}: [{schedule}]");
            causes.push(StatusCause::invalid("spec.schedule", schedule, &detail));
        }
    } else if schedule.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.push(StatusCause::invalid("spec.schedule", schedule, detail));
    }
    not_negative(spec, "spec", &["startingDeadlineSeconds"], causes);
    let policies = ["Allow", "Forbid", "Replace"];
    if let Some(policy) = spec["concurrencyPolicy"].as_str().filter(|policy| !policies.contains(policy)) {
        causes.push(StatusCause::not_supported("spec.concurrencyPolicy", policy, &policies));
    }
    job_spec(&spec["jobTemplate"]["spec"], "spec.jobTemplate.spec", causes);
    not_negative(spec, "spec", &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], causes);
}

fn job_spec(spec: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let counts = ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    not_negative(spec, path, &counts, causes);
    let modes = ["NonIndexed", "Indexed"];
    let mode = spec["completionMode"].as_str();
    if let Some(mode) = mode.filter(|mode| !modes.contains(mode)) {
        causes.push(StatusCause::not_supported(format!("{path}.completionMode"), mode, &modes));
    }
    if mode == Some("Indexed") && spec.get("completions").is_none() {
        let detail = "when completion mode is Indexed";
        causes.push(StatusCause::required(format!("{path}.completions"), detail));
    }
    pod_spec::validate(&spec["template"]["spec"], &format!("{path}.template.spec"), causes);
    match spec["template"]["spec"]["restartPolicy"].as_str().unwrap_or_default() {
        "" | "Always" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            causes.push(StatusCause::required(format!("{path}.template.spec.restartPolicy"), detail));
        }
        "OnFailure" | "Never" => {}
        other => {
            let field = format!("{path}.template.spec.restartPolicy");
            causes.push(StatusCause::not_supported(field, other, &["OnFailure", "Never"]));
        }
    }
}

/// Validates numbers that count something.
pub(super) fn not_negative(value: &Value, path: &str, fields: &[&str], causes: &mut Vec<StatusCause>) {
    for field in fields {
        if let Some(number) = value[*field].as_i64().filter(|number| *number < 0) {
            let detail = "must be greater than or equal to 0";
            causes.push(StatusCause::invalid(format!("{path}.{field}"), number, detail));
        }
    }
}

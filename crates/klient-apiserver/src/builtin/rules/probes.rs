//! Validation of probes, and of the handlers of a container's lifecycle.

use super::field::{Causes, Field};
use crate::metadata::formats;

/// The parts of a pod that handlers depend on.
pub(super) struct Handlers<'a> {
    /// The seconds that the pod has to end.
    pub(super) grace_period: Option<i64>,
    /// The operating system of the pod.
    pub(super) os: Option<&'a str>,
}

/// Validates the probes of a container.
pub(super) fn all(container: &Field<'_, '_>, handlers: &Handlers<'_>, causes: &mut Causes) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.set(name) else { continue };
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], handlers, causes);
        for number in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            probe.field(number).not_negative(causes);
        }
        let grace = probe.field("terminationGracePeriodSeconds");
        if grace.int().is_some_and(|seconds| seconds <= 0) {
            grace.invalid("must be greater than 0", causes);
        }
        if name == "readinessProbe" {
            if grace.is_set() {
                grace.invalid("must not be set for readinessProbes", causes);
            }
        } else if probe.field("successThreshold").number() != 1 {
            let threshold = probe.field("successThreshold");
            threshold.invalid_as(threshold.number(), "must be 1", causes);
        }
    }
}

/// Validates the lifecycle of a container.
pub(super) fn lifecycle(lifecycle: &Field<'_, '_>, handlers: &Handlers<'_>, causes: &mut Causes) {
    for name in ["postStart", "preStop"] {
        if let Some(field) = lifecycle.set(name) {
            handler(&field, &["exec", "httpGet", "tcpSocket", "sleep"], handlers, causes);
        }
    }
    if let Some(signal) = lifecycle.set("stopSignal")
        && handlers.os.is_none()
    {
        signal.forbidden("may not be set for containers with empty `spec.os.name`", causes);
    }
}

fn handler(field: &Field<'_, '_>, kinds: &[&str], handlers: &Handlers<'_>, causes: &mut Causes) {
    let mut has_one = false;
    for kind in kinds {
        let Some(action) = field.set(kind) else { continue };
        if has_one {
            action.forbidden("may not specify more than 1 handler type", causes);
            continue;
        }
        has_one = true;
        match *kind {
            "exec" => {
                if action.field("command").is_empty() {
                    action.field("command").required("", causes);
                }
            }
            "httpGet" => http_get(&action, causes),
            "sleep" => sleep(&action, handlers, causes),
            "grpc" => action.field("port").port_number(causes),
            _ => action.field("port").port(causes),
        }
    }
    if !has_one {
        field.required("must specify a handler type", causes);
    }
}

fn http_get(action: &Field<'_, '_>, causes: &mut Causes) {
    action.field("path").not_empty(causes);
    action.field("port").port(causes);
    let scheme = action.field("scheme");
    if !["HTTP", "HTTPS"].contains(&scheme.text()) {
        scheme.not_supported(&["HTTP", "HTTPS"], causes);
    }
    let headers = action.field("httpHeaders");
    for header in headers.items() {
        let name = header.field("name").text();
        for problem in formats::header_problems(name) {
            headers.invalid_as(name, &problem, causes);
        }
    }
}

fn sleep(action: &Field<'_, '_>, handlers: &Handlers<'_>, causes: &mut Causes) {
    let seconds = action.field("seconds").number();
    if let Some(grace) = handlers.grace_period
        && !(0..=grace).contains(&seconds)
    {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        action.invalid_as(seconds, &detail, causes);
    }
}

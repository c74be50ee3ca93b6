//! Validation of autoscalers, disruption budgets, ingresses and volume claims.

use klient_core::StatusCause;
use serde_json::Value;

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Validates an autoscaler.
pub(in crate::builtin) fn autoscaler(object: &Value, _: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let spec = &object["spec"];
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or_default());
    if let Some(least) = least.filter(|least| *least < 1) {
        causes.push(StatusCause::invalid("spec.minReplicas", least, "must be greater than or equal to 1"));
    }
    if most == 0 {
        causes.push(StatusCause::required("spec.maxReplicas", "must be set and greater than 0"));
    } else if most < 0 {
        causes.push(StatusCause::invalid("spec.maxReplicas", most, "must be greater than or equal to 1"));
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(StatusCause::invalid("spec.maxReplicas", most, detail));
    }
    for field in ["kind", "name"] {
        if text(&spec["scaleTargetRef"], field).is_empty() {
            causes.push(StatusCause::required(format!("spec.scaleTargetRef.{field}"), ""));
        }
    }
    let api_version = text(&spec["scaleTargetRef"], "apiVersion");
    if api_version.is_empty() {
        let detail = "apiVersion must specify API group";
        causes.push(StatusCause::invalid("spec.scaleTargetRef.apiVersion", api_version, detail));
    }
    let metrics = spec["metrics"].as_array().map_or(&[][..], Vec::as_slice);
    if least == Some(0) && !metrics.iter().any(|metric| matches!(text(metric, "type"), "Object" | "External")) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(StatusCause::forbidden("spec.metrics", detail));
    }
}

/// Validates a disruption budget.
pub(in crate::builtin) fn disruption_budget(object: &Value, _: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let spec = &object["spec"];
    if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
        // The real server shows its internal form here.
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            spec["minAvailable"], spec["selector"], spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]
        );
        let message = format!("Invalid value: {shown}: minAvailable and maxUnavailable cannot be both set");
        causes.push(StatusCause::new(StatusCause::FIELD_VALUE_INVALID, "spec", message));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let at = format!("spec.{field}");
        match &spec[field] {
            Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
                causes.push(StatusCause::invalid(at, number.as_i64(), "must be greater than or equal to 0"));
            }
            Value::String(given) => match given.strip_suffix('%').and_then(|number| number.parse::<u32>().ok()) {
                None => {
                    let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                    causes.push(StatusCause::invalid(at, given.as_str(), detail));
                }
                Some(101..) => {
                    causes.push(StatusCause::invalid(at, given.as_str(), "must not be greater than 100%"));
                }
                Some(_) => {}
            },
            _ => {}
        }
    }
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    if let Some(policy) = spec["unhealthyPodEvictionPolicy"].as_str().filter(|policy| !policies.contains(policy)) {
        causes.push(StatusCause::not_supported("spec.unhealthyPodEvictionPolicy", policy, &policies));
    }
}

/// Validates an ingress.
pub(in crate::builtin) fn ingress(object: &Value, _: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let spec = &object["spec"];
    let rules = spec["rules"].as_array().map_or(&[][..], Vec::as_slice);
    if rules.is_empty() && spec.get("defaultBackend").is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(StatusCause::invalid("spec", spec["rules"].clone(), detail));
    }
    if let Some(default) = spec.get("defaultBackend") {
        backend(default, "spec.defaultBackend", causes);
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = format!("spec.rules[{index}].http.paths");
        let Some(http) = rule.get("http") else { continue };
        let paths = http["paths"].as_array().map_or(&[][..], Vec::as_slice);
        if paths.is_empty() {
            causes.push(StatusCause::required(&*at, ""));
        }
        for (index, path) in paths.iter().enumerate() {
            ingress_path(path, &format!("{at}[{index}]"), causes);
        }
    }
}

fn ingress_path(path: &Value, at: &str, causes: &mut Vec<StatusCause>) {
    let given = text(path, "path");
    let is_absolute = given.starts_with('/');
    match path["pathType"].as_str().filter(|kind| !kind.is_empty()) {
        None => {
            causes.push(StatusCause::required(format!("{at}.pathType"), "pathType must be specified"));
            return;
        }
        Some("Exact" | "Prefix") => {
            if !is_absolute {
                causes.push(StatusCause::invalid(format!("{at}.path"), given, "must be an absolute path"));
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| given.contains(**part)) {
                causes.push(StatusCause::invalid(format!("{at}.path"), given, &format!("must not contain '{part}'")));
            }
            for end in ["/..", "/."].iter().filter(|end| given.ends_with(**end)) {
                causes.push(StatusCause::invalid(format!("{at}.path"), given, &format!("cannot end with '{end}'")));
            }
        }
        Some("ImplementationSpecific") => {
            if !given.is_empty() && !is_absolute {
                causes.push(StatusCause::invalid(format!("{at}.path"), given, "must be an absolute path"));
            }
        }
        Some(other) => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            causes.push(StatusCause::not_supported(format!("{at}.pathType"), other, &known));
        }
    }
    backend(&path["backend"], &format!("{at}.backend"), causes);
}

fn backend(backend: &Value, at: &str, causes: &mut Vec<StatusCause>) {
    match (backend.get("resource"), backend.get("service")) {
        (Some(_), Some(_)) => {
            causes.push(StatusCause::invalid(at, "", "cannot set both resource and service backends"));
        }
        (Some(_), None) => {}
        (None, Some(service)) => {
            if text(service, "name").is_empty() {
                causes.push(StatusCause::required(format!("{at}.service.name"), ""));
            }
            let (name, number) =
                (text(&service["port"], "name"), service["port"]["number"].as_i64().unwrap_or_default());
            match (name.is_empty(), number) {
                (false, 1..) => causes.push(StatusCause::invalid(at, "", "cannot set both port name & port number")),
                (true, 0) => causes.push(StatusCause::required(at, "port name or number is required")),
                (_, number) if !(0..=65_535).contains(&number) => {
                    let detail = "must be between 1 and 65535, inclusive";
                    causes.push(StatusCause::invalid(format!("{at}.service.port.number"), number, detail));
                }
                _ => {}
            }
        }
        (None, None) => causes.push(StatusCause::invalid(at, "", "resource or service backend is required")),
    }
}

/// Validates a volume claim.
pub(in crate::builtin) fn volume_claim(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    if old.is_some() {
        return;
    }
    let spec = &object["spec"];
    let modes: Vec<&str> = spec["accessModes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if modes.is_empty() {
        causes.push(StatusCause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in modes.iter().filter(|mode| !known.contains(mode)) {
        causes.push(StatusCause::not_supported("spec.accessModes", *mode, &known));
    }
    if modes.contains(&"ReadWriteOncePod")
        && modes.iter().any(|mode| *mode != "ReadWriteOncePod" && known.contains(mode))
    {
        let detail = "may not use ReadWriteOncePod with other access modes";
        causes.push(StatusCause::forbidden("spec.accessModes", detail));
    }
    if spec["resources"]["requests"].get("storage").is_none() {
        causes.push(StatusCause::required("spec.resources[storage]", ""));
    }
    let volume_modes = ["Block", "Filesystem"];
    if let Some(mode) = spec["volumeMode"].as_str().filter(|mode| !volume_modes.contains(mode)) {
        causes.push(StatusCause::not_supported("spec.volumeMode", mode, &volume_modes));
    }
}

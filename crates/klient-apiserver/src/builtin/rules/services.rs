//! Validation of services.

use klient_core::StatusCause;
use serde_json::Value;

/// Validates the ports of a service.
pub(super) fn ports(spec: &Value, causes: &mut Vec<StatusCause>) {
    let headless = spec["clusterIP"] == "None";
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    if ports.is_empty() && !headless && spec["type"] != "ExternalName" {
        causes.push(StatusCause::required("spec.ports", ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let at = |field: &str| format!("spec.ports[{index}].{field}");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            if ports.len() > 1 {
                causes.push(StatusCause::required(at("name"), ""));
            }
        } else {
            if let Err(why) = crate::metadata::check_label(name) {
                causes.push(StatusCause::invalid(at("name"), name, &why));
            }
            if names.contains(&name) {
                causes.push(StatusCause::duplicate(at("name"), name));
            }
            names.push(name);
        }
        for field in ["port", "targetPort"] {
            if let Some(number) = port[field].as_i64().filter(|number| !(1..=65_535).contains(number)) {
                causes.push(StatusCause::invalid(at(field), number, "must be between 1 and 65535, inclusive"));
            }
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            if field == "port" && !PROTOCOLS.contains(&protocol) {
                causes.push(StatusCause::not_supported(at("protocol"), protocol, &PROTOCOLS));
            }
        }
    }
    let pairs: Vec<(&Value, &str)> =
        ports.iter().map(|port| (&port["port"], port["protocol"].as_str().unwrap_or("TCP"))).collect();
    for (index, pair) in pairs.iter().enumerate() {
        if pairs[..index].contains(pair) {
            let value = serde_json::json!({"port": pair.0, "protocol": pair.1});
            causes.push(StatusCause::duplicate(format!("spec.ports[{index}]"), value));
        }
    }
}

/// Validates that the cluster IPs of a service do not change.
pub(super) fn addresses(spec: &Value, old: &Value, causes: &mut Vec<StatusCause>) {
    let is_headless = |spec: &Value| spec["clusterIP"] == "None";
    if [spec, old].iter().any(|spec| spec["type"] == "ExternalName") || (is_headless(spec) && is_headless(old)) {
        return;
    }
    let all = |spec: &Value| spec["clusterIPs"].as_array().cloned().unwrap_or_default();
    let (new, old) = (all(spec), all(old));
    for (index, address) in old.iter().enumerate() {
        if new.get(index).is_some_and(|new| new != address) {
            let field = format!("spec.clusterIPs[{index}]");
            causes.push(StatusCause::invalid(field, new.clone(), "may not change once set"));
        }
    }
}

/// Validates the external traffic policy of a service.
pub(super) fn traffic(spec: &Value, causes: &mut Vec<StatusCause>) {
    if let Some(policy) = spec["externalTrafficPolicy"].as_str().filter(|policy| !policy.is_empty())
        && !crate::builtin::services::is_reached_from_outside(spec)
    {
        let detail = "may only be set for externally-accessible services";
        causes.push(StatusCause::invalid("spec.externalTrafficPolicy", policy, detail));
    }
}

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

//! Validation of the specification of pods, in pods and in templates.

use klient_core::{Quantity, StatusCause};
use serde_json::Value;

use crate::metadata::check_label;

/// Validates the volumes, containers and policies of a pod or a template.
pub(super) fn validate(spec: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let volumes = volumes(spec, path, causes);
    let containers = list(spec, "containers");
    if containers.is_empty() {
        causes.push(StatusCause::required(format!("{path}.containers"), ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, item) in containers.iter().enumerate() {
        container(item, &volumes, &format!("{path}.containers[{index}]"), causes);
        unique_name(item, &mut names, &format!("{path}.containers[{index}].name"), causes);
    }
    for (index, item) in list(spec, "initContainers").iter().enumerate() {
        container(item, &volumes, &format!("{path}.initContainers[{index}]"), causes);
        unique_name(item, &mut names, &format!("{path}.initContainers[{index}].name"), causes);
    }
    one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, causes);
    one_of(spec, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], path, causes);
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn one_of(value: &Value, field: &str, allowed: &[&str], path: &str, causes: &mut Vec<StatusCause>) {
    if let Some(given) = value[field].as_str().filter(|given| !given.is_empty() && !allowed.contains(given)) {
        causes.push(StatusCause::not_supported(format!("{path}.{field}"), given, allowed));
    }
}

/// Validates the volumes, and returns the names of the valid ones.
fn volumes<'a>(spec: &'a Value, path: &str, causes: &mut Vec<StatusCause>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let at = format!("{path}.volumes[{index}]");
        let before = causes.len();
        let sources = volume.as_object().into_iter().flat_map(serde_json::Map::keys).filter(|field| *field != "name");
        for second in sources.skip(1) {
            let detail = "may not specify more than 1 volume type";
            causes.push(StatusCause::forbidden(format!("{at}.{second}"), detail));
        }
        let name = text(volume, "name");
        if name.is_empty() {
            causes.push(StatusCause::required(format!("{at}.name"), ""));
        } else if let Err(why) = check_label(name) {
            causes.push(StatusCause::invalid(format!("{at}.name"), name, &why));
        }
        if names.contains(&name) {
            causes.push(StatusCause::duplicate(format!("{at}.name"), name));
        }
        if causes.len() == before {
            names.push(name);
        }
    }
    names
}

fn unique_name<'a>(container: &'a Value, names: &mut Vec<&'a str>, at: &str, causes: &mut Vec<StatusCause>) {
    let name = text(container, "name");
    if names.contains(&name) {
        causes.push(StatusCause::duplicate(at, name));
    } else {
        names.push(name);
    }
}

fn container(container: &Value, volumes: &[&str], path: &str, causes: &mut Vec<StatusCause>) {
    let at = |field: &str| format!("{path}.{field}");
    let name = text(container, "name");
    if name.is_empty() {
        causes.push(StatusCause::required(at("name"), ""));
    } else if let Err(why) = check_label(name) {
        causes.push(StatusCause::invalid(at("name"), name, &why));
    }
    if text(container, "image").is_empty() {
        causes.push(StatusCause::required(at("image"), ""));
    }
    one_of(container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path, causes);
    ports(container, path, causes);
    for (index, variable) in list(container, "env").iter().enumerate() {
        let name = text(variable, "name");
        if name.is_empty() {
            causes.push(StatusCause::required(format!("{path}.env[{index}].name"), ""));
        } else if name.contains('=') || !name.chars().all(|c| (' '..='~').contains(&c)) {
            let detail =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            causes.push(StatusCause::invalid(format!("{path}.env[{index}].name"), name, detail));
        }
    }
    mounts(container, volumes, path, causes);
    one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, causes);
    resources(&container["resources"], &at("resources"), causes);
}

fn ports(container: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let at = |field: &str| format!("{path}.ports[{index}].{field}");
        let name = text(port, "name");
        if names.contains(&name) && !name.is_empty() {
            causes.push(StatusCause::duplicate(at("name"), name));
        }
        names.push(name);
        let number = port["containerPort"].as_i64().unwrap_or_default();
        if number == 0 {
            causes.push(StatusCause::required(at("containerPort"), ""));
        }
        for (field, number) in [("containerPort", number), ("hostPort", port["hostPort"].as_i64().unwrap_or_default())]
        {
            if number != 0 && !(1..=65_535).contains(&number) {
                causes.push(StatusCause::invalid(at(field), number, "must be between 1 and 65535, inclusive"));
            }
        }
        one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &format!("{path}.ports[{index}]"), causes);
    }
}

fn mounts(container: &Value, volumes: &[&str], path: &str, causes: &mut Vec<StatusCause>) {
    let mut paths: Vec<&str> = Vec::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = |field: &str| format!("{path}.volumeMounts[{index}].{field}");
        let (name, mount_path) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            causes.push(StatusCause::required(at("name"), ""));
        }
        if !volumes.contains(&name) {
            causes.push(StatusCause::not_found(at("name"), name));
        }
        if mount_path.is_empty() {
            causes.push(StatusCause::required(at("mountPath"), ""));
        }
        if paths.contains(&mount_path) {
            causes.push(StatusCause::invalid(at("mountPath"), mount_path, "must be unique"));
        }
        paths.push(mount_path);
    }
}

/// Validates that no request exceeds its limit.
fn resources(resources: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let parsed = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    for (name, request) in resources["requests"].as_object().into_iter().flatten() {
        let limit = &resources["limits"][name];
        if let (Some(amount), Some(most)) = (parsed(request), parsed(limit))
            && amount > most
        {
            let detail =
                format!("must be less than or equal to {name} limit of {}", limit.as_str().unwrap_or_default());
            causes.push(StatusCause::invalid(format!("{path}.requests"), request.clone(), &detail));
        }
    }
}

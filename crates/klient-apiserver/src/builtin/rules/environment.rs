//! Validation of the environment of containers, and of references to fields of a pod.

use super::field::{Causes, Field};
use crate::metadata::formats;

/// Validates the variables of a container.
pub(super) fn variables(variables: &Field<'_, '_>, causes: &mut Causes) {
    for variable in variables.items() {
        let name = variable.field("name");
        if name.not_empty(causes) {
            name.problems(formats::variable_problems(name.text()), causes);
        }
        if let Some(source) = variable.set("valueFrom") {
            value_from(&source, !variable.field("value").text().is_empty(), causes);
        }
    }
}

fn value_from(source: &Field<'_, '_>, has_value: bool, causes: &mut Causes) {
    let mut count = 0;
    if let Some(field) = source.set("fieldRef") {
        count += 1;
        object_field(&field, &VARIABLE_FIELDS, causes);
    }
    if let Some(resource) = source.set("resourceFieldRef") {
        count += 1;
        container_resource(&resource, false, causes);
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = source.set(name) {
            count += 1;
            reference.field("name").subdomain(causes);
            let key = reference.field("key");
            if key.not_empty(causes) {
                key.problems(formats::key_problems(key.text()), causes);
            }
        }
    }
    if let Some(file) = source.set("fileKeyRef") {
        count += 1;
        file_key(&file, causes);
    }
    if count == 0 {
        let detail =
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        source.invalid_as("", detail, causes);
    } else if has_value {
        source.invalid_as("", "may not be specified when `value` is not empty", causes);
    } else if count > 1 {
        source.invalid_as("", "may not have more than one field specified at a time", causes);
    }
}

fn file_key(file: &Field<'_, '_>, causes: &mut Causes) {
    let (key, volume, path) = (file.field("key"), file.field("volumeName"), file.field("path"));
    if key.not_empty(causes) {
        key.problems(formats::variable_problems(key.text()), causes);
    }
    if volume.not_empty(causes) {
        volume.label(causes);
    }
    if path.not_empty(causes) {
        path.no_backsteps(causes);
    }
}

/// Validates a reference to a field of the pod.
pub(super) fn object_field(reference: &Field<'_, '_>, supported: &[&str], causes: &mut Causes) {
    let (version, path) = (reference.field("apiVersion"), reference.field("fieldPath"));
    if !version.not_empty(causes) || !path.not_empty(causes) {
        return;
    }
    let text = path.text();
    let problem = match subscript(text) {
        _ if version.text() != "v1" => Some(format!("unsupported pod version: {}", version.text())),
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {text}")),
        None if FIELDS.contains(&text) => None,
        None => Some(format!("field label not supported: {text}")),
    };
    if let Some(problem) = problem {
        return path.invalid(&format!("error converting fieldPath: {problem}"), causes);
    }
    match subscript(text) {
        Some((list, key)) => {
            let lower = if list == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            for problem in formats::qualified_name_problems(&lower) {
                reference.invalid_as(lower.as_str(), &problem, causes);
            }
        }
        None => {
            let internal = if text == "spec.host" { "spec.nodeName" } else { text };
            if !supported.contains(&internal) {
                path.not_supported(supported, causes);
            }
        }
    }
}

/// Returns the parts of a path such as `metadata.labels['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(first, _)| !first.is_empty())
}

/// Validates a reference to a resource of a container.
pub(super) fn container_resource(reference: &Field<'_, '_>, is_volume: bool, causes: &mut Causes) {
    let (container, resource) = (reference.field("containerName"), reference.field("resource"));
    let name = resource.text();
    let is_huge_page = ["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    if is_volume && container.text().is_empty() {
        container.required("", causes);
    } else if name.is_empty() {
        resource.required("", causes);
    } else if !RESOURCES.contains(&name) && !is_huge_page {
        resource.not_supported(&RESOURCES, causes);
    }
    let divisor = reference.field("divisor");
    if divisor.quantity().is_none_or(|divisor| divisor.is_zero()) {
        return;
    }
    let sizes = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let what = match name {
        "limits.cpu" | "requests.cpu" => {
            if !["1m", "1"].contains(&divisor.text()) {
                let detail = "only divisor's values 1m and 1 are supported with the cpu resource";
                divisor.invalid_as(name, detail, causes);
            }
            return;
        }
        "limits.memory" | "requests.memory" => "memory",
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => "local ephemeral storage",
        _ if is_huge_page => "hugepages",
        _ => return,
    };
    if !sizes.contains(&divisor.text()) {
        let detail = format!(
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the {what} resource"
        );
        divisor.invalid_as(name, &detail, causes);
    }
}

/// Validates the sources of variables of a container.
pub(super) fn sources(sources: &Field<'_, '_>, causes: &mut Causes) {
    for source in sources.items() {
        let prefix = source.field("prefix");
        if !prefix.text().is_empty() {
            prefix.problems(formats::variable_problems(prefix.text()), causes);
        }
        let mut count = 0;
        for name in ["configMapRef", "secretRef"] {
            if let Some(reference) = source.set(name) {
                count += 1;
                let name = reference.field("name");
                if name.not_empty(causes) {
                    // A name may end with a dash, as a prefix of names does.
                    name.problems(formats::subdomain_problems(&formats::masked_prefix(name.text())), causes);
                }
            }
        }
        match count {
            0 => sources.invalid_as("", "must specify one of: `configMapRef` or `secretRef`", causes),
            1 => {}
            _ => sources.invalid_as("", "may not have more than one field specified at a time", causes),
        }
    }
}

/// The fields that variables can refer to.
const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The fields that files can refer to.
pub(super) const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// All fields with a name.
const FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

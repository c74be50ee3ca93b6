//! Validation of the volumes and devices that containers mount.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    field::{Causes, Field},
    paths,
};

/// Validates the mounts of a container.
pub(super) fn validate(container: &Field<'_, '_>, volumes: &[&Value], causes: &mut Causes) {
    let mounts = container.field("volumeMounts");
    let devices = container.field("volumeDevices");
    let used = by_name(devices.list(), "devicePath");
    let used_paths: HashSet<&str> = used.values().copied().collect();
    let mut paths = HashSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        name.not_empty(causes);
        if find(volumes, name.text()).is_none() {
            name.not_found(causes);
        }
        path.not_empty(causes);
        if !paths.insert(path.text()) {
            path.invalid("must be unique", causes);
        }
        if used.contains_key(name.text()) {
            name.invalid("must not already exist in volumeDevices", causes);
        }
        if used_paths.contains(path.text()) {
            path.invalid("must not already exist as a path in volumeDevices", causes);
        }
        let (sub_path, expression) = (mount.field("subPath"), mount.field("subPathExpr"));
        if !sub_path.text().is_empty() {
            mounts.field("subPath").with(sub_path.value).descending_path(causes);
        }
        if !expression.text().is_empty() {
            if !sub_path.text().is_empty() {
                expression.invalid("subPathExpr and subPath are mutually exclusive", causes);
            }
            mounts.field("subPathExpr").with(expression.value).descending_path(causes);
        }
        propagation(container, &mounts, &mount, causes);
    }
}

fn propagation(container: &Field<'_, '_>, mounts: &Field<'_, '_>, mount: &Field<'_, '_>, causes: &mut Causes) {
    let propagation = mounts.field("mountPropagation");
    let propagation = propagation.with(&mount.value["mountPropagation"]);
    if propagation.is_set() {
        propagation.optional_one_of(&["Bidirectional", "HostToContainer", "None"], causes);
        let is_privileged = container.field("securityContext").field("privileged").is_true();
        if propagation.text() == "Bidirectional" && !is_privileged {
            let detail = "Bidirectional mount propagation is available only to privileged containers";
            propagation.forbidden(detail, causes);
        }
    }
    let recursive = mounts.field("recursiveReadOnly");
    let recursive = recursive.with(&mount.value["recursiveReadOnly"]);
    if !recursive.is_set() {
        return;
    }
    match recursive.text() {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.field("readOnly").is_true() {
                recursive.forbidden("may only be specified when readOnly is true", causes);
            }
            if propagation.is_set() && propagation.text() != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                recursive.forbidden(detail, causes);
            }
        }
        _ => recursive.not_supported(&["Disabled", "Enabled", "IfPossible"], causes),
    }
}

/// Validates the block devices of a container.
pub(super) fn devices(container: &Field<'_, '_>, volumes: &[&Value], causes: &mut Causes) {
    let mounts = container.field("volumeMounts");
    let used = by_name(mounts.list(), "mountPath");
    let used_paths: HashSet<&str> = used.values().copied().collect();
    let (mut names, mut taken) = (HashSet::new(), HashSet::new());
    for device in container.field("volumeDevices").items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        let volume = find(volumes, name.text());
        name.not_empty(causes);
        if names.contains(name.text()) {
            name.invalid("must be unique", causes);
        }
        match volume {
            Some(volume) if volume.get("persistentVolumeClaim").is_none() && volume.get("ephemeral").is_none() => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                name.invalid(detail, causes);
            }
            Some(_) => {}
            None => name.not_found(causes),
        }
        path.not_empty(causes);
        if taken.contains(path.text()) {
            path.invalid("must be unique", causes);
        }
        if paths::has_backsteps(path.text()) {
            path.invalid("can not contain backsteps ('..')", causes);
        } else {
            taken.insert(path.text());
        }
        if used.contains_key(name.text()) {
            name.invalid("must not already exist in volumeMounts", causes);
        }
        if used_paths.contains(path.text()) {
            path.invalid("must not already exist as a path in volumeMounts", causes);
        }
        if !name.text().is_empty() {
            names.insert(name.text());
        }
    }
}

/// Returns the paths of mounts or devices by name. The last one with a name counts.
fn by_name<'v>(list: &'v [Value], path: &str) -> HashMap<&'v str, &'v str> {
    list.iter().map(|item| (text(item, "name"), text(item, path))).collect()
}

fn find<'v>(volumes: &[&'v Value], name: &str) -> Option<&'v Value> {
    volumes.iter().find(|volume| text(volume, "name") == name).copied()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

//! Validation of the volumes of pods.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    claims, containers, environment,
    field::{Causes, Field},
    projected, volume_sources as from,
    volume_sources::{Source, text},
};
use crate::metadata::formats;

/// Validates the volumes of a pod, and returns the valid ones. `name` is the name of the pod, which templates do not have.
pub(super) fn validate<'v>(
    spec: &Field<'_, 'v>,
    name: Option<&str>,
    is_pod: bool,
    causes: &mut Causes,
) -> Vec<&'v Value> {
    let volumes = spec.field("volumes");
    let claim = |pod: &str, volume: &Value| format!("{pod}-{}", text(volume, "name"));
    let created: HashSet<String> = match name {
        Some(pod) => {
            let ephemeral = volumes.list().iter().filter(|volume| volume.get("ephemeral").is_some());
            ephemeral.map(|volume| claim(pod, volume)).collect()
        }
        None => HashSet::new(),
    };
    let (mut valid, mut names) = (Vec::new(), HashSet::new());
    for volume in volumes.items() {
        let before = causes.len();
        one(&volume, name, is_pod, causes);
        let own = volume.field("name");
        if own.not_empty(causes) {
            own.label(causes);
        }
        if names.contains(own.text()) {
            own.duplicate(causes);
        }
        if causes.len() == before {
            valid.push(volume.value);
            names.insert(own.text());
        }
        if let Some(source) = volume.set("persistentVolumeClaim")
            && created.contains(source.field("claimName").text())
        {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            source.field("claimName").invalid(detail, causes);
        }
    }
    valid
}

fn one(volume: &Field<'_, '_>, pod: Option<&str>, is_pod: bool, causes: &mut Causes) {
    let size = volume.field("emptyDir");
    let size = size.field("sizeLimit");
    if size.quantity().is_some_and(|size| size.is_negative()) {
        size.forbidden("SizeLimit field must be a valid resource quantity", causes);
    }
    let before = causes.len();
    from::one_source(volume, &SOURCES, causes);
    let name = text(volume.value, "name");
    if let Some(source) = volume.set("iscsi")
        && source.field("initiatorName").is_set()
        && name.len() + 1 + source.field("targetPortal").text().len() > 64
    {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        volume.field("name").invalid(detail, causes);
    }
    let is_first = causes.len() == before || !causes[before..].iter().any(|cause| cause.field.ends_with(".ephemeral"));
    if let Some(pod) = pod
        && volume.field("ephemeral").is_set()
        && is_first
        && !name.is_empty()
    {
        let claim = format!("{pod}-{name}");
        for problem in formats::subdomain_problems(&claim) {
            volume.field("name").invalid(&format!("PVC name {claim:?}: {problem}"), causes);
        }
    }
    if is_pod
        && let Some(image) = volume.set("image")
        && image.field("reference").text().is_empty()
    {
        let at = causes.iter().skip(before).position(|cause| cause.field.starts_with(&image.path()));
        let at = at.map_or(causes.len(), |at| before + at);
        // A second source is not looked into.
        if causes.get(at).is_none_or(|cause| cause.field != image.path()) {
            causes.insert(at, || klient_core::StatusCause::required(image.field("reference").path(), ""));
        }
    }
}

fn empty_dir(_: &Field<'_, '_>, _: &mut Causes) {}

fn secret(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("secretName").not_empty(causes);
    source.field("defaultMode").file_mode(causes);
    from::files(&source.field("items"), causes);
}

fn config_map(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("name").not_empty(causes);
    source.field("defaultMode").file_mode(causes);
    from::files(&source.field("items"), causes);
}

fn claim(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("claimName").not_empty(causes);
}

fn downward(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("defaultMode").file_mode(causes);
    for file in source.field("items").list() {
        // Messages do not name the item.
        downward_file(&source.with(file), causes);
    }
}

/// Validates a file with a field of the pod.
pub(super) fn downward_file(file: &Field<'_, '_>, causes: &mut Causes) {
    let path = file.field("path");
    path.not_empty(causes);
    path.local_path(causes);
    match (file.set("fieldRef"), file.set("resourceFieldRef")) {
        (Some(field), resource) => {
            environment::object_field(&field, &environment::FILE_FIELDS, causes);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                file.invalid_as("resource", detail, causes);
            }
        }
        (None, Some(resource)) => environment::container_resource(&resource, true, causes),
        (None, None) => file.required("one of fieldRef and resourceFieldRef is required", causes),
    }
    file.field("mode").file_mode(causes);
}

fn ephemeral(source: &Field<'_, '_>, causes: &mut Causes) {
    let template = source.field("volumeClaimTemplate");
    if !template.is_set() {
        return template.required("", causes);
    }
    let metadata = template.field("metadata");
    metadata.field("annotations").annotations(causes);
    metadata.field("labels").labels(causes);
    for (name, shown) in METADATA {
        if metadata.field(name).is_set() {
            metadata.named(name, shown).forbidden("cannot be set", causes);
        }
    }
    claims::spec(&template.field("spec"), false, causes);
}

fn image(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("pullPolicy").one_of(&containers::PULL_POLICIES, causes);
}

/// The sources of volumes, in the order in which they are validated.
static SOURCES: [Source; 30] = [
    Source::new("emptyDir", empty_dir),
    Source::new("hostPath", from::host_path),
    Source::new("gitRepo", from::git_repo),
    Source { shown: "persistentDisk", ..Source::new("gcePersistentDisk", from::gce_disk) },
    Source::new("awsElasticBlockStore", from::aws_disk),
    Source::new("secret", secret),
    Source::new("nfs", from::nfs),
    Source::new("iscsi", from::iscsi),
    Source::new("glusterfs", from::glusterfs),
    Source::new("flocker", from::flocker),
    Source::new("persistentVolumeClaim", claim),
    Source::new("rbd", from::rbd),
    Source::new("cinder", from::cinder),
    Source { second: "cephFS", ..Source::new("cephfs", from::ceph) },
    Source::new("quobyte", from::quobyte),
    Source { second: "downwarAPI", ..Source::new("downwardAPI", downward) },
    Source::new("fc", from::fibre_channel),
    Source::new("flexVolume", from::flex),
    Source::new("configMap", config_map),
    Source::new("azureFile", from::azure_file),
    Source::new("vsphereVolume", from::vsphere),
    Source::new("photonPersistentDisk", from::photon),
    Source::new("portworxVolume", from::portworx),
    Source::new("azureDisk", from::azure_disk),
    Source::new("storageos", from::storage_os),
    Source::new("projected", projected::validate),
    Source::new("scaleIO", from::scale_io),
    Source::new("csi", from::csi),
    Source::new("ephemeral", ephemeral),
    Source::new("image", image),
];

/// The metadata that the template of a claim cannot have, and its names in messages.
const METADATA: [(&str, &str); 12] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
];

//! Validation of persistent volumes.

use klient_core::StatusCause;
use serde_json::Value;

use super::{
    claims,
    field::{Causes, Field},
    same::is_same,
    selectors, volume_sources as from,
    volume_sources::Source,
};

/// Validates a persistent volume.
pub(in crate::builtin) fn volume(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    if spec.field("accessModes").is_empty() {
        spec.field("accessModes").required("", causes);
    }
    claims::access_modes(&spec.field("accessModes"), causes);
    capacity(&spec.field("capacity"), causes);
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !policy.text().is_empty() {
        policy.optional_one_of(&["Delete", "Recycle", "Retain"], causes);
    }
    let affinity = spec.field("nodeAffinity");
    if affinity.is_set() {
        match affinity.set("required") {
            Some(required) => required.node_selector(causes),
            None => affinity.field("required").required("must specify required node constraints", causes),
        }
    }
    sources(object, &spec, causes);
    let path = spec.field("hostPath");
    let path = path.field("path").text();
    let is_root =
        !path.is_empty() && path.split('/').all(|part| part.is_empty() || part == ".") && path.starts_with('/');
    if is_root && policy.text() == "Recycle" {
        policy.forbidden("may not be 'recycle' for a hostPath mount of '/'", causes);
    }
    if !spec.field("storageClassName").text().is_empty() {
        spec.field("storageClassName").subdomain(causes);
    }
    spec.field("volumeMode").optional_one_of(&["Block", "Filesystem"], causes);
    if let Some(class) = spec.set("volumeAttributesClassName") {
        if class.text().is_empty() {
            class.required("an empty string is disallowed", causes);
        } else {
            class.subdomain(causes);
        }
        if !spec.field("csi").is_set() {
            spec.field("csi").required("has to be specified when using volumeAttributesClassName", causes);
        }
    }
    if let Some(old) = old {
        update(object, old, causes);
    }
}

fn capacity(capacity: &Field<'_, '_>, causes: &mut Causes) {
    if capacity.is_empty() {
        capacity.required("", causes);
    }
    let count = capacity.value.as_object().map_or(0, serde_json::Map::len);
    if !capacity.key("storage").is_set() || count > 1 {
        let shown = if capacity.value.is_null() { "null".to_owned() } else { capacity.value.to_string() };
        capacity.not_supported_text(&shown, &["storage"], causes);
    }
    for (_, amount) in capacity.entries() {
        claims::basic(&amount, causes);
        if amount.quantity().is_some_and(|amount| amount.is_zero() || amount.is_negative()) {
            amount.invalid("must be greater than zero", causes);
        }
    }
}

fn sources(object: &Value, spec: &Field<'_, '_>, causes: &mut Causes) {
    let before = causes.len();
    from::one_source(spec, &SOURCES, causes);
    if let Some(source) = spec.set("iscsi")
        && source.field("initiatorName").is_set()
    {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if name.len() + 1 + source.field("targetPortal").text().len() > 64 {
            let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
            let portal = source.named("targetPortal", "targetportal");
            portal.invalid(detail, causes);
        }
    }
    let is_first_local = !causes[before..].iter().any(|cause| cause.field == "spec.local");
    if spec.field("local").is_set() && is_first_local && !spec.field("nodeAffinity").is_set() {
        spec.field("nodeAffinity").required("Local volume requires node affinity", causes);
    }
}

fn update(object: &Value, old: &Value, causes: &mut Causes) {
    let source = |object: &Value| -> Value {
        let fields = object["spec"].as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| SOURCES.iter().any(|source| source.field == name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let (mut new, before) = (source(object), source(old));
    if let Some(Value::Object(csi)) = new.get_mut("csi")
        && before["csi"].is_object()
        && before["csi"].get("controllerExpandSecretRef").is_none()
    {
        csi.remove("controllerExpandSecretRef");
    }
    if !is_same(&new, &before) {
        let detail = "spec.persistentvolumesource is immutable after creation\n";
        causes.add(|| StatusCause::forbidden("spec.persistentvolumesource", detail));
    }
    if old["spec"]["volumeMode"] != object["spec"]["volumeMode"] {
        causes.add(|| StatusCause::invalid("volumeMode", object["spec"]["volumeMode"].clone(), "field is immutable"));
    }
    let affinity = &object["spec"]["nodeAffinity"];
    let before = &old["spec"]["nodeAffinity"];
    if !before.is_null() && !is_same(&with_beta_labels(affinity, before), before) {
        let shown = selectors::affinity_text(affinity);
        let message = format!("Invalid value: {shown}: field is immutable, except for updating from beta label to GA");
        causes.add(|| StatusCause::new(StatusCause::FIELD_VALUE_INVALID, "nodeAffinity", message));
    }
    let class = |object: &Value| object["spec"]["volumeAttributesClassName"].clone();
    if !class(old).is_null() && class(object).is_null() {
        let detail = "update from non-nil value to nil is forbidden";
        causes.add(|| StatusCause::forbidden("spec.volumeAttributesClassName", detail));
    }
}

/// Returns a node affinity with the labels of the stored one, where these are the former names of its labels.
fn with_beta_labels(affinity: &Value, before: &Value) -> Value {
    let mut affinity = affinity.clone();
    let terms = affinity.pointer_mut("/required/nodeSelectorTerms").and_then(Value::as_array_mut);
    for (index, term) in terms.into_iter().flatten().enumerate() {
        let old = &before["required"]["nodeSelectorTerms"][index];
        for list in ["matchExpressions", "matchFields"] {
            let items = term.get_mut(list).and_then(Value::as_array_mut);
            for (index, item) in items.into_iter().flatten().enumerate() {
                let key = old[list][index]["key"].as_str().unwrap_or_default();
                // A label without a newer name may become empty.
                let newer = BETA_LABELS.iter().find(|(beta, _)| *beta == key).map_or("", |(_, newer)| *newer);
                if item["key"].as_str().unwrap_or_default() == newer {
                    item["key"] = Value::from(key);
                }
            }
        }
    }
    affinity
}

fn glusterfs(source: &Field<'_, '_>, causes: &mut Causes) {
    from::glusterfs(source, causes);
    if let Some(namespace) = source.set("endpointsNamespace") {
        if namespace.text().is_empty() {
            namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name", causes);
        } else {
            namespace.label(causes);
        }
    }
}

fn iscsi(source: &Field<'_, '_>, causes: &mut Causes) {
    from::iscsi_with(source, "must be valid format", causes);
}

fn cinder(source: &Field<'_, '_>, causes: &mut Causes) {
    from::cinder(source, causes);
    if let Some(secret) = source.set("secretRef") {
        secret.field("namespace").not_empty(causes);
    }
}

fn azure_file(source: &Field<'_, '_>, causes: &mut Causes) {
    from::azure_file(source, causes);
    if let Some(namespace) = source.set("secretNamespace") {
        namespace.not_empty(causes);
    }
}

fn local(source: &Field<'_, '_>, causes: &mut Causes) {
    let path = source.field("path");
    if path.not_empty(causes) {
        path.no_backsteps(causes);
    }
}

fn storage_os(source: &Field<'_, '_>, causes: &mut Causes) {
    from::storage_os(source, causes);
    if let Some(secret) = source.set("secretRef") {
        secret.field("namespace").not_empty(causes);
    }
}

fn csi(source: &Field<'_, '_>, causes: &mut Causes) {
    from::driver(&source.field("driver"), causes);
    source.field("volumeHandle").not_empty(causes);
    for name in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        let Some(secret) = source.set(name) else { continue };
        if secret.field("name").not_empty(causes) {
            secret.field("name").subdomain(causes);
        }
        if secret.field("namespace").not_empty(causes) {
            secret.field("namespace").label(causes);
        }
    }
}

/// The former names of the labels of nodes, and their names.
const BETA_LABELS: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// The sources of persistent volumes, in the order in which they are validated.
static SOURCES: [Source; 22] = [
    Source::new("hostPath", from::host_path),
    Source { shown: "persistentDisk", ..Source::new("gcePersistentDisk", from::gce_disk) },
    Source::new("awsElasticBlockStore", from::aws_disk),
    Source::new("glusterfs", glusterfs),
    Source::new("flocker", from::flocker),
    Source::new("nfs", from::nfs),
    Source::new("rbd", from::rbd),
    Source::new("quobyte", from::quobyte),
    Source { second: "cephFS", ..Source::new("cephfs", from::ceph) },
    Source::new("iscsi", iscsi),
    Source::new("cinder", cinder),
    Source::new("fc", from::fibre_channel),
    Source::new("flexVolume", from::flex),
    Source::new("azureFile", azure_file),
    Source::new("vsphereVolume", from::vsphere),
    Source::new("photonPersistentDisk", from::photon),
    Source::new("portworxVolume", from::portworx),
    Source::new("azureDisk", from::azure_disk),
    Source::new("scaleIO", from::scale_io),
    Source::new("local", local),
    Source::new("storageos", storage_os),
    Source::new("csi", csi),
];

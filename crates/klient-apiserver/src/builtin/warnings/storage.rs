//! Warnings about volumes, claims and kinds of storage drivers.

use serde_json::Value;

use super::{Told, node_labels, pod_spec::fractional_bytes, warn};
use crate::builtin::rules::Field;

/// Adds warnings about a persistent volume.
pub(in crate::builtin) fn volume(object: &Value, _: Option<&Value>, told: &mut Told) {
    let (metadata, spec) = (Field::of(object, "metadata"), Field::of(object, "spec"));
    for (key, why) in [
        (BETA_CLASS, USE_CLASS_NAME),
        ("volume.beta.kubernetes.io/mount-options", "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ] {
        if metadata.field("annotations").key(key).is_set() {
            warn(&metadata.field("annotations").key(key), why, told);
        }
    }
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if policy.text() == "Recycle" {
        let why = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
        warn(&policy, why, told);
    }
    for term in spec.field("nodeAffinity").field("required").field("nodeSelectorTerms").items() {
        node_labels::expressions(&term, false, told);
    }
    for (name, shown, why) in [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ] {
        if spec.field(name).is_set() {
            warn(&spec.named(name, shown), why, told);
        }
    }
}

/// Adds warnings about a claim.
pub(in crate::builtin) fn claim(object: &Value, _: Option<&Value>, told: &mut Told) {
    let metadata = Field::of(object, "metadata");
    if metadata.field("annotations").key(BETA_CLASS).is_set() {
        warn(&metadata.field("annotations").key(BETA_CLASS), USE_CLASS_NAME, told);
    }
    claim_spec(&Field::of(object, "spec"), told);
}

/// Adds warnings about the spec of a claim.
pub(super) fn claim_spec(spec: &Field<'_, '_>, told: &mut Told) {
    for list in ["requests", "limits"] {
        fractional_bytes(&spec.field("resources").field(list).key("storage"), told);
    }
}

/// Adds warnings about a storage class.
pub(in crate::builtin) fn storage_class(object: &Value, _: Option<&Value>, told: &mut Told) {
    for topology in Field::of(object, "allowedTopologies").items() {
        for expression in topology.field("matchLabelExpressions").items() {
            let key = expression.field("key");
            if let Some(why) = node_labels::deprecation(key.text()) {
                warn(&key, why, told);
            }
        }
    }
}

/// Adds warnings about a CSI storage capacity.
pub(in crate::builtin) fn storage_capacity(object: &Value, _: Option<&Value>, told: &mut Told) {
    let topology = Field::of(object, "nodeTopology");
    node_labels::expressions(&topology, false, told);
    for label in topology.value["matchLabels"].as_object().into_iter().flatten().map(|(label, _)| label) {
        if let Some(why) = node_labels::deprecation(label) {
            warn(&topology.field("matchLabels").field(label), why, told);
        }
    }
}

/// Adds a warning about a CSI driver with tokens, if they are new or have changed.
pub(in crate::builtin) fn csi_driver(object: &Value, old: Option<&Value>, told: &mut Told) {
    let spec = Field::of(object, "spec");
    let tokens = spec.field("tokenRequests");
    let is_changed = old.is_none_or(|old| old["spec"]["tokenRequests"] != *tokens.value);
    if is_changed && !tokens.is_empty() && !spec.field("serviceAccountTokenInSecrets").is_set() {
        let why = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
        told.push(why.to_owned());
    }
}

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const USE_CLASS_NAME: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";

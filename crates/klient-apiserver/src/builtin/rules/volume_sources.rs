//! Validation of the sources of volumes, in pods and in persistent volumes.

use serde_json::Value;

use super::field::{Causes, Field};
use crate::metadata::formats;

/// A source that a volume can have: its field, and the fields that messages name.
pub(super) struct Source {
    pub(super) field: &'static str,
    /// The name in the message about a second source.
    pub(super) second: &'static str,
    /// The name in messages about the source.
    pub(super) shown: &'static str,
    pub(super) validate: fn(&Field<'_, '_>, &mut Causes),
}

impl Source {
    pub(super) const fn new(field: &'static str, validate: fn(&Field<'_, '_>, &mut Causes)) -> Self {
        Self { field, second: field, shown: field, validate }
    }
}

/// Validates that a volume has exactly one source, and the source.
pub(super) fn one_source(volume: &Field<'_, '_>, sources: &[Source], causes: &mut Causes) {
    let mut has_one = false;
    for source in sources {
        let found = volume.named(source.field, source.shown);
        if !found.is_set() {
            continue;
        }
        if has_one {
            let second = volume.named(source.field, source.second);
            second.forbidden("may not specify more than 1 volume type", causes);
        } else {
            has_one = true;
            (source.validate)(&found, causes);
        }
    }
    if !has_one {
        volume.required("must specify a volume type", causes);
    }
}

pub(super) fn host_path(source: &Field<'_, '_>, causes: &mut Causes) {
    let path = source.field("path");
    if !path.not_empty(causes) {
        return;
    }
    path.no_backsteps(causes);
    let kinds = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    source.field("type").optional_one_of(&kinds, causes);
}

pub(super) fn git_repo(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("repository").not_empty(causes);
    source.field("directory").descending_path(causes);
}

pub(super) fn gce_disk(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("pdName").not_empty(causes);
    partition(source, causes);
}

pub(super) fn aws_disk(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("volumeID").not_empty(causes);
    partition(source, causes);
}

fn partition(source: &Field<'_, '_>, causes: &mut Causes) {
    let partition = source.field("partition");
    if !(0..=255).contains(&partition.number()) {
        partition.invalid("must be between 1 and 255, inclusive", causes);
    }
}

pub(super) fn nfs(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("server").not_empty(causes);
    let path = source.field("path");
    path.not_empty(causes);
    if !path.text().starts_with('/') {
        path.invalid("must be an absolute path", causes);
    }
}

pub(super) fn iscsi(source: &Field<'_, '_>, causes: &mut Causes) {
    iscsi_with(source, "must be valid format starting with iqn, eui, or naa", causes);
}

/// Validates an iSCSI source. Persistent volumes have another message for names of a wrong kind.
pub(super) fn iscsi_with(source: &Field<'_, '_>, wrong_kind: &str, causes: &mut Causes) {
    source.field("targetPortal").not_empty(causes);
    let name = source.field("iqn");
    if name.not_empty(causes) {
        iscsi_name(&name, wrong_kind, causes);
    }
    let lun = source.field("lun");
    lun.problems(formats::range_problems(lun.number(), 0, 255), causes);
    let uses_chap = source.field("chapAuthDiscovery").is_true() || source.field("chapAuthSession").is_true();
    if uses_chap && !source.field("secretRef").is_set() {
        source.field("secretRef").required("", causes);
    }
    if wrong_kind == "must be valid format"
        && let Some(secret) = source.set("secretRef")
    {
        secret.field("name").not_empty(causes);
    }
    let initiator = source.named("initiatorName", "initiatorname");
    if initiator.is_set() {
        iscsi_name(&initiator, wrong_kind, causes);
    }
}

fn iscsi_name(name: &Field<'_, '_>, wrong_kind: &str, causes: &mut Causes) {
    let text = name.text();
    let has_id = |prefix: &str, length: usize| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            // The separator can be any character.
            let mut id = rest.chars();
            id.next().is_some() && id.clone().count() == length && id.all(|c| c.is_ascii_alphanumeric())
        })
    };
    let is_valid = match text.get(..3) {
        Some("iqn") => is_iqn(text),
        Some("eui") => has_id("eui", 16),
        Some("naa") => has_id("naa", 32),
        _ => return name.invalid(wrong_kind, causes),
    };
    if !is_valid {
        name.invalid("must be valid format", causes);
    }
}

/// Returns whether a text ends with a name such as `iqn.2001-04.com.example:storage`.
fn is_iqn(text: &str) -> bool {
    text.match_indices("iqn.").any(|(at, _)| {
        let rest = &text[at + 4..];
        let Some((date, rest)) = rest.split_at_checked(7) else { return false };
        let is_date = date.char_indices().all(|(at, c)| if at == 4 { c == '-' } else { c.is_ascii_digit() });
        let Some((domain, id)) = rest.strip_prefix('.').and_then(|rest| rest.split_once(':')) else { return false };
        is_date
            && !domain.is_empty()
            && domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
            && !id.is_empty()
            && !id.contains(|c: char| ",;*&$|".contains(c) || c.is_ascii_whitespace())
    })
}

pub(super) fn glusterfs(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("endpoints").not_empty(causes);
    source.field("path").not_empty(causes);
}

pub(super) fn flocker(source: &Field<'_, '_>, causes: &mut Causes) {
    let (name, id) = (source.field("datasetName"), source.field("datasetUUID"));
    match (name.text().is_empty(), id.text().is_empty()) {
        (true, true) => source.required("one of datasetName and datasetUUID is required", causes),
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            source.invalid_as("resource", detail, causes);
        }
        _ => {}
    }
    if name.text().contains('/') {
        name.invalid("must not contain '/'", causes);
    }
}

pub(super) fn rbd(source: &Field<'_, '_>, causes: &mut Causes) {
    if source.field("monitors").is_empty() {
        source.field("monitors").required("", causes);
    }
    source.field("image").not_empty(causes);
}

pub(super) fn cinder(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("volumeID").not_empty(causes);
    if let Some(secret) = source.set("secretRef") {
        secret.field("name").not_empty(causes);
    }
}

pub(super) fn ceph(source: &Field<'_, '_>, causes: &mut Causes) {
    if source.field("monitors").is_empty() {
        source.field("monitors").required("", causes);
    }
}

pub(super) fn quobyte(source: &Field<'_, '_>, causes: &mut Causes) {
    let registry = source.field("registry");
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    if registry.text().is_empty() {
        registry.required(detail, causes);
    } else if source.field("tenant").text().len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        source.field("tenant").required(detail, causes);
    } else {
        for pair in registry.text().split(',') {
            let is_pair = pair.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.starts_with('['));
            if !is_pair {
                registry.invalid(detail, causes);
            }
        }
    }
    source.field("volume").not_empty(causes);
}

pub(super) fn fibre_channel(source: &Field<'_, '_>, causes: &mut Causes) {
    let (names, ids, lun) = (source.field("targetWWNs"), source.field("wwids"), source.field("lun"));
    match (names.is_empty(), ids.is_empty()) {
        (true, true) => names.required("must specify either targetWWNs or wwids, but not both", causes),
        (false, false) => names.invalid("targetWWNs and wwids can not be specified simultaneously", causes),
        _ => {}
    }
    if !names.is_empty() {
        match lun.int() {
            None => lun.required("lun is required if targetWWNs is specified", causes),
            Some(number) => lun.problems(formats::range_problems(number, 0, 255), causes),
        }
    }
}

pub(super) fn flex(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("driver").not_empty(causes);
    for (key, option) in source.field("options").entries() {
        let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            option.invalid_as(key, "kubernetes.io and k8s.io namespaces are reserved", causes);
        }
    }
}

pub(super) fn azure_file(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("secretName").not_empty(causes);
    source.field("shareName").not_empty(causes);
}

pub(super) fn azure_disk(source: &Field<'_, '_>, causes: &mut Causes) {
    let uri = source.field("diskURI");
    source.field("diskName").not_empty(causes);
    uri.not_empty(causes);
    source.field("cachingMode").optional_one_of(&["None", "ReadOnly", "ReadWrite"], causes);
    let kind = source.field("kind");
    kind.optional_one_of(&["Dedicated", "Managed", "Shared"], causes);
    if kind.is_set() && kind.text() == "Managed" && !uri.text().starts_with("/subscriptions/") {
        uri.not_supported(
            &["/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"],
            causes,
        );
    }
    if kind.is_set() && kind.text() != "Managed" && !uri.text().starts_with("https://") {
        let form = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
        uri.not_supported(&[form], causes);
    }
}

pub(super) fn vsphere(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("volumePath").not_empty(causes);
}

pub(super) fn photon(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("pdID").not_empty(causes);
}

pub(super) fn portworx(source: &Field<'_, '_>, causes: &mut Causes) {
    source.field("volumeID").not_empty(causes);
}

pub(super) fn scale_io(source: &Field<'_, '_>, causes: &mut Causes) {
    for name in ["gateway", "system", "volumeName"] {
        source.field(name).not_empty(causes);
    }
}

pub(super) fn storage_os(source: &Field<'_, '_>, causes: &mut Causes) {
    let (name, namespace) = (source.field("volumeName"), source.field("volumeNamespace"));
    if name.not_empty(causes) {
        name.label(causes);
    }
    if !namespace.text().is_empty() {
        namespace.label(causes);
    }
    if let Some(secret) = source.set("secretRef") {
        secret.field("name").not_empty(causes);
    }
}

/// Validates the name of a storage driver.
pub(super) fn driver(name: &Field<'_, '_>, causes: &mut Causes) {
    if !name.not_empty(causes) {
        return;
    }
    if name.text().len() > MAX_DRIVER {
        name.too_long(MAX_DRIVER, causes);
    }
    name.problems(formats::subdomain_problems(&name.text().to_lowercase()), causes);
}

pub(super) fn csi(source: &Field<'_, '_>, causes: &mut Causes) {
    driver(&source.field("driver"), causes);
    if let Some(secret) = source.set("nodePublishSecretRef") {
        let name = secret.field("name");
        if name.not_empty(causes) {
            for problem in formats::subdomain_problems(name.text()) {
                source.field("name").invalid_as(name.text(), &problem, causes);
            }
        }
    }
}

/// Validates the items of a config map or secret that become files.
pub(super) fn files(items: &Field<'_, '_>, causes: &mut Causes) {
    for item in items.items() {
        file(&item, causes);
    }
}

/// Validates one key that becomes a file.
pub(super) fn file(item: &Field<'_, '_>, causes: &mut Causes) {
    item.field("key").not_empty(causes);
    let path = item.field("path");
    path.not_empty(causes);
    path.local_path(causes);
    item.field("mode").file_mode(causes);
}

/// Returns a text of a value.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

const MAX_DRIVER: usize = 63;

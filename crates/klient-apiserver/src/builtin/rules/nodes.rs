//! Validation of nodes.

use std::net::IpAddr;

use serde_json::Value;

use super::{
    addresses,
    field::{Causes, Field, go_struct},
    resources, scheduling,
};

/// Validates a node.
pub(in crate::builtin) fn node(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    // The taints are named as a part of the metadata.
    let metadata = Field::of(object, "metadata");
    let taints = metadata.field("taints");
    let taints = taints.with(&spec.value["taints"]);
    scheduling::taints(&taints, causes);
    amounts(object, causes);
    let swap = &object["status"]["nodeInfo"]["swap"]["capacity"];
    if swap.as_i64().is_some_and(|capacity| capacity <= 0) {
        let at = metadata.field("nodeSwapStatus");
        at.field("capacity").with(swap).positive(causes);
    }
    features(object, causes);
    ranges(&spec, causes);
    if let Some(old) = old {
        unique_addresses(object, causes);
        kept(&spec, &old["spec"], causes);
        if old["spec"]["externalID"] != object["spec"]["externalID"] {
            spec.field("externalID").forbidden("may not be updated", causes);
        }
    }
}

/// Validates the status of a node.
pub(in crate::builtin) fn node_status(object: &Value, _: &Value, causes: &mut Causes) {
    amounts(object, causes);
    features(object, causes);
    unique_addresses(object, causes);
}

fn amounts(object: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    for list in ["capacity", "allocatable"] {
        let amounts = status.field(list);
        for (name, amount) in amounts.entries() {
            resources::value(name, &amounts.field(name).with(amount.value), causes);
        }
    }
}

fn features(object: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let features = status.field("declaredFeatures");
    for (index, feature) in features.items().enumerate() {
        let text = feature.text();
        if text.len() > 253 {
            let detail = format!("invalid feature name {text:?}: must be no more than 253 characters");
            feature.invalid(&detail, causes);
        } else if !is_feature(text) {
            let detail = format!(
                "invalid feature name {text:?}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            );
            feature.invalid(&detail, causes);
        }
        if index + 1 < features.list().len() {
            let next = features.index(index + 1);
            if next.text() == text {
                next.duplicate(causes);
            } else if text > next.text() {
                next.invalid("list must be sorted alphabetically", causes);
            }
        }
    }
}

fn is_feature(text: &str) -> bool {
    let is_segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic())
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.split('/').all(is_segment)
}

fn ranges(spec: &Field<'_, '_>, causes: &mut Causes) {
    let ranges = spec.field("podCIDRs");
    ranges.items().for_each(|range| range.address_range(&[], causes));
    if ranges.list().len() > 1 {
        let text = |range: &Value| range.as_str().unwrap_or_default().to_owned();
        let invalid = ranges.list().iter().position(|range| addresses::parse_range(&text(range)).is_none());
        if let Some(index) = invalid {
            let shown = text(&ranges.list()[index]);
            let detail = format!(
                "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {shown})"
            );
            ranges.internal(&detail, causes);
        }
        let parsed = ranges.list().iter().map(|range| addresses::parse_range(&text(range)));
        let families: Vec<bool> = parsed.flatten().map(|range| matches!(range.address, IpAddr::V6(_))).collect();
        let is_dual = invalid.is_none() && families.contains(&true) && families.contains(&false);
        if !is_dual || ranges.list().len() > 2 {
            ranges.invalid("may specify no more than one CIDR for each IP family", causes);
        }
    }
}

fn unique_addresses(object: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let addresses = status.field("addresses");
    for (index, address) in addresses.items().enumerate() {
        if addresses.list()[..index].contains(address.value) {
            let text = |name: &str| Value::from(address.field(name).text());
            let shown = go_struct(&[("Type", &text("type")), ("Address", &text("address"))]);
            address.duplicate_text(&shown, causes);
        }
    }
}

fn kept(spec: &Field<'_, '_>, old: &Value, causes: &mut Causes) {
    let before = old["podCIDRs"].as_array().map_or(&[][..], Vec::as_slice);
    let ranges = spec.field("podCIDRs");
    let detail = "node updates may not change podCIDR except from \"\" to valid";
    if before.len() != ranges.list().len() {
        if !before.is_empty() {
            ranges.forbidden(detail, causes);
        }
    } else {
        for _ in before.iter().zip(ranges.list()).filter(|(before, new)| before != new) {
            ranges.forbidden(detail, causes);
        }
    }
    let provider = spec.field("providerID");
    let before = old["providerID"].as_str().unwrap_or_default();
    if !before.is_empty() && before != provider.text() {
        provider.forbidden("node updates may not change providerID except from \"\" to valid", causes);
    }
}

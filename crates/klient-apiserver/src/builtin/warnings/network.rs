//! Warnings about services and the other kinds of networks.

use serde_json::Value;

use super::{
    Told,
    addresses::{address, addresses, range},
    warn,
};
use crate::builtin::rules::Field;

/// Adds warnings about a service.
pub(in crate::builtin) fn service(object: &Value, _: Option<&Value>, told: &mut Told) {
    let spec = Field::of(object, "spec");
    if object["metadata"]["annotations"].get(TOPOLOGY_HINTS).is_some() {
        told.push(format!(
            "annotation {TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let text = |name: &str| spec.field(name).text();
    let is_external_name = text("type") == "ExternalName";
    if !is_external_name && !matches!(text("clusterIP"), "" | "None") {
        addresses(&spec.field("clusterIPs"), told);
    }
    let has_addresses = !spec.field("externalIPs").is_empty();
    let is_headless = text("type") == "ClusterIP" && text("clusterIP") == "None";
    let ignored = [
        ("spec.loadBalancerIP", !text("loadBalancerIP").is_empty()),
        ("spec.externalIPs", has_addresses),
        ("spec.SessionAffinity", text("sessionAffinity") != "None"),
    ];
    for (field, _) in ignored.iter().filter(|(_, is_set)| is_headless && *is_set) {
        told.push(format!("{field} is ignored for headless services"));
    }
    addresses(&spec.field("externalIPs"), told);
    if has_addresses && !is_headless && !is_external_name {
        told.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    address(&spec.field("loadBalancerIP"), told);
    spec.field("loadBalancerSourceRanges").items().for_each(|item| range(&item, told));
    if has_addresses && is_external_name {
        told.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_external_name && !text("externalName").is_empty() {
        told.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text("trafficDistribution") == "PreferClose" {
        let why = "\"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warn(&spec.field("trafficDistribution"), why, told);
    }
}

/// Adds warnings about the addresses in the status of a service or an ingress.
pub(in crate::builtin) fn load_balancer_status(object: &Value, _: Option<&Value>, told: &mut Told) {
    let status = Field::of(object, "status");
    for ingress in status.field("loadBalancer").field("ingress").items() {
        // The real server names the item and not its field.
        address(&ingress.with(&ingress.value["ip"]), told);
    }
}

/// Adds warnings about endpoints that a controller of the real server has not written.
pub(in crate::builtin) fn endpoints(object: &Value, _: Option<&Value>, told: &mut Told) {
    if object["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" {
        return;
    }
    for subset in Field::of(object, "subsets").items() {
        for list in ["addresses", "notReadyAddresses"] {
            subset.field(list).items().for_each(|item| address(&item.field("ip"), told));
        }
    }
}

/// Adds warnings about an endpoint slice that a controller of the real server has not written.
pub(in crate::builtin) fn endpoint_slice(object: &Value, old: Option<&Value>, told: &mut Told) {
    if old.is_none() && object["addressType"] == "FQDN" {
        told.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = object["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"].as_str();
    if matches!(manager, Some("endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io")) {
        return;
    }
    for endpoint in Field::of(object, "endpoints").items() {
        addresses(&endpoint.field("addresses"), told);
    }
}

/// Adds a warning about the class of a new ingress.
pub(in crate::builtin) fn ingress(object: &Value, old: Option<&Value>, told: &mut Told) {
    let is_annotated = object["metadata"]["annotations"].get(INGRESS_CLASS).is_some();
    if old.is_none() && is_annotated && object["spec"]["ingressClassName"].is_null() {
        told.push(format!("annotation {INGRESS_CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

/// Adds warnings about the address ranges of a network policy.
pub(in crate::builtin) fn network_policy(object: &Value, _: Option<&Value>, told: &mut Told) {
    let spec = Field::of(object, "spec");
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.field(rules).items() {
            for peer in rule.field(peers).items() {
                let block = peer.field("ipBlock");
                range(&block.field("cidr"), told);
                block.field("except").items().for_each(|item| range(&item, told));
            }
        }
    }
}

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

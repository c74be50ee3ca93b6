//! Services: their addresses, node ports and defaults.

mod node_ports;

use std::collections::HashSet;

use klient_core::{GroupKind, Status, StatusCause};
use serde_json::{Value, json};

use super::{Writing, rules};
use crate::{Result, causes::Causes, metadata, server::Core};

/// Fills in the defaults of a service that depend on other fields.
pub(super) fn fill(object: &mut Value) {
    let spec = &mut object["spec"];
    if !spec.is_object() {
        return;
    }
    let is_known = matches!(spec["type"].as_str(), Some("ClusterIP" | "NodePort" | "LoadBalancer"));
    if is_known && spec.get("internalTrafficPolicy").is_none() {
        spec["internalTrafficPolicy"] = json!("Cluster");
    }
    affinity(spec);
    if spec["type"] == "ExternalName" {
        return;
    }
    if is_reached_from_outside(spec) && spec.get("externalTrafficPolicy").is_none() {
        spec["externalTrafficPolicy"] = json!("Cluster");
    }
    if spec["type"] == "LoadBalancer" && spec.get("allocateLoadBalancerNodePorts").is_none() {
        spec["allocateLoadBalancerNodePorts"] = json!(true);
    }
    let is_balanced = spec["type"] == "LoadBalancer";
    let addresses = object.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for address in addresses.into_iter().flatten().filter(|_| is_balanced) {
        if address["ip"].as_str().is_some_and(|ip| !ip.is_empty()) && address.get("ipMode").is_none() {
            address["ipMode"] = json!("VIP");
        }
    }
}

/// Sets the time for which a client stays with one endpoint, or removes it.
fn affinity(spec: &mut Value) {
    match spec["sessionAffinity"].as_str() {
        Some("None") => {
            if let Value::Object(fields) = spec {
                fields.remove("sessionAffinityConfig");
            }
        }
        Some("ClientIP") if spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null() => {
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
        }
        _ => {}
    }
}

/// Removes what belonged to the former type of a service, unless the request changes it.
fn drop_former(spec: &mut Value, old: &Value) {
    let needs_ports = |spec: &Value| matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    let is_balanced = |spec: &Value| spec["type"] == "LoadBalancer";
    let mut dropped: Vec<&str> = Vec::new();
    if node_ports::is_checked(old) && !node_ports::is_checked(spec) {
        dropped.push("healthCheckNodePort");
    }
    if is_balanced(old) && !is_balanced(spec) {
        dropped.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_reached_from_outside(old) && !is_reached_from_outside(spec) {
        dropped.push("externalTrafficPolicy");
    }
    let ports = |spec: &Value| -> Vec<i64> {
        let list = spec["ports"].as_array().into_iter().flatten();
        list.map(|port| port["nodePort"].as_i64().unwrap_or_default()).collect()
    };
    if needs_ports(old) && !needs_ports(spec) && ports(old) == ports(spec) {
        for port in spec["ports"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    if let Value::Object(fields) = spec {
        for name in dropped {
            if fields.get(name) == old.get(name) {
                fields.remove(name);
            }
        }
    }
}

/// Allocates the address and ports of a service, or keeps those that it has.
pub(super) fn allocate(writing: Writing<'_>, object: &mut Value, old: Option<&Value>) -> Result<()> {
    let name = metadata::text(object, "name").to_owned();
    let spec = &mut object["spec"];
    if !spec.is_object() {
        *spec = json!({"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"});
    }
    if let Some(old) = old {
        drop_former(spec, &old["spec"]);
    }
    if spec["type"] == "ExternalName" {
        if let Value::Object(fields) = spec {
            // What belonged to the former type is removed, unless the request changes it.
            for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if old.is_some_and(|old| old["spec"].get(name) == fields.get(name)) {
                    fields.remove(name);
                }
            }
            // The real server stores it, and shows it nowhere.
            if matches!(fields.get("internalTrafficPolicy").and_then(Value::as_str), Some("Cluster" | "Local")) {
                fields.remove("internalTrafficPolicy");
            }
        }
        let address = spec["clusterIP"].as_str().filter(|address| !address.is_empty()).map(str::to_owned);
        if let (Some(address), None) = (address, spec.get("clusterIPs")) {
            spec["clusterIPs"] = json!([address]);
        }
        return Ok(());
    }
    normalise_addresses(spec, old.map(|old| &old["spec"]));
    families(&name, spec, old)?;
    if spec["clusterIP"].as_str().is_none_or(str::is_empty) {
        let address = free_address(writing.core)?;
        spec["clusterIP"] = json!(address);
        spec["clusterIPs"] = json!([address]);
    } else if old.is_none_or(|old| old["spec"]["type"] == "ExternalName") {
        reserve_addresses(writing.core, &name, spec)?;
    }
    node_ports::allocate(writing, &name, spec, old.map(|old| &old["spec"]))
}

/// Makes the address of a service the first of the list of addresses, and keeps those that the service has.
fn normalise_addresses(spec: &mut Value, old: Option<&Value>) {
    let text = |spec: &Value| spec["clusterIP"].as_str().unwrap_or_default().to_owned();
    let all = |spec: &Value| spec["clusterIPs"].as_array().cloned().unwrap_or_default();
    let (mut first, mut list) = (text(spec), all(spec));
    if let Some(old) = old.filter(|old| old["type"] != "ExternalName") {
        let (before, known) = (text(old), all(old));
        if first.is_empty() {
            first = before;
            if list.is_empty() {
                list = known;
            }
        } else if first != before && list == known {
            // Only the first address was changed.
            list = if first.is_empty() { Vec::new() } else { vec![json!(first)] };
        }
    }
    if !first.is_empty() && list.is_empty() {
        list = vec![json!(first)];
    }
    if !first.is_empty() {
        spec["clusterIP"] = json!(first);
    }
    if !list.is_empty() {
        spec["clusterIPs"] = json!(list);
    }
}

/// Sets the families of a service's addresses. The cluster has IPv4 only.
///
/// # Errors
///
/// Returns the problems of addresses and families. The real server reports no others with them.
fn families(name: &str, spec: &mut Value, old: Option<&Value>) -> Result<()> {
    let is_headless = spec["clusterIP"] == "None";
    let has_selector = spec["selector"].as_object().is_some_and(|selector| !selector.is_empty());
    if spec.get("ipFamilyPolicy").is_none() {
        let before = old.map(|old| old["spec"]["ipFamilyPolicy"].clone()).filter(Value::is_string);
        // A headless service without selector can have endpoints of any family.
        let default = if is_headless && !has_selector { "RequireDualStack" } else { "SingleStack" };
        spec["ipFamilyPolicy"] = before.unwrap_or_else(|| json!(default));
    }
    let mut causes = Causes::new();
    rules::cluster_addresses(spec, old, &mut causes);
    if causes.is_empty() {
        family_count(spec, &mut causes);
    }
    if causes.is_empty() {
        if spec["ipFamilies"].as_array().is_none_or(Vec::is_empty) {
            spec["ipFamilies"] = json!(["IPv4"]);
        }
        let families = spec["ipFamilies"].as_array().cloned().unwrap_or_default();
        if is_headless && !has_selector {
            if let ([only], true) = (families.as_slice(), spec["ipFamilyPolicy"] != "SingleStack") {
                spec["ipFamilies"] = json!([only, if only == "IPv4" { "IPv6" } else { "IPv4" }]);
            }
        } else {
            unconfigured(spec, &families, &mut causes);
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(invalid(name, causes)) }
}

fn family_count(spec: &Value, causes: &mut Causes) {
    let count = |name: &str| spec[name].as_array().map_or(0, Vec::len);
    if spec["ipFamilyPolicy"] != "SingleStack" {
        return;
    }
    for (name, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if count(name) == 2 {
            let detail = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            causes.add(|| StatusCause::invalid("spec.ipFamilyPolicy", "SingleStack", &detail));
        }
    }
}

fn unconfigured(spec: &Value, families: &[Value], causes: &mut Causes) {
    if spec["ipFamilyPolicy"] == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        causes.add(|| StatusCause::invalid("spec.ipFamilyPolicy", "RequireDualStack", detail));
    }
    for (index, family) in families.iter().enumerate().filter(|(_, family)| **family != "IPv4") {
        let field = format!("spec.ipFamilies[{index}]");
        causes.add(|| StatusCause::invalid(field, family.clone(), "not configured on this cluster"));
    }
}

fn invalid(name: &str, causes: Causes) -> Box<Status> {
    Box::new(Status::invalid(&GroupKind::new("", "Service"), name, causes.into_vec()))
}

/// Returns whether a service is reachable from outside of its cluster.
pub(super) fn is_reached_from_outside(spec: &Value) -> bool {
    let has_addresses = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
    matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) || (spec["type"] == "ClusterIP" && has_addresses)
}

const AFFINITY_SECONDS: u32 = 10_800;

/// Checks that no other service has the addresses that a request names.
fn reserve_addresses(core: &Core, name: &str, spec: &Value) -> Result<()> {
    let addresses = spec["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut addresses = addresses.filter(|address| *address != "None").peekable();
    if addresses.peek().is_none() {
        return Ok(());
    }
    let taken = taken_addresses(core);
    let mut causes = Causes::new();
    if let Some(address) = addresses.find(|address| taken.contains(*address)) {
        let why = format!("failed to allocate IP {address}: provided IP is already allocated");
        causes.add(|| StatusCause::invalid("spec.clusterIPs", spec["clusterIPs"].clone(), &why));
    }
    if causes.is_empty() { Ok(()) } else { Err(invalid(name, causes)) }
}

fn taken_addresses(core: &Core) -> HashSet<String> {
    let services = core.store.list("services", "").objects;
    services.iter().filter_map(|stored| stored.value()["spec"]["clusterIP"].as_str().map(str::to_owned)).collect()
}

/// Returns an unused address of 10.96.0.0/16.
fn free_address(core: &Core) -> Result<String> {
    let taken = taken_addresses(core);
    let first = core.random();
    let addresses = (0..65_000u64).map(|step| (first + step) % 65_000 + 10);
    let addresses = addresses.map(|number| format!("10.96.{}.{}", number / 256, number % 256));
    addresses
        .into_iter()
        .find(|address| !taken.contains(address))
        .ok_or_else(|| Box::new(Status::internal_error("failed to allocate a serviceIP: range is full")))
}

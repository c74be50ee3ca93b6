//! Validation of services.

use std::{collections::HashSet, net::IpAddr};

use serde_json::Value;

use super::{
    addresses,
    containers::PROTOCOLS,
    field::{Causes, Field, go_struct},
};
use crate::builtin::services::is_reached_from_outside;

/// Validates a service.
pub(in crate::builtin) fn service(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    if let Some(old) = old {
        kept_addresses(&spec, &old["spec"], causes);
        kept_families(&spec, &old["spec"], causes);
        balancer_class(&spec, Some(&old["spec"]), causes);
        if needs_health_check(&old["spec"]) && needs_health_check(spec.value) {
            let port = spec.field("healthCheckNodePort");
            if *port.value != old["spec"]["healthCheckNodePort"] {
                port.forbidden("field is immutable", causes);
            }
        }
    }
    topology(object, causes);
    let is_headless = is_headless(spec.value);
    if spec.field("ports").is_empty() && !is_headless && spec.field("type").text() != "ExternalName" {
        spec.field("ports").required("", causes);
    }
    of_type(&spec, is_headless, causes);
    ports(&spec, causes);
    spec.field("selector").labels(causes);
    affinity(&spec, causes);
    addresses_of(&spec, old, causes);
    let before: Vec<&str> = old.map(|old| texts(&old["spec"]["externalIPs"])).unwrap_or_default();
    for address in spec.field("externalIPs").items() {
        let count = causes.len();
        address.address(&before, causes);
        if causes.len() == count {
            address.endpoint_address(causes);
        }
    }
    spec.field("type").one_of(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], causes);
    node_ports(&spec, causes);
    source_ranges(object, &spec, old, causes);
    let allocates = spec.field("allocateLoadBalancerNodePorts");
    let is_balanced = spec.field("type").text() == "LoadBalancer";
    if allocates.is_set() && !is_balanced {
        allocates.forbidden("may only be used when `type` is 'LoadBalancer'", causes);
    }
    balancer_class(&spec, None, causes);
    traffic(&spec, causes);
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_headless(spec: &Value) -> bool {
    texts(&spec["clusterIPs"]) == ["None"]
}

fn topology(object: &Value, causes: &mut Causes) {
    let metadata = Field::of(object, "metadata");
    let annotations = metadata.field("annotations");
    let (mode, hints) = (annotations.key("service.kubernetes.io/topology-mode"), &annotations.value[HINTS]);
    if mode.is_set() && !hints.is_null() && mode.value != hints {
        mode.invalid(&format!("must match annotations[{HINTS}] when both are specified"), causes);
    }
}

fn of_type(spec: &Field<'_, '_>, is_headless: bool, causes: &mut Causes) {
    let kind = spec.field("type").text();
    match kind {
        "LoadBalancer" | "NodePort" if is_headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            spec.field("clusterIPs").index(0).invalid(&detail, causes);
        }
        "ExternalName" => {
            for name in ["clusterIPs", "ipFamilies"] {
                if !spec.field(name).is_empty() {
                    spec.field(name).forbidden("may not be set for ExternalName services", causes);
                }
            }
            if spec.field("ipFamilyPolicy").is_set() {
                spec.field("ipFamilyPolicy").forbidden("may not be set for ExternalName services", causes);
            }
            let name = spec.field("externalName");
            let text = name.text().strip_suffix('.').unwrap_or(name.text());
            if text.is_empty() {
                name.required("", causes);
            } else {
                name.with(&Value::from(text)).subdomain(causes);
            }
        }
        _ => {}
    }
}

fn ports(spec: &Field<'_, '_>, causes: &mut Causes) {
    let ports = spec.field("ports");
    let mut names: HashSet<&str> = HashSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if name.text().is_empty() {
            if ports.list().len() > 1 {
                name.required("", causes);
            }
        } else {
            name.label(causes);
            if names.contains(&name.text()) {
                name.duplicate(causes);
            } else {
                names.insert(name.text());
            }
        }
        port.field("port").port_number(causes);
        port.field("protocol").one_of(&PROTOCOLS, causes);
        port.field("targetPort").port(causes);
        if let Some(protocol) = port.set("appProtocol") {
            protocol.qualified_name(causes);
        }
    }
}

fn affinity(spec: &Field<'_, '_>, causes: &mut Causes) {
    let (affinity, config) = (spec.field("sessionAffinity"), spec.field("sessionAffinityConfig"));
    affinity.one_of(&["ClientIP", "None"], causes);
    match affinity.text() {
        "ClientIP" => {
            let detail = "when session affinity type is ClientIP";
            let client = config.field("clientIP");
            let timeout = client.field("timeoutSeconds");
            if !config.is_set() {
                config.required(detail, causes);
            } else if !client.is_set() {
                client.required(detail, causes);
            } else if !timeout.is_set() {
                timeout.required(detail, causes);
            } else if !(1..=MAX_AFFINITY).contains(&timeout.number()) {
                timeout.invalid(&format!("must be greater than 0 and less than {MAX_AFFINITY}"), causes);
            }
        }
        "None" if config.is_set() => config.forbidden("must not be set when session affinity is None", causes),
        _ => {}
    }
}

/// Validates the addresses of a service in its cluster, and their families.
pub(in crate::builtin) fn cluster_addresses(spec: &Value, old: Option<&Value>, causes: &mut Causes) {
    let object = serde_json::json!({ "spec": spec });
    addresses_of(&Field::of(&object, "spec"), old, causes);
}

fn addresses_of(spec: &Field<'_, '_>, old: Option<&Value>, causes: &mut Causes) {
    if spec.field("type").text() == "ExternalName" {
        return;
    }
    let (first, all) = (spec.field("clusterIP").text(), spec.field("clusterIPs"));
    let list = texts(all.value);
    if first.is_empty() {
        if !list.is_empty() {
            all.invalid("must be empty when `clusterIP` is not specified", causes);
        }
    } else if list.is_empty() {
        all.required("", causes);
    } else if list[0] != first {
        all.invalid("first value must match `clusterIP`", causes);
    }
    let mut seen: HashSet<&str> = HashSet::new();
    let families = spec.field("ipFamilies");
    for family in families.items() {
        family.optional_one_of(&["IPv4", "IPv6"], causes);
        if seen.contains(&family.text()) {
            family.duplicate(causes);
        }
        seen.insert(family.text());
    }
    spec.field("ipFamilyPolicy").optional_one_of(&["PreferDualStack", "RequireDualStack", "SingleStack"], causes);
    let before: Vec<&str> = old.map(|old| texts(&old["spec"]["clusterIPs"])).unwrap_or_default();
    let mut has_invalid = false;
    for (index, address) in all.items().enumerate() {
        let count = causes.len();
        if index == 0 && address.text() == "None" {
            if list.len() > 1 {
                all.invalid("'None' must be the first and only value", causes);
            }
        } else {
            address.address(&before, causes);
        }
        has_invalid |= causes.len() > count;
    }
    if list.len() > 2 {
        all.invalid("may only hold up to 2 values", causes);
    }
    if has_invalid {
        return;
    }
    let is_six = |text: &str| addresses::parse(text).is_some_and(|address| matches!(address, IpAddr::V6(_)));
    if list.len() > 1 && (list.iter().all(|text| is_six(text)) || !list.iter().any(|text| is_six(text))) {
        all.invalid("may specify no more than one IP for each IP family", causes);
    }
    if !is_headless(spec.value) {
        for (index, (address, family)) in all.items().zip(families.list()).enumerate() {
            let expected = match family.as_str() {
                Some("IPv4") if is_six(address.text()) => "IPv4",
                Some("IPv6") if !is_six(address.text()) => "IPv6",
                _ => continue,
            };
            let detail = format!("expected an {expected} value as indicated by `ipFamilies[{index}]`");
            address.invalid(&detail, causes);
        }
    }
}

fn node_ports(spec: &Field<'_, '_>, causes: &mut Causes) {
    let ports = spec.field("ports");
    if spec.field("type").text() == "ClusterIP" {
        for port in ports.items().filter(|port| port.field("nodePort").number() != 0) {
            port.field("nodePort").forbidden("may not be used when `type` is 'ClusterIP'", causes);
        }
    }
    let mut taken: HashSet<(&str, i64)> = HashSet::new();
    for port in ports.items().filter(|port| port.field("nodePort").number() != 0) {
        let key = (port.field("protocol").text(), port.field("nodePort").number());
        if taken.contains(&key) {
            port.field("nodePort").duplicate(causes);
        }
        taken.insert(key);
    }
    let mut taken: HashSet<(&str, i64)> = HashSet::new();
    for port in ports.items() {
        let key = (port.field("protocol").text(), port.field("port").number());
        if taken.contains(&key) {
            let (nothing, zero) = (Value::from(""), Value::from(0));
            let shown = go_struct(&[
                ("Name", &nothing),
                ("Protocol", &Value::from(key.0)),
                ("AppProtocol", &Value::Null),
                ("Port", &Value::from(key.1)),
                ("TargetPort", &zero),
                ("NodePort", &zero),
            ]);
            port.duplicate_text(&shown, causes);
        }
        taken.insert(key);
    }
}

fn source_ranges(object: &Value, spec: &Field<'_, '_>, old: Option<&Value>, causes: &mut Causes) {
    let is_balanced = spec.field("type").text() == "LoadBalancer";
    let detail = "may only be used when `type` is 'LoadBalancer'";
    let ranges = spec.named("loadBalancerSourceRanges", "LoadBalancerSourceRanges");
    let metadata = Field::of(object, "metadata");
    let annotations = metadata.field("annotations");
    let annotation = annotations.key(RANGES);
    if !ranges.is_empty() {
        if !is_balanced {
            ranges.forbidden(detail, causes);
        }
        let before = old.map(|old| texts(&old["spec"]["loadBalancerSourceRanges"])).unwrap_or_default();
        let before: Vec<&str> = before.into_iter().map(str::trim).collect();
        for range in ranges.items() {
            range.address_range_text(range.text().trim(), &before, causes);
        }
    } else if annotation.is_set() {
        if !is_balanced {
            annotation.forbidden(detail, causes);
        }
        let is_kept = old.is_some_and(|old| old["metadata"]["annotations"][RANGES] == *annotation.value);
        let text = annotation.text().trim();
        if !is_kept && !text.is_empty() {
            text.split(',').for_each(|range| annotation.address_range_text(range.trim(), &[], causes));
        }
    }
}

fn balancer_class(spec: &Field<'_, '_>, old: Option<&Value>, causes: &mut Causes) {
    let class = spec.field("loadBalancerClass");
    let is_balanced = spec.field("type").text() == "LoadBalancer";
    if let Some(old) = old
        && is_balanced
        && old["type"] == "LoadBalancer"
        && old["loadBalancerClass"] != *class.value
    {
        class.invalid_as(class.value.clone(), "may not change once set", causes);
    }
    if !class.is_set() {
        return;
    }
    if is_balanced {
        class.qualified_name(causes);
    } else {
        class.forbidden("may only be used when `type` is 'LoadBalancer'", causes);
    }
}

fn needs_health_check(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

fn traffic(spec: &Field<'_, '_>, causes: &mut Causes) {
    let external = spec.field("externalTrafficPolicy");
    if is_reached_from_outside(spec.value) {
        external.one_of(&["Cluster", "Local"], causes);
    } else if !external.text().is_empty() {
        external.invalid("may only be set for externally-accessible services", causes);
    }
    let port = spec.field("healthCheckNodePort");
    if !needs_health_check(spec.value) {
        if port.number() != 0 {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            port.invalid(detail, causes);
        }
    } else if port.number() == 0 {
        port.required("", causes);
    } else {
        port.port_number(causes);
    }
    let internal = spec.field("internalTrafficPolicy");
    if !internal.is_set() && ["NodePort", "LoadBalancer", "ClusterIP"].contains(&spec.field("type").text()) {
        internal.required("", causes);
    }
    internal.optional_one_of(&["Cluster", "Local"], causes);
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    spec.field("trafficDistribution").optional_one_of(&known, causes);
}

/// Validates that the addresses of a service do not change.
fn kept_addresses(spec: &Field<'_, '_>, old: &Value, causes: &mut Causes) {
    if spec.field("type").text() == "ExternalName" || old["type"] == "ExternalName" {
        return;
    }
    if is_headless(spec.value) && is_headless(old) {
        return;
    }
    let at = spec.field("clusterIPs");
    let (new, before) = (texts(at.value), texts(&old["clusterIPs"]));
    let shown = || if at.value.is_null() { Value::Null } else { at.value.clone() };
    let is_changed = !new.is_empty() && !before.is_empty() && new[0] != before[0];
    if new.len() == before.len() {
        for (index, _) in before.iter().enumerate().filter(|(index, address)| new[*index] != **address) {
            at.index(index).invalid_as(shown(), "may not change once set", causes);
        }
        return;
    }
    if before.len() > new.len() && new.is_empty() {
        at.index(0).invalid_as(shown(), "primary clusterIP can not be unset", causes);
    }
    if is_changed {
        at.index(0).invalid_as(shown(), "may not change once set", causes);
    }
    if before.len() > new.len() && new.len() == 1 {
        single_stack(spec, "clusterIP", causes);
    }
}

/// Validates that the families of a service's addresses do not change.
fn kept_families(spec: &Field<'_, '_>, old: &Value, causes: &mut Causes) {
    if spec.field("type").text() == "ExternalName" || old["type"] == "ExternalName" {
        return;
    }
    if is_headless(spec.value) || is_headless(old) {
        return;
    }
    let at = spec.field("ipFamilies");
    let (new, before) = (texts(at.value), texts(&old["ipFamilies"]));
    let first = at.index(0);
    if new.len() == before.len() {
        for _ in before.iter().zip(&new).filter(|(before, new)| before != new) {
            first.invalid_as(at.value.clone(), "may not change once set", causes);
        }
        return;
    }
    let is_changed = !new.is_empty() && !before.is_empty() && new[0] != before[0];
    if before.len() > new.len() && spec.field("clusterIPs").is_empty() {
        first.invalid_as(at.value.clone(), "primary ipFamily can not be unset", causes);
    }
    if is_changed {
        first.invalid_as(spec.field("clusterIPs").value.clone(), "may not change once set", causes);
    }
    if before.len() > new.len() && new.len() == 1 {
        single_stack(spec, "ipFamily", causes);
    }
}

fn single_stack(spec: &Field<'_, '_>, what: &str, causes: &mut Causes) {
    let policy = spec.field("ipFamilyPolicy");
    if policy.text() != "SingleStack" {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        policy.invalid_as(policy.value.clone(), &detail, causes);
    }
}

/// Validates the status of a service.
pub(in crate::builtin) fn service_status(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let balancer = status.field("loadBalancer");
    let points = balancer.field("ingress");
    if object["spec"]["type"] != "LoadBalancer" && !points.is_empty() {
        return points.forbidden("may only be used when `spec.type` is 'LoadBalancer'", causes);
    }
    let before: Vec<&str> = old["status"]["loadBalancer"]["ingress"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|point| point["ip"].as_str())
        .collect();
    for point in points.items() {
        let (address, mode) = (point.field("ip"), point.field("ipMode"));
        if !address.text().is_empty() {
            address.address(&before, causes);
        }
        match (mode.is_set(), address.text().is_empty()) {
            (false, false) => mode.required("must be specified when `ip` is set", causes),
            (true, true) => mode.forbidden("may not be specified when `ip` is not set", causes),
            (true, false) => mode.optional_one_of(&["Proxy", "VIP"], causes),
            (false, true) => {}
        }
        host_name(&point.field("hostname"), causes);
    }
}

/// Validates the host name of a load balancer.
pub(super) fn host_name(name: &Field<'_, '_>, causes: &mut Causes) {
    if name.text().is_empty() {
        return;
    }
    name.subdomain(causes);
    if addresses::parse(name.text()).is_some() {
        name.invalid("must be a DNS name, not an IP address", causes);
    }
}

const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const MAX_AFFINITY: i64 = 86_400;

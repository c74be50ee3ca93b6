//! Validation of endpoints and endpoint slices.

use std::collections::HashSet;

use serde_json::Value;

use super::field::{Causes, Field};
use crate::metadata::formats;

/// Validates endpoints. Subsets of the stored object stay valid.
pub(in crate::builtin) fn endpoints(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let subsets = Field::of(object, "subsets");
    if old.is_some_and(|old| old["subsets"] == *subsets.value) {
        return;
    }
    for subset in subsets.items() {
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| subset.field(list).is_empty()) {
            subset.required("must specify `addresses` or `notReadyAddresses`", causes);
        }
        for list in lists {
            subset.field(list).items().for_each(|address| self::address(&address, causes));
        }
        let ports = subset.field("ports");
        for port in ports.items() {
            let name = port.field("name");
            if !name.text().is_empty() {
                name.label(causes);
            } else if ports.list().len() > 1 {
                name.required("", causes);
            }
            port.field("port").port_number(causes);
            protocol(&port, causes);
        }
    }
}

fn address(address: &Field<'_, '_>, causes: &mut Causes) {
    let ip = address.field("ip");
    ip.address(&[], causes);
    if !address.field("hostname").text().is_empty() {
        address.field("hostname").label(causes);
    }
    node_name(&address.field("nodeName"), causes);
    ip.endpoint_address(causes);
}

fn node_name(name: &Field<'_, '_>, causes: &mut Causes) {
    if name.is_set() {
        name.subdomain(causes);
    }
}

fn protocol(port: &Field<'_, '_>, causes: &mut Causes) {
    port.field("protocol").optional_one_of(&["SCTP", "TCP", "UDP"], causes);
    if port.field("appProtocol").is_set() {
        port.field("appProtocol").qualified_name(causes);
    }
}

/// Validates an endpoint slice. Endpoints of the stored object stay valid.
pub(in crate::builtin) fn endpoint_slice(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let kind = Field::of(object, "addressType");
    kind.one_of(&["FQDN", "IPv4", "IPv6"], causes);
    ports(&Field::of(object, "ports"), causes);
    let endpoints = Field::of(object, "endpoints");
    if old.is_none_or(|old| old["endpoints"] != *endpoints.value) {
        if endpoints.list().len() > MAX_ENDPOINTS {
            endpoints.too_many(MAX_ENDPOINTS, causes);
        } else {
            endpoints.items().for_each(|endpoint| self::endpoint(&endpoint, kind.text(), causes));
        }
    }
    if let Some(old) = old {
        kind.immutable(&old["addressType"], causes);
    }
}

fn ports(ports: &Field<'_, '_>, causes: &mut Causes) {
    if ports.list().len() > MAX_PORTS {
        return ports.too_many(MAX_PORTS, causes);
    }
    let mut names = HashSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if !name.text().is_empty() {
            name.label(causes);
        }
        if names.contains(&name.text()) {
            name.duplicate(causes);
        } else {
            names.insert(name.text());
        }
        protocol(&port, causes);
    }
}

fn endpoint(endpoint: &Field<'_, '_>, kind: &str, causes: &mut Causes) {
    let addresses = endpoint.field("addresses");
    if addresses.is_empty() {
        addresses.required("must contain at least 1 address", causes);
    } else if addresses.list().len() > MAX_ADDRESSES {
        addresses.too_many(MAX_ADDRESSES, causes);
    }
    for address in addresses.items() {
        match kind {
            "IPv4" | "IPv6" => of_family(&address, &addresses, kind, causes),
            "FQDN" => domain(&address, causes),
            _ => {}
        }
    }
    node_name(&endpoint.field("nodeName"), causes);
    if endpoint.field("hostname").is_set() {
        endpoint.field("hostname").label(causes);
    }
    hints(&endpoint.field("hints"), causes);
}

/// Validates an address of a family.
fn of_family(address: &Field<'_, '_>, addresses: &Field<'_, '_>, family: &str, causes: &mut Causes) {
    let before = causes.len();
    address.address(&[], causes);
    let text = address.text();
    let parsed = text.parse::<std::net::IpAddr>().ok();
    if let Some(parsed) =
        parsed.filter(|parsed| causes.len() == before && family == "IPv6" && parsed.to_string() != text)
    {
        address.invalid(&format!("must be in canonical form ({:?})", parsed.to_string()), causes);
    }
    if causes.len() > before {
        return;
    }
    if parsed.is_some_and(|parsed| parsed.is_ipv4() != (family == "IPv4")) {
        addresses.invalid_as(text, &format!("must be an {family} address"), causes);
    }
    address.endpoint_address(causes);
}

/// Validates a domain name with at least one dot.
fn domain(address: &Field<'_, '_>, causes: &mut Causes) {
    if !address.not_empty(causes) {
        return;
    }
    let name = address.text().strip_suffix('.').unwrap_or(address.text());
    let problems = formats::subdomain_problems(name);
    if !problems.is_empty() {
        return address.invalid_as(name, &problems.join(","), causes);
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return address.invalid_as(name, detail, causes);
    }
    for label in name.split('.') {
        let problems = formats::label_problems(label);
        if !problems.is_empty() {
            return address.invalid_as(label, &problems.join(","), causes);
        }
    }
}

fn hints(hints: &Field<'_, '_>, causes: &mut Causes) {
    for list in ["forZones", "forNodes"] {
        let hinted = hints.field(list);
        if hinted.list().len() > MAX_HINTS {
            return hinted.too_many(MAX_HINTS, causes);
        }
        let mut names = HashSet::new();
        for hint in hinted.items() {
            let name = hint.field("name");
            if names.contains(&name.text()) {
                name.duplicate(causes);
            } else {
                names.insert(name.text());
            }
            match list {
                "forZones" => name.problems(formats::label_value_problems(name.text()), causes),
                _ => name.subdomain(causes),
            }
        }
    }
}

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;

//! Validation of network policies.

use serde_json::Value;

use super::{
    addresses,
    field::{Causes, Field},
};

/// Validates a network policy.
pub(in crate::builtin) fn network_policy(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let before = old.map(ranges).unwrap_or_default();
    spec.field("podSelector").label_selector(causes);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.field(direction).items() {
            rule.field("ports").items().for_each(|item| port(&item, causes));
            rule.field(peers).items().for_each(|item| peer(&item, &before, causes));
        }
    }
    let types = spec.field("policyTypes");
    if types.list().len() > 2 {
        return types.invalid("may not specify more than two policyTypes", causes);
    }
    types.items().for_each(|item| {
        if !["Ingress", "Egress"].contains(&item.text()) {
            item.not_supported(&["Ingress", "Egress"], causes);
        }
    });
}

/// Returns the address ranges of a stored policy.
fn ranges(old: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in old["spec"][direction].as_array().into_iter().flatten() {
            for peer in rule[peers].as_array().into_iter().flatten() {
                found.extend(peer["ipBlock"]["cidr"].as_str());
                let except = peer["ipBlock"]["except"].as_array().into_iter().flatten();
                found.extend(except.filter_map(Value::as_str));
            }
        }
    }
    found
}

fn port(item: &Field<'_, '_>, causes: &mut Causes) {
    let (port, end) = (item.field("port"), item.field("endPort"));
    item.field("protocol").optional_one_of(&["TCP", "UDP", "SCTP"], causes);
    match port.value {
        Value::Null => {
            if end.is_set() {
                end.invalid("may not be specified when `port` is not specified", causes);
            }
        }
        Value::String(_) => {
            if end.is_set() {
                end.invalid("may not be specified when `port` is non-numeric", causes);
            }
            port.port(causes);
        }
        _ => {
            port.port_number(causes);
            if let Some(last) = end.int() {
                if last < port.number() {
                    end.invalid_as(port.number(), "must be greater than or equal to `port`", causes);
                }
                end.port_number(causes);
            }
        }
    }
}

fn peer(peer: &Field<'_, '_>, before: &[&str], causes: &mut Causes) {
    let mut count = 0;
    for name in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = peer.set(name) {
            count += 1;
            selector.label_selector(causes);
        }
    }
    let block = peer.field("ipBlock");
    if block.is_set() {
        count += 1;
        address_block(&block, before, causes);
    }
    if count == 0 {
        peer.required("must specify a peer", causes);
    } else if count > 1 && block.is_set() {
        peer.forbidden("may not specify both ipBlock and another peer", causes);
    }
}

fn address_block(block: &Field<'_, '_>, before: &[&str], causes: &mut Causes) {
    let range = block.field("cidr");
    if !range.not_empty(causes) {
        return;
    }
    range.address_range(before, causes);
    let Some(whole) = addresses::parse_range(range.text()) else { return };
    for except in block.field("except").items() {
        except.address_range(before, causes);
        if let Some(part) = addresses::parse_range(except.text())
            && (!whole.contains(part.address) || whole.prefix >= part.prefix)
        {
            except.invalid("must be a strict subset of `cidr`", causes);
        }
    }
}

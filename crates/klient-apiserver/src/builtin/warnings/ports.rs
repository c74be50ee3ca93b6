//! Warnings about ports of containers that overlap.

use std::collections::{BTreeSet, HashMap};

use super::{Told, pod_spec::each_container, warn};
use crate::builtin::rules::Field;

/// A port of a container, and its path.
struct Port<'v> {
    path: String,
    host_address: &'v str,
    host_port: i64,
}

/// The number and protocol of a port, and its host port and host address, or `None` for all.
type Key<'v> = (i64, &'v str, Option<i64>, Option<&'v str>);

/// Adds warnings about ports of all containers of a pod that overlap, and then about those with the same name.
pub(super) fn duplicates(spec: &Field<'_, '_>, told: &mut Told) {
    let mut known: Vec<Port<'_>> = Vec::new();
    let mut by_key: HashMap<Key<'_>, Vec<usize>> = HashMap::new();
    each_container(spec, |container| {
        for field in container.field("ports").items() {
            let text = |name: &str| field.field(name).text();
            let (number, protocol) = (field.field("containerPort").number(), text("protocol"));
            let port =
                Port { path: field.path(), host_address: text("hostIP"), host_port: field.field("hostPort").number() };
            if !port.host_address.is_empty() && port.host_port == 0 {
                let shown = format!(
                    "{{Name:{} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{}}}",
                    text("name"),
                    port.host_address
                );
                warn(&field, &format!("hostIP set without hostPort: {shown}"), told);
            }
            if told.is_full() {
                continue;
            }
            let (host_port, address) = (Some(port.host_port), Some(port.host_address));
            // Only ports that overlap are looked at.
            let keys: &[Key<'_>] = match (port.host_port, port.host_address) {
                (0, _) => &[(number, protocol, None, None)],
                (_, "") => &[(number, protocol, Some(0), None), (number, protocol, host_port, None)],
                _ => &[
                    (number, protocol, Some(0), None),
                    (number, protocol, host_port, Some("")),
                    (number, protocol, host_port, address),
                ],
            };
            let others: BTreeSet<usize> = keys.iter().filter_map(|key| by_key.get(key)).flatten().copied().collect();
            for other in others.into_iter().map(|index| &known[index]) {
                if let Some(how) = overlap(&port, other) {
                    warn(&field, &format!("{how} port definition with {}", other.path), told);
                }
            }
            for key in [(None, None), (host_port, None), (host_port, address)] {
                by_key.entry((number, protocol, key.0, key.1)).or_default().push(known.len());
            }
            known.push(port);
        }
    });
    names(spec, told);
}

/// Returns how two ports with the same number overlap.
fn overlap(port: &Port<'_>, other: &Port<'_>) -> Option<&'static str> {
    if port.host_address == other.host_address && port.host_port == other.host_port {
        Some("duplicate")
    } else if port.host_port == 0 || other.host_port == 0 {
        Some("overlapping")
    } else if port.host_port == other.host_port && port.host_address.is_empty() != other.host_address.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn names(spec: &Field<'_, '_>, told: &mut Told) {
    let mut known: HashMap<&str, String> = HashMap::new();
    each_container(spec, |container| {
        for port in container.field("ports").items() {
            let name = port.field("name").text();
            if name.is_empty() {
                continue;
            }
            if let Some(other) = known.get(name) {
                let why = format!(
                    "duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}"
                );
                warn(&port, &why, told);
            } else {
                known.insert(name, port.path());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_compared_in_their_order() {
        let port = |address: &str, host_port: i64| serde_json::json!({"containerPort": 1, "protocol": "TCP", "hostPort": host_port, "hostIP": address});
        let ports = [port("", 0), port("10.1.2.3", 80), port("10.1.2.4", 80), port("", 80), port("10.1.2.4", 80)];
        let object = serde_json::json!({"spec": {"containers": [{"ports": ports}]}});
        let mut told = Told::default();
        duplicates(&Field::of(&object, "spec"), &mut told);
        let at = |index: usize| format!("spec.containers[0].ports[{index}]");
        let expected = [
            (1, "overlapping", 0),
            (2, "overlapping", 0),
            (3, "overlapping", 0),
            (3, "dangerously ambiguous", 1),
            (3, "dangerously ambiguous", 2),
            (4, "overlapping", 0),
            (4, "duplicate", 2),
            (4, "dangerously ambiguous", 3),
        ];
        let expected =
            expected.map(|(port, how, other)| format!("{}: {how} port definition with {}", at(port), at(other)));
        assert_eq!(told.texts, expected);
    }

    #[test]
    fn ports_overlap_by_host_port_and_address() {
        let how = |left: (&str, i64), right: (&str, i64)| {
            let port = |(host_address, host_port)| Port { path: String::new(), host_address, host_port };
            overlap(&port(left), &port(right))
        };
        assert_eq!(how(("", 0), ("", 0)), Some("duplicate"));
        assert_eq!(how(("", 0), ("", 80)), Some("overlapping"));
        assert_eq!(how(("", 80), ("10.1.2.3", 80)), Some("dangerously ambiguous"));
        assert_eq!(how(("10.1.2.4", 80), ("10.1.2.3", 80)), None);
        assert_eq!(how(("", 80), ("", 81)), None);
    }
}

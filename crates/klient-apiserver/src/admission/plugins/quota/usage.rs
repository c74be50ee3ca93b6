//! The usage of a quota by one object.

use std::collections::{BTreeMap, BTreeSet};

use klient_core::{Quantity, QuantityFormat};
use serde_json::Value;

use crate::{admission::plugins::volumes::class_of, builtin, registry::Resource};

/// Amounts by the names of quotas.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// How the objects of a resource are counted.
pub(super) enum Counted {
    Pods,
    Services,
    Claims,
    /// By their number only, under these names.
    Number {
        name: String,
        alias: Option<&'static str>,
    },
}

impl Counted {
    pub(super) fn of(resource: &Resource) -> Self {
        let number = |alias| {
            let name = match resource.group.as_str() {
                "" => format!("count/{}", resource.plural),
                group => format!("count/{}.{group}", resource.plural),
            };
            Self::Number { name, alias }
        };
        match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            ("", "configmaps") => number(Some("configmaps")),
            ("", "secrets") => number(Some("secrets")),
            ("", "resourcequotas") => number(Some("resourcequotas")),
            ("", "replicationcontrollers") => number(Some("replicationcontrollers")),
            _ => number(None),
        }
    }

    /// Returns whether the name of a quota is about these objects.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::Pods => {
                let is_extended = name.strip_prefix("requests.").is_some_and(|rest| rest.contains('/'));
                POD_NAMES.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || (is_extended && !name.contains(CLASS_SUFFIX))
            }
            Self::Services => {
                matches!(name, "count/services" | "services" | "services.nodeports" | "services.loadbalancers")
            }
            Self::Claims => {
                matches!(name, "count/persistentvolumeclaims" | "persistentvolumeclaims" | "requests.storage")
                    || name
                        .split_once(CLASS_SUFFIX)
                        .is_some_and(|(_, rest)| matches!(rest, "persistentvolumeclaims" | "requests.storage"))
            }
            Self::Number { name: own, alias } => name == own || Some(name) == *alias,
        }
    }

    /// Returns what an object uses.
    pub(super) fn usage(&self, object: &Value) -> Amounts {
        match self {
            Self::Pods => pod(object),
            Self::Services => service(object),
            Self::Claims => claim(object),
            Self::Number { name, alias } => {
                let names = [Some(name.as_str()), *alias];
                names.into_iter().flatten().map(|name| (name.to_owned(), number(1))).collect()
            }
        }
    }

    /// Returns whether an object is in all scopes of a quota.
    pub(super) fn is_in_scope(&self, quota: &Value, object: &Value) -> bool {
        let spec = &quota["spec"];
        let scopes = spec["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut scopes = scopes.map(|scope| (scope, "Exists", &Value::Null)).collect::<Vec<_>>();
        for expression in spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten() {
            let text = |name: &str| expression[name].as_str().unwrap_or_default();
            scopes.push((text("scopeName"), text("operator"), &expression["values"]));
        }
        // Only pods have scopes.
        scopes.is_empty() || (matches!(self, Self::Pods) && scopes.iter().all(|scope| is_pod_in(object, *scope)))
    }

    /// Returns a message about resources that a quota has and containers do not name.
    pub(super) fn missing(&self, object: &Value, names: &[&str]) -> Option<String> {
        let spec = &object["spec"];
        let is_set = |list: &str| spec["resources"][list].as_object().is_some_and(|list| !list.is_empty());
        if !matches!(self, Self::Pods) || is_set("requests") || is_set("limits") {
            return None;
        }
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for name in names.iter().filter(|name| REQUIRED.contains(name)) {
            let (list, resource) = match name.split_once('.') {
                Some((list, resource)) => (list, resource),
                None => ("requests", *name),
            };
            for container in ["containers", "initContainers"].iter().flat_map(|list| spec[*list].as_array()).flatten() {
                if container["resources"][list].get(resource).is_none() {
                    missing.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
                }
            }
        }
        let text = |(name, containers): (&&str, &BTreeSet<&str>)| {
            format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(","))
        };
        let texts: Vec<String> = missing.iter().map(text).collect();
        (!texts.is_empty()).then(|| format!("must specify {}", texts.join("; ")))
    }
}

fn pod(pod: &Value) -> Amounts {
    let mut amounts = Amounts::from([("count/pods".to_owned(), number(1))]);
    // A pod that has ended uses nothing.
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return amounts;
    }
    amounts.insert("pods".to_owned(), number(1));
    let spec = &pod["spec"];
    for list in ["requests", "limits"] {
        let mut names = builtin::resource_names(spec, list);
        names.extend(spec["resources"][list].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
        for name in names {
            let of_pod = spec["resources"][list][&name].as_str().and_then(|text| text.parse().ok());
            let Some(amount) = of_pod.or_else(|| builtin::aggregate(spec, list, &name)) else { continue };
            if list == "requests" {
                if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-") {
                    amounts.insert(name.clone(), amount);
                }
                amounts.insert(format!("requests.{name}"), amount);
            } else if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
                amounts.insert(format!("limits.{name}"), amount);
            }
        }
    }
    amounts
}

fn service(service: &Value) -> Amounts {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let all = ports.len();
    let given = ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or_default() != 0).count();
    let (node_ports, balancers) = match spec["type"].as_str() {
        Some("NodePort") => (all, 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => (given, 1),
        Some("LoadBalancer") => (all, 1),
        _ => (0, 0),
    };
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    Amounts::from([
        ("count/services".to_owned(), number(1)),
        ("services".to_owned(), number(1)),
        ("services.nodeports".to_owned(), number(node_ports)),
        ("services.loadbalancers".to_owned(), number(balancers)),
    ])
}

fn claim(claim: &Value) -> Amounts {
    let mut amounts = Amounts::from([
        ("persistentvolumeclaims".to_owned(), number(1)),
        ("count/persistentvolumeclaims".to_owned(), number(1)),
    ]);
    let class = class_of(claim);
    let requested = claim["spec"]["resources"]["requests"]["storage"].as_str();
    let storage: Option<Quantity> = requested.and_then(|text| text.parse().ok());
    if !class.is_empty() {
        amounts.insert(format!("{class}{CLASS_SUFFIX}persistentvolumeclaims"), number(1));
    }
    if let Some(storage) = storage {
        amounts.insert("requests.storage".to_owned(), storage);
        if !class.is_empty() {
            amounts.insert(format!("{class}{CLASS_SUFFIX}requests.storage"), storage);
        }
    }
    amounts
}

/// Returns whether a pod is in a scope.
fn is_pod_in(pod: &Value, (scope, operator, values): (&str, &str, &Value)) -> bool {
    let spec = &pod["spec"];
    let ends = spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => builtin::qos_class(pod) == "BestEffort",
        "NotBestEffort" => builtin::qos_class(pod) != "BestEffort",
        "PriorityClass" => {
            let class = spec["priorityClassName"].as_str().unwrap_or_default();
            let is_listed = values.as_array().is_some_and(|values| values.iter().any(|value| value == class));
            match operator {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(spec),
        _ => false,
    }
}

/// Returns whether the affinity of a pod names other namespaces.
fn crosses_namespaces(spec: &Value) -> bool {
    ["podAffinity", "podAntiAffinity"].iter().any(|sort| {
        let affinity = &spec["affinity"][*sort];
        let required = affinity["requiredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        let preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        required.chain(preferred.map(|term| &term["podAffinityTerm"])).any(|term| {
            term["namespaces"].as_array().is_some_and(|list| !list.is_empty())
                || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
        })
    })
}

/// Reads amounts of resources.
pub(super) fn amounts(list: &Value) -> Amounts {
    let list = list.as_object().into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
}

fn number(number: i64) -> Quantity {
    Quantity::from_i64(number, QuantityFormat::DecimalSi)
}

const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";
const POD_NAMES: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// The names that containers have to name if a quota has them.
const REQUIRED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

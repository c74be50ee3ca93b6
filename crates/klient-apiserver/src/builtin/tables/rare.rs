//! The cells of kinds that few people look at: autoscalers, quotas, classes, endpoints and the like.

use serde_json::{Value, json};

use super::cells::{access_modes, joined, pairs, plain};
use crate::registry::Resource;

/// A cell, if the kind is one of these.
pub(super) fn cell(resource: &Resource, object: &Value, column: &str) -> Option<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    Some(match (resource.plural.as_str(), column) {
        (_, "Name" | "Age" | "Created At") => named(resource, object, column)?,
        ("horizontalpodautoscalers", _) => autoscaler(object, column)?,
        ("persistentvolumes", _) => volume(object, column)?,
        ("endpoints", "Endpoints") => json!(endpoints(object)),
        ("endpointslices", "AddressType") => json!(plain(&object["addressType"])),
        ("endpointslices", "Ports") => json!(some(&slice_ports(object), "<unset>")),
        ("endpointslices", "Endpoints") => json!(some(&slice_addresses(object), "<unset>")),
        ("podtemplates", "Containers") => json!(joined(&object["template"]["spec"]["containers"], "name")),
        ("podtemplates", "Images") => json!(joined(&object["template"]["spec"]["containers"], "image")),
        ("podtemplates", "Pod Labels") => json!(pairs(&object["template"]["metadata"]["labels"])),
        ("replicationcontrollers", "Desired") => json!(number(&spec["replicas"])),
        ("replicationcontrollers", "Current") => json!(number(&status["replicas"])),
        ("replicationcontrollers", "Ready") => json!(number(&status["readyReplicas"])),
        ("replicationcontrollers", "Selector") => json!(pairs(&spec["selector"])),
        ("resourcequotas", "Request") => json!(quota(status, false)),
        ("resourcequotas", "Limit") => json!(quota(status, true)),
        ("controllerrevisions", "Controller") => json!(controller(object)),
        ("controllerrevisions", "Revision") => json!(number(&object["revision"])),
        ("resourceclaims", "State") => json!(claim_state(status)),
        ("flowschemas" | "prioritylevelconfigurations", _) => flow_control(object, column)?,
        _ => class(resource, object, column)?,
    })
}

/// The default storage class says so.
fn named(resource: &Resource, object: &Value, column: &str) -> Option<Value> {
    let is_default = object["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true";
    if resource.plural != "storageclasses" || column != "Name" || !is_default {
        return None;
    }
    Some(json!(format!("{} (default)", plain(&object["metadata"]["name"]))))
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

/// The cells of classes and of what is set up for a whole cluster.
fn class(resource: &Resource, object: &Value, column: &str) -> Option<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    Some(match (resource.plural.as_str(), column) {
        ("ingressclasses", "Controller") => json!(plain(&spec["controller"])),
        ("ingressclasses", "Parameters") => json!(parameters(&spec["parameters"])),
        ("storageclasses", "Provisioner") => json!(plain(&object["provisioner"])),
        ("storageclasses", "ReclaimPolicy") => json!(object["reclaimPolicy"].as_str().unwrap_or("Delete")),
        ("storageclasses", "VolumeBindingMode") => json!(object["volumeBindingMode"].as_str().unwrap_or("<unset>")),
        ("storageclasses", "AllowVolumeExpansion") => json!(flag(&object["allowVolumeExpansion"])),
        ("volumeattributesclasses", "DriverName") => json!(plain(&object["driverName"])),
        ("priorityclasses", "Value") => json!(number(&object["value"])),
        ("priorityclasses", "Global-Default") => json!(flag(&object["globalDefault"])),
        ("priorityclasses", "PreemptionPolicy") => json!(plain(&object["preemptionPolicy"])),
        ("runtimeclasses", "Handler") => json!(plain(&object["handler"])),
        ("csidrivers", "AttachRequired") => json!(spec["attachRequired"].as_bool().unwrap_or(true)),
        ("csidrivers", "PodInfoOnMount") => json!(flag(&spec["podInfoOnMount"])),
        ("csidrivers", "StorageCapacity") => json!(flag(&spec["storageCapacity"])),
        ("csidrivers", "TokenRequests") => {
            let audiences = joined(&spec["tokenRequests"], "audience");
            json!(if audiences.is_empty() { "<unset>".to_owned() } else { audiences })
        }
        ("csidrivers", "RequiresRepublish") => json!(flag(&spec["requiresRepublish"])),
        ("csidrivers", "Modes") => json!(texts(&spec["volumeLifecycleModes"]).join(",")),
        ("csinodes", "Drivers") => json!(length(&spec["drivers"])),
        ("volumeattachments", "Attacher") => json!(plain(&spec["attacher"])),
        ("volumeattachments", "PV") => json!(plain(&spec["source"]["persistentVolumeName"])),
        ("volumeattachments", "Node") => json!(plain(&spec["nodeName"])),
        ("volumeattachments", "Attached") => json!(flag(&status["attached"])),
        ("mutatingwebhookconfigurations" | "validatingwebhookconfigurations", "Webhooks") => {
            json!(length(&object["webhooks"]))
        }
        _ => return None,
    })
}

fn length(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The first few, and how many are left.
fn some(all: &[String], if_none: &str) -> String {
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(",");
    match all.len() {
        0 => if_none.to_owned(),
        count if count > SHOWN => format!("{shown} + {} more...", count - SHOWN),
        _ => shown,
    }
}

fn endpoints(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in object["subsets"].as_array().into_iter().flatten() {
        let addresses: Vec<&str> =
            subset["addresses"].as_array().into_iter().flatten().map(|address| plain(&address["ip"])).collect();
        let ports = subset["ports"].as_array().map_or(&[][..], Vec::as_slice);
        for port in ports {
            all.extend(addresses.iter().map(|address| match address.contains(':') {
                true => format!("[{address}]:{}", port["port"]),
                false => format!("{address}:{}", port["port"]),
            }));
        }
        if ports.is_empty() {
            all.extend(addresses.iter().map(|address| (*address).to_owned()));
        }
    }
    some(&all, "<none>")
}

fn slice_ports(object: &Value) -> Vec<String> {
    let ports = object["ports"].as_array().into_iter().flatten();
    ports
        .map(|port| match (port["port"].as_i64(), port["name"].as_str()) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect()
}

fn slice_addresses(object: &Value) -> Vec<String> {
    let endpoints = object["endpoints"].as_array().into_iter().flatten();
    endpoints.flat_map(|endpoint| texts(&endpoint["addresses"])).map(str::to_owned).collect()
}

/// What is used of what may be, of limits or of all else.
fn quota(status: &Value, of_limits: bool) -> String {
    let mut hard: Vec<_> = status["hard"].as_object().into_iter().flatten().collect();
    hard.sort_by_key(|(name, _)| *name);
    let parts = hard.iter().filter(|(name, _)| name.starts_with("limits.") == of_limits).map(|(name, most)| {
        let used = status["used"][*name].as_str().unwrap_or("0");
        format!("{name}: {used}/{}", plain(most))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn controller(object: &Value) -> String {
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let Some(owner) = owners.find(|owner| owner["controller"] == true) else { return "<none>".to_owned() };
    let kind = plain(&owner["kind"]).to_lowercase();
    match plain(&owner["apiVersion"]).split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", plain(&owner["name"])),
        None => format!("{kind}/{}", plain(&owner["name"])),
    }
}

fn parameters(parameters: &Value) -> String {
    if !parameters.is_object() {
        return "<none>".to_owned();
    }
    let group = parameters["apiGroup"].as_str().map_or(String::new(), |group| format!(".{group}"));
    format!("{}{group}/{}", plain(&parameters["kind"]), plain(&parameters["name"]))
}

fn claim_state(status: &Value) -> &'static str {
    match (status["allocation"].is_object(), length(&status["reservedFor"]) > 0) {
        (true, true) => "allocated,reserved",
        (true, false) => "allocated",
        _ => "pending",
    }
}

fn volume(object: &Value, column: &str) -> Option<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    Some(match column {
        "Capacity" => json!(plain(&spec["capacity"]["storage"])),
        "Access Modes" => json!(access_modes(&spec["accessModes"])),
        "Reclaim Policy" => json!(plain(&spec["persistentVolumeReclaimPolicy"])),
        "Status" if object["metadata"].get("deletionTimestamp").is_some() => json!("Terminating"),
        "Status" => json!(plain(&status["phase"])),
        "Claim" => match &spec["claimRef"] {
            Value::Object(claim) => json!(format!("{}/{}", plain(&claim["namespace"]), plain(&claim["name"]))),
            _ => json!(""),
        },
        "StorageClass" => json!(plain(&spec["storageClassName"])),
        "VolumeAttributesClass" => json!(spec["volumeAttributesClassName"].as_str().unwrap_or("<unset>")),
        "Reason" => json!(plain(&status["reason"])),
        "VolumeMode" => json!(spec["volumeMode"].as_str().unwrap_or("<unset>")),
        _ => return None,
    })
}

fn flow_control(object: &Value, column: &str) -> Option<Value> {
    let spec = &object["spec"];
    let queuing = &spec["limited"]["limitResponse"]["queuing"];
    let or_none = |value: &Value| if value.is_null() { json!("<none>") } else { value.clone() };
    Some(match column {
        "PriorityLevel" => json!(plain(&spec["priorityLevelConfiguration"]["name"])),
        "MatchingPrecedence" => json!(number(&spec["matchingPrecedence"])),
        "DistinguisherMethod" => or_none(&spec["distinguisherMethod"]["type"]),
        "MissingPL" => {
            let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let dangling = conditions.find(|condition| condition["type"] == "Dangling");
            json!(dangling.map_or("?", |condition| plain(&condition["status"])))
        }
        "Type" => json!(plain(&spec["type"])),
        "NominalConcurrencyShares" => {
            let kind = if spec["type"] == "Exempt" { "exempt" } else { "limited" };
            or_none(&spec[kind]["nominalConcurrencyShares"])
        }
        "Queues" => or_none(&queuing["queues"]),
        "HandSize" => or_none(&queuing["handSize"]),
        "QueueLengthLimit" => or_none(&queuing["queueLengthLimit"]),
        _ => return None,
    })
}

fn autoscaler(object: &Value, column: &str) -> Option<Value> {
    let spec = &object["spec"];
    Some(match column {
        "Reference" => {
            json!(format!("{}/{}", plain(&spec["scaleTargetRef"]["kind"]), plain(&spec["scaleTargetRef"]["name"])))
        }
        "Targets" => json!(targets(object)),
        "MinPods" => json!(spec["minReplicas"].as_i64().map_or("<unset>".to_owned(), |least| least.to_string())),
        "MaxPods" => json!(number(&spec["maxReplicas"])),
        "Replicas" => json!(number(&object["status"]["currentReplicas"])),
        _ => return None,
    })
}

/// What an autoscaler wants, and what it has.
fn targets(object: &Value) -> String {
    let (spec, status) = (&object["spec"], &object["status"]);
    if let Some(percent) = spec["targetCPUUtilizationPercentage"].as_i64() {
        let current = status["currentCPUUtilizationPercentage"].as_i64();
        let current = current.map_or("<unknown>".to_owned(), |percent| format!("{percent}%"));
        return format!("cpu: {current}/{percent}%");
    }
    let metrics = spec["metrics"].as_array().map_or(&[][..], Vec::as_slice);
    let all: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(index, metric)| target(metric, status["currentMetrics"].get(index).unwrap_or(&Value::Null)))
        .collect();
    let shown = all.iter().take(SHOWN_METRICS).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len() {
        0 => "<none>".to_owned(),
        count if count > SHOWN_METRICS => format!("{shown} + {} more...", count - SHOWN_METRICS),
        _ => shown,
    }
}

fn target(metric: &Value, status: &Value) -> String {
    let kind = plain(&metric["type"]);
    let source = match kind {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let (wanted, current) = (&metric[source]["target"], &status[source]["current"]);
    let unknown = || "<unknown>".to_owned();
    let amount = |field: &str| current[field].as_str().map_or_else(unknown, str::to_owned);
    match (kind, wanted["averageValue"].as_str()) {
        ("Resource" | "ContainerResource", Some(average)) => {
            format!("{}: {}/{average}", plain(&metric[source]["name"]), amount("averageValue"))
        }
        ("Resource" | "ContainerResource", None) => {
            let percent = |value: &Value| value.as_i64().map(|percent| format!("{percent}%"));
            let current = percent(&current["averageUtilization"]).unwrap_or_else(unknown);
            let wanted = percent(&wanted["averageUtilization"]).unwrap_or("<auto>".to_owned());
            format!("{}: {current}/{wanted}", plain(&metric[source]["name"]))
        }
        ("Pods", average) => format!("{}/{}", amount("averageValue"), average.unwrap_or("0")),
        (_, Some(average)) => format!("{}/{average} (avg)", amount("averageValue")),
        (_, None) => format!("{}/{}", amount("value"), plain(&wanted["value"])),
    }
}

/// How many of many are shown.
const SHOWN: usize = 3;
const SHOWN_METRICS: usize = 2;

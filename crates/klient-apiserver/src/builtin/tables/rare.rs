//! The cells of less common kinds: autoscalers, quotas, classes, endpoints and others.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{access_modes, joined, pairs, plain};

/// Returns a cell of endpoints.
pub(in crate::builtin) fn endpoints(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Endpoints" => json!(endpoint_addresses(object)),
        _ => return None,
    })
}

/// Returns a cell of an endpoint slice.
pub(in crate::builtin) fn endpoint_slice(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "AddressType" => json!(plain(&object["addressType"])),
        "Ports" => json!(some(&slice_ports(object), "<unset>")),
        "Endpoints" => json!(some(&slice_addresses(object), "<unset>")),
        _ => return None,
    })
}

/// Returns a cell of a pod template.
pub(in crate::builtin) fn pod_template(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Containers" => json!(joined(&object["template"]["spec"]["containers"], "name")),
        "Images" => json!(joined(&object["template"]["spec"]["containers"], "image")),
        "Pod Labels" => json!(pairs(&object["template"]["metadata"]["labels"])),
        _ => return None,
    })
}

/// Returns a cell of a replication controller.
pub(in crate::builtin) fn replication_controller(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Desired" => json!(number(&spec["replicas"])),
        "Current" => json!(number(&status["replicas"])),
        "Ready" => json!(number(&status["readyReplicas"])),
        "Selector" => json!(pairs(&spec["selector"])),
        _ => return None,
    })
}

/// Returns a cell of a resource quota.
pub(in crate::builtin) fn resource_quota(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let status = &object["status"];
    Some(match column {
        "Request" => json!(quota(status, false)),
        "Limit" => json!(quota(status, true)),
        _ => return None,
    })
}

/// Returns a cell of a controller revision.
pub(in crate::builtin) fn controller_revision(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Controller" => json!(controller(object)),
        "Revision" => json!(number(&object["revision"])),
        _ => return None,
    })
}

/// Returns a cell of a resource claim.
pub(in crate::builtin) fn resource_claim(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let status = &object["status"];
    Some(match column {
        "State" => json!(claim_state(status)),
        _ => return None,
    })
}

/// Returns a cell of an ingress class.
pub(in crate::builtin) fn ingress_class(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    Some(match column {
        "Controller" => json!(plain(&spec["controller"])),
        "Parameters" => json!(parameters(&spec["parameters"])),
        _ => return None,
    })
}

/// Returns a cell of a storage class.
pub(in crate::builtin) fn storage_class(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let is_default = object["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true";
    Some(match column {
        "Name" if is_default => json!(format!("{} (default)", plain(&object["metadata"]["name"]))),
        "Provisioner" => json!(plain(&object["provisioner"])),
        "ReclaimPolicy" => json!(object["reclaimPolicy"].as_str().unwrap_or("Delete")),
        "VolumeBindingMode" => json!(object["volumeBindingMode"].as_str().unwrap_or("<unset>")),
        "AllowVolumeExpansion" => json!(flag(&object["allowVolumeExpansion"])),
        _ => return None,
    })
}

/// Returns a cell of a volume attributes class.
pub(in crate::builtin) fn volume_attributes_class(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "DriverName" => json!(plain(&object["driverName"])),
        _ => return None,
    })
}

/// Returns a cell of a priority class.
pub(in crate::builtin) fn priority_class(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Value" => json!(number(&object["value"])),
        "Global-Default" => json!(flag(&object["globalDefault"])),
        "PreemptionPolicy" => json!(plain(&object["preemptionPolicy"])),
        _ => return None,
    })
}

/// Returns a cell of a runtime class.
pub(in crate::builtin) fn runtime_class(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Handler" => json!(plain(&object["handler"])),
        _ => return None,
    })
}

/// Returns a cell of a csi driver.
pub(in crate::builtin) fn csi_driver(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    Some(match column {
        "AttachRequired" => json!(spec["attachRequired"].as_bool().unwrap_or(true)),
        "PodInfoOnMount" => json!(flag(&spec["podInfoOnMount"])),
        "StorageCapacity" => json!(flag(&spec["storageCapacity"])),
        "TokenRequests" => {
            let audiences = joined(&spec["tokenRequests"], "audience");
            json!(if audiences.is_empty() { "<unset>".to_owned() } else { audiences })
        }
        "RequiresRepublish" => json!(flag(&spec["requiresRepublish"])),
        "Modes" => json!(texts(&spec["volumeLifecycleModes"]).join(",")),
        _ => return None,
    })
}

/// Returns a cell of a csi node.
pub(in crate::builtin) fn csi_node(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    Some(match column {
        "Drivers" => json!(length(&spec["drivers"])),
        _ => return None,
    })
}

/// Returns a cell of a volume attachment.
pub(in crate::builtin) fn volume_attachment(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Attacher" => json!(plain(&spec["attacher"])),
        "PV" => json!(plain(&spec["source"]["persistentVolumeName"])),
        "Node" => json!(plain(&spec["nodeName"])),
        "Attached" => json!(flag(&status["attached"])),
        _ => return None,
    })
}

/// Returns a cell of a webhook configuration.
pub(in crate::builtin) fn webhooks(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Webhooks" => {
            json!(length(&object["webhooks"]))
        }
        _ => return None,
    })
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

fn length(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the first few texts, and the number of the others.
fn some(all: &[String], if_none: &str) -> String {
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(",");
    match all.len() {
        _ if shown.is_empty() => if_none.to_owned(),
        count if count > SHOWN => format!("{shown} + {} more...", count - SHOWN),
        _ => shown,
    }
}

fn endpoint_addresses(object: &Value) -> String {
    if object["subsets"].as_array().is_none_or(Vec::is_empty) {
        return "<none>".to_owned();
    }
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
    some(&all, "")
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

/// Returns the used and allowed amounts of a quota, of limits or of all other resources.
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

/// Returns a cell of a persistent volume.
pub(in crate::builtin) fn volume(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    Some(match column {
        "Capacity" => json!(plain(&spec["capacity"]["storage"])),
        "Access Modes" => json!(access_modes(&spec["accessModes"])),
        "Reclaim Policy" => json!(plain(&spec["persistentVolumeReclaimPolicy"])),
        "Status" if object["metadata"].get("deletionTimestamp").is_some() => json!("Terminating"),
        "Status" => json!(plain(&status["phase"])),
        "Claim" => match &spec["claimRef"] {
            claim @ Value::Object(_) => json!(format!("{}/{}", plain(&claim["namespace"]), plain(&claim["name"]))),
            _ => json!(""),
        },
        "StorageClass" => json!(plain(&spec["storageClassName"])),
        "VolumeAttributesClass" => json!(spec["volumeAttributesClassName"].as_str().unwrap_or("<unset>")),
        "Reason" => json!(plain(&status["reason"])),
        "VolumeMode" => json!(spec["volumeMode"].as_str().unwrap_or("<unset>")),
        _ => return None,
    })
}

/// Returns a cell of a range of service addresses.
pub(in crate::builtin) fn service_cidr(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    (column == "CIDRs").then(|| json!(texts(&object["spec"]["cidrs"]).join(",")))
}

/// Returns a cell of an address.
pub(in crate::builtin) fn ip_address(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let parent = &object["spec"]["parentRef"];
    if column != "ParentRef" || parent.is_null() {
        return None;
    }
    let text = |name: &str| Some(parent[name].as_str().unwrap_or_default()).filter(|text| !text.is_empty());
    let resource = [text("resource"), text("group")].into_iter().flatten().collect::<Vec<_>>().join(".").to_lowercase();
    Some(json!(
        [Some(resource.as_str()), text("namespace"), text("name")].into_iter().flatten().collect::<Vec<_>>().join("/")
    ))
}

/// Returns a cell of a flow schema or priority level.
pub(in crate::builtin) fn flow_control(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
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

/// Returns a cell of an autoscaler.
pub(in crate::builtin) fn autoscaler(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
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

/// Returns the current and target values of an autoscaler.
fn targets(object: &Value) -> String {
    let (spec, status) = (&object["spec"], &object["status"]);
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
    let known = |field: &str| current[field].as_str().map_or_else(unknown, str::to_owned);
    // The real server prints the amount of a status without looking whether there is one.
    let amount = |field: &str| match current[field].as_str() {
        None if status[source].is_object() => "<nil>".to_owned(),
        _ => known(field),
    };
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
        (_, Some(average)) => format!("{}/{average} (avg)", known("averageValue")),
        (_, None) => format!("{}/{}", amount("value"), plain(&wanted["value"])),
    }
}

/// The number of texts that are shown.
const SHOWN: usize = 3;
const SHOWN_METRICS: usize = 2;

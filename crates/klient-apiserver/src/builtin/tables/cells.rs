//! The cells of tables, as the real server prints them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::path;
use crate::registry::{Resource, Schema};

/// Returns the cells of one object.
pub(super) fn row(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let Schema::Custom(schema) = &resource.schema else {
        return resource
            .columns
            .iter()
            .map(|column| {
                let own = (resource.hooks.cell)(object, &column.name, now);
                own.unwrap_or_else(|| common_cell(object, &column.name, now))
            })
            .collect();
    };
    let mut cells = vec![json!(name)];
    if schema.columns.is_empty() {
        cells.push(json!(age(&object["metadata"]["creationTimestamp"], now)));
    }
    cells.extend(schema.columns.iter().map(|column| custom_cell(object, &column.path, &column.kind, now)));
    cells
}

fn custom_cell(object: &Value, path: &str, kind: &str, now: Timestamp) -> Value {
    let Some(value) = path::first(object, path) else { return Value::Null };
    match kind {
        "integer" => match value.as_f64() {
            // Fractions are truncated.
            Some(number) if value.as_i64().is_none() => json!(number.trunc() as i64),
            _ => value.as_i64().map_or(Value::Null, Value::from),
        },
        "number" => {
            if value.is_number() {
                value
            } else {
                Value::Null
            }
        }
        "boolean" => value.as_bool().map_or(Value::Null, Value::from),
        "date" => value.as_str().map_or(Value::Null, |text| {
            json!(klient_core::parse_time(text).map_or("<invalid>".to_owned(), |time| klient_core::age(time.0, now)))
        }),
        _ => match value {
            Value::String(text) => json!(text),
            other => json!(other.to_string()),
        },
    }
}

pub(super) fn age(time: &Value, now: Timestamp) -> String {
    klient_core::parse_time(time.as_str().unwrap_or_default())
        .map_or("<unknown>".to_owned(), |time| klient_core::age(time.0, now))
}

/// Returns a cell of a column that means the same for all kinds.
fn common_cell(object: &Value, column: &str, now: Timestamp) -> Value {
    let spec = &object["spec"];
    match column {
        "Name" => json!(object["metadata"]["name"].as_str().unwrap_or_default()),
        "Age" => json!(age(&object["metadata"]["creationTimestamp"], now)),
        "Created At" => object["metadata"]["creationTimestamp"].clone(),
        "Containers" => json!(joined(&spec["template"]["spec"]["containers"], "name")),
        "Images" => json!(joined(&spec["template"]["spec"]["containers"], "image")),
        "Selector" => json!(selector(&spec["selector"])),
        "Users" => json!(subjects(object, "User")),
        "Groups" => json!(subjects(object, "Group")),
        _ => json!("<none>"),
    }
}

/// Returns a cell of a deployment.
pub(in crate::builtin) fn deployment(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Ready" => {
            json!(format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"])))
        }
        "Up-to-date" => json!(number(&status["updatedReplicas"])),
        "Available" => json!(number(&status["availableReplicas"])),
        _ => return None,
    })
}

/// Returns a cell of a stateful set.
pub(in crate::builtin) fn stateful_set(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Ready" => {
            json!(format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"])))
        }
        _ => return None,
    })
}

/// Returns a cell of a replica set.
pub(in crate::builtin) fn replica_set(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Desired" => json!(number(&spec["replicas"])),
        "Current" => json!(number(&status["replicas"])),
        "Ready" => json!(number(&status["readyReplicas"])),
        _ => return None,
    })
}

/// Returns a cell of a daemon set.
pub(in crate::builtin) fn daemon_set(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Desired" => json!(number(&status["desiredNumberScheduled"])),
        "Current" => json!(number(&status["currentNumberScheduled"])),
        "Ready" => json!(number(&status["numberReady"])),
        "Up-to-date" => json!(number(&status["updatedNumberScheduled"])),
        "Available" => json!(number(&status["numberAvailable"])),
        "Node Selector" => json!(pairs(&spec["template"]["spec"]["nodeSelector"])),
        _ => return None,
    })
}

/// Returns a cell of a cron job.
pub(in crate::builtin) fn cron_job(object: &Value, column: &str, now: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Containers" => {
            json!(joined(&spec["jobTemplate"]["spec"]["template"]["spec"]["containers"], "name"))
        }
        "Images" => {
            json!(joined(&spec["jobTemplate"]["spec"]["template"]["spec"]["containers"], "image"))
        }
        "Selector" => json!(selector(&spec["jobTemplate"]["spec"]["selector"])),
        "Schedule" => json!(text(&spec["schedule"])),
        "Timezone" => json!(text(&spec["timeZone"])),
        "Suspend" => json!(if spec["suspend"] == true { "True" } else { "False" }),
        "Active" => json!(status["active"].as_array().map_or(0, Vec::len)),
        "Last Schedule" if status["lastScheduleTime"].is_string() => {
            json!(age(&status["lastScheduleTime"], now))
        }
        _ => return None,
    })
}

/// Returns a cell of a service.
pub(in crate::builtin) fn service(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    Some(match column {
        "Type" => json!(text(&spec["type"])),
        "Cluster-IP" => json!(text(&spec["clusterIP"])),
        "External-IP" => json!(external_address(object)),
        "Port(s)" => json!(ports(spec)),
        "Selector" => json!(pairs(&spec["selector"])),
        _ => return None,
    })
}

/// Returns a cell of a network policy.
pub(in crate::builtin) fn network_policy(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    Some(match column {
        "Pod-Selector" => json!(selector(&spec["podSelector"])),
        _ => return None,
    })
}

/// Returns a cell of a namespace.
pub(in crate::builtin) fn namespace(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let status = &object["status"];
    Some(match column {
        "Status" => json!(text(&status["phase"])),
        _ => return None,
    })
}

/// Returns a cell of a node.
pub(in crate::builtin) fn node(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let status = &object["status"];
    Some(match column {
        "Status" => json!(node_status(object)),
        "Roles" => json!(node_roles(object)),
        "Internal-IP" => json!(node_address(status, "InternalIP")),
        "External-IP" => json!(node_address(status, "ExternalIP")),
        "OS-Image" => json!(known(&status["nodeInfo"]["osImage"])),
        "Kernel-Version" => json!(known(&status["nodeInfo"]["kernelVersion"])),
        "Container-Runtime" => json!(known(&status["nodeInfo"]["containerRuntimeVersion"])),
        "Version" => json!(status["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default()),
        _ => return None,
    })
}

/// Returns a cell of a config map.
pub(in crate::builtin) fn config_map(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Data" => json!(size(&object["data"]) + size(&object["binaryData"])),
        _ => return None,
    })
}

/// Returns a cell of a secret.
pub(in crate::builtin) fn secret(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Data" => json!(size(&object["data"])),
        "Type" => json!(plain(&object["type"])),
        _ => return None,
    })
}

/// Returns a cell of an event.
pub(in crate::builtin) fn event(object: &Value, column: &str, now: Timestamp) -> Option<Value> {
    Some(match column {
        "Type" => json!(plain(&object["type"])),
        "Reason" => json!(plain(&object["reason"])),
        "Message" => json!(plain(&object["message"]).trim()),
        "Subobject" => json!(plain(&object["involvedObject"]["fieldPath"])),
        "Source" => {
            let (component, host) = (plain(&object["source"]["component"]), plain(&object["source"]["host"]));
            json!(if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") })
        }
        "Count" => json!(number(&object["count"]).max(1)),
        "Object" => {
            let about = &object["involvedObject"];
            json!(format!(
                "{}/{}",
                about["kind"].as_str().unwrap_or_default().to_lowercase(),
                about["name"].as_str().unwrap_or_default()
            ))
        }
        "Last Seen" => json!(seen(object, "lastTimestamp", now)),
        "First Seen" => json!(seen(object, "firstTimestamp", now)),
        _ => return None,
    })
}

/// Returns a cell of a job.
pub(in crate::builtin) fn job(object: &Value, column: &str, now: Timestamp) -> Option<Value> {
    Some(match column {
        "Completions" => json!(completions(object)),
        "Status" => json!(job_status(object)),
        "Duration" => json!(job_duration(object, now)),
        _ => return None,
    })
}

/// Returns a cell of a volume claim.
pub(in crate::builtin) fn volume_claim(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Status" if object["metadata"].get("deletionTimestamp").is_some() => json!("Terminating"),
        "Status" => json!(plain(&status["phase"])),
        "Volume" => json!(plain(&spec["volumeName"])),
        "Capacity" | "Access Modes" if plain(&spec["volumeName"]).is_empty() => json!(""),
        "Capacity" => json!(status["capacity"]["storage"].as_str().unwrap_or("0")),
        "Access Modes" => json!(access_modes(&status["accessModes"])),
        "StorageClass" => json!(plain(&spec["storageClassName"])),
        "VolumeAttributesClass" => {
            json!(spec["volumeAttributesClassName"].as_str().unwrap_or("<unset>"))
        }
        "VolumeMode" => json!(spec["volumeMode"].as_str().unwrap_or("<unset>")),
        _ => return None,
    })
}

/// Returns a cell of a role binding.
pub(in crate::builtin) fn role_binding(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    Some(match column {
        "Role" => {
            json!(format!("{}/{}", plain(&object["roleRef"]["kind"]), plain(&object["roleRef"]["name"])))
        }
        "ServiceAccounts" => json!(subjects(object, "ServiceAccount")),
        _ => return None,
    })
}

/// Returns a cell of an ingress.
pub(in crate::builtin) fn ingress(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Class" => json!(spec["ingressClassName"].as_str().unwrap_or("<none>")),
        "Hosts" => json!(hosts(spec)),
        "Address" => json!(addresses(&status["loadBalancer"])),
        "Ports" => json!(if spec["tls"].is_array() { "80, 443" } else { "80" }),
        _ => return None,
    })
}

/// Returns a cell of a disruption budget.
pub(in crate::builtin) fn disruption_budget(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    let status = &object["status"];
    Some(match column {
        "Min Available" => json!(count_or_share(&spec["minAvailable"])),
        "Max Unavailable" => json!(count_or_share(&spec["maxUnavailable"])),
        "Allowed Disruptions" => json!(number(&status["disruptionsAllowed"])),
        _ => return None,
    })
}

/// Returns a cell of a lease.
pub(in crate::builtin) fn lease(object: &Value, column: &str, _: Timestamp) -> Option<Value> {
    let spec = &object["spec"];
    Some(match column {
        "Holder" => json!(spec["holderIdentity"].as_str().unwrap_or_default()),
        _ => return None,
    })
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>")
}

pub(super) fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn known(value: &Value) -> &str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<unknown>")
}

fn node_status(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let mut shown = match conditions.iter().find(|condition| condition["type"] == "Ready") {
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object["spec"]["unschedulable"] == true {
        shown.push_str(",SchedulingDisabled");
    }
    shown
}

fn node_roles(object: &Value) -> String {
    let labels = object["metadata"]["labels"].as_object();
    let role = |(key, value): (&String, &Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) if !role.is_empty() => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().filter(|role| !role.is_empty()).map(str::to_owned),
        _ => None,
    };
    let mut roles: Vec<String> = labels.into_iter().flatten().filter_map(role).collect();
    roles.sort();
    roles.dedup();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn node_address<'a>(status: &'a Value, kind: &str) -> &'a str {
    let addresses = status["addresses"].as_array().into_iter().flatten();
    addresses
        .filter(|address| address["type"] == kind)
        .find_map(|address| address["address"].as_str())
        .unwrap_or("<none>")
}

fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    let given: Vec<&str> = spec["externalIPs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match plain(&spec["type"]) {
        "ExternalName" => plain(&spec["externalName"]).to_owned(),
        "LoadBalancer" => {
            let assigned = service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
            let assigned = assigned.filter_map(|point| point["ip"].as_str().or(point["hostname"].as_str()));
            let all: Vec<&str> = assigned.chain(given).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ if given.is_empty() => "<none>".to_owned(),
        _ => given.join(","),
    }
}

/// Returns the age of an event's first or last occurrence. Events of the new group have other time fields.
fn seen(event: &Value, field: &str, now: Timestamp) -> String {
    let last_of_series = (field == "lastTimestamp").then_some(&event["series"]["lastObservedTime"]);
    let times = [Some(&event[field]), last_of_series, Some(&event["eventTime"])];
    let time = times.into_iter().flatten().find(|time| time.is_string());
    age(time.unwrap_or(&Value::Null), now)
}

fn completions(job: &Value) -> String {
    let done = job["status"]["succeeded"].as_i64().unwrap_or_default();
    match (job["spec"]["completions"].as_i64(), job["spec"]["parallelism"].as_i64()) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, Some(parallel)) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    }
}

fn job_status(job: &Value) -> &'static str {
    let conditions = job["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let holds = |kind: &str| conditions.iter().any(|found| found["type"] == kind && found["status"] == "True");
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if job["metadata"].get("deletionTimestamp").is_some() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn job_duration(job: &Value, now: Timestamp) -> String {
    let time = |name: &str| klient_core::parse_time(plain(&job["status"][name])).ok().map(|time| time.0);
    time("startTime").map_or_else(String::new, |start| klient_core::age(start, time("completionTime").unwrap_or(now)))
}

pub(super) fn access_modes(modes: &Value) -> String {
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let modes = modes.as_array().map_or(&[][..], Vec::as_slice);
    let given = known.iter().filter(|(mode, _)| modes.iter().any(|given| given == mode));
    given.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn subjects(binding: &Value, kind: &str) -> String {
    let found = binding["subjects"].as_array().into_iter().flatten().filter(|subject| subject["kind"] == kind);
    let name = |subject: &Value| match kind {
        "ServiceAccount" => format!("{}/{}", plain(&subject["namespace"]), plain(&subject["name"])),
        _ => plain(&subject["name"]).to_owned(),
    };
    found.map(name).collect::<Vec<_>>().join(", ")
}

fn hosts(spec: &Value) -> String {
    let hosts: Vec<&str> =
        spec["rules"].as_array().into_iter().flatten().filter_map(|rule| rule["host"].as_str()).collect();
    if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") }
}

/// Returns the addresses of a load balancer, sorted: a name only where there is no IP address.
fn addresses(balancer: &Value) -> String {
    let ingress = balancer["ingress"].as_array().into_iter().flatten();
    let address = |entry: &'_ Value| {
        [&entry["ip"], &entry["hostname"]].map(plain).into_iter().find(|text| !text.is_empty()).map(str::to_owned)
    };
    let sorted: BTreeSet<String> = ingress.filter_map(address).collect();
    sorted.into_iter().collect::<Vec<_>>().join(",")
}

fn count_or_share(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => "N/A".to_owned(),
    }
}

/// Returns a label selector in its text form.
fn selector(value: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in value["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", plain(value))));
    }
    for expression in value["matchExpressions"].as_array().into_iter().flatten() {
        let key = plain(&expression["key"]);
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match plain(&expression["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    if parts.is_empty() {
        return "<none>".to_owned();
    }
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

fn size(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

pub(super) fn joined(items: &Value, field: &str) -> String {
    let found: Vec<&str> = items.as_array().into_iter().flatten().filter_map(|item| item[field].as_str()).collect();
    found.join(",")
}

pub(super) fn pairs(labels: &Value) -> String {
    let found: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if found.is_empty() { "<none>".to_owned() } else { found.join(",") }
}

fn ports(spec: &Value) -> String {
    let found: Vec<String> = spec["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|port| {
            let node =
                port["nodePort"].as_i64().filter(|node| *node > 0).map_or(String::new(), |node| format!(":{node}"));
            format!("{}{node}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"))
        })
        .collect();
    if found.is_empty() { "<none>".to_owned() } else { found.join(",") }
}

//! The cells of tables: which columns a kind has, and what is in them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::registry::{Resource, Schema};

/// Columns of a built-in kind after its name: name, type and priority.
pub(super) fn built_in(resource: &Resource) -> &'static [(&'static str, &'static str, i64)] {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => &[
            ("Ready", "string", 0),
            ("Status", "string", 0),
            ("Restarts", "string", 0),
            ("Age", "string", 0),
            ("IP", "string", 1),
            ("Node", "string", 1),
            ("Nominated Node", "string", 1),
            ("Readiness Gates", "string", 1),
        ],
        ("apps", "deployments") => &[
            ("Ready", "string", 0),
            ("Up-to-date", "integer", 0),
            ("Available", "integer", 0),
            ("Age", "string", 0),
            ("Containers", "string", 1),
            ("Images", "string", 1),
            ("Selector", "string", 1),
        ],
        ("apps", "replicasets") => &[
            ("Desired", "integer", 0),
            ("Current", "integer", 0),
            ("Ready", "integer", 0),
            ("Age", "string", 0),
            ("Containers", "string", 1),
            ("Images", "string", 1),
            ("Selector", "string", 1),
        ],
        ("apps", "statefulsets") => {
            &[("Ready", "string", 0), ("Age", "string", 0), ("Containers", "string", 1), ("Images", "string", 1)]
        }
        ("", "services") => &[
            ("Type", "string", 0),
            ("Cluster-IP", "string", 0),
            ("External-IP", "string", 0),
            ("Port(s)", "string", 0),
            ("Age", "string", 0),
            ("Selector", "string", 1),
        ],
        ("", "namespaces") => &[("Status", "string", 0), ("Age", "string", 0)],
        ("", "nodes") => {
            &[("Status", "string", 0), ("Roles", "string", 0), ("Age", "string", 0), ("Version", "string", 0)]
        }
        ("", "configmaps") => &[("Data", "string", 0), ("Age", "string", 0)],
        ("", "secrets") => &[("Type", "string", 0), ("Data", "string", 0), ("Age", "string", 0)],
        ("", "events") => &[
            ("Last Seen", "string", 0),
            ("Type", "string", 0),
            ("Reason", "string", 0),
            ("Object", "string", 0),
            ("Message", "string", 0),
        ],
        ("batch", "jobs") => {
            &[("Status", "string", 0), ("Completions", "string", 0), ("Duration", "string", 0), ("Age", "string", 0)]
        }
        ("coordination.k8s.io", "leases") => &[("Holder", "string", 0), ("Age", "string", 0)],
        ("apiextensions.k8s.io", "customresourcedefinitions") => &[("Created At", "date", 0)],
        _ => &[("Age", "string", 0)],
    }
}

/// The cells of one object.
pub(super) fn row(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![object["metadata"]["name"].clone()];
    match &resource.schema {
        Schema::Custom(schema) if schema.columns.is_empty() => {
            cells.push(object["metadata"]["creationTimestamp"].clone());
        }
        Schema::Custom(schema) => {
            cells.extend(schema.columns.iter().map(|column| custom_cell(object, &column.path, &column.kind, now)));
        }
        Schema::BuiltIn(_) => {
            cells.extend(built_in(resource).iter().map(|(name, ..)| cell(resource, object, name, now)));
        }
    }
    cells
}

fn custom_cell(object: &Value, path: &str, kind: &str, now: Timestamp) -> Value {
    let found = path.trim_start_matches('.').split('.').try_fold(object, |value, name| value.get(name));
    let Some(value) = found else { return Value::Null };
    match kind {
        "integer" => value.as_i64().map_or(Value::Null, Value::from),
        "number" => value.as_f64().map_or(Value::Null, Value::from),
        "boolean" => value.as_bool().map_or(Value::Null, Value::from),
        "date" => value.as_str().map_or(Value::Null, |text| Value::from(age(text, now))),
        _ => match value {
            Value::String(text) => json!(text),
            other => json!(other.to_string()),
        },
    }
}

fn age(text: &str, now: Timestamp) -> String {
    klient_core::parse_time(text).map_or("<unknown>".to_owned(), |time| klient_core::age(time.0, now))
}

fn cell(resource: &Resource, object: &Value, column: &str, now: Timestamp) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>").to_owned();
    match (resource.plural.as_str(), column) {
        (_, "Age") => json!(age(object["metadata"]["creationTimestamp"].as_str().unwrap_or_default(), now)),
        ("pods", "Ready") => {
            let statuses = status["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
            let ready = statuses.iter().filter(|status| status["ready"] == true).count();
            json!(format!("{ready}/{}", spec["containers"].as_array().map_or(0, Vec::len)))
        }
        ("pods", "Status") => {
            let waiting = status["containerStatuses"][0]["state"]["waiting"]["reason"].as_str();
            let deleting = object["metadata"].get("deletionTimestamp").is_some();
            json!(if deleting {
                "Terminating".to_owned()
            } else {
                waiting.map_or_else(|| text(&status["phase"]), str::to_owned)
            })
        }
        ("pods", "Restarts") => {
            let statuses = status["containerStatuses"].as_array().into_iter().flatten();
            json!(statuses.map(|status| number(&status["restartCount"])).sum::<i64>().to_string())
        }
        ("pods", "IP") => json!(text(&status["podIP"])),
        ("pods", "Node") => json!(text(&spec["nodeName"])),
        ("pods", "Nominated Node") => json!(text(&status["nominatedNodeName"])),
        ("deployments" | "statefulsets", "Ready") => {
            json!(format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"])))
        }
        ("deployments", "Up-to-date") => json!(number(&status["updatedReplicas"])),
        ("deployments", "Available") => json!(number(&status["availableReplicas"])),
        ("replicasets", "Desired") => json!(number(&spec["replicas"])),
        ("replicasets", "Current") => json!(number(&status["replicas"])),
        ("replicasets", "Ready") => json!(number(&status["readyReplicas"])),
        (_, "Containers") => json!(joined(&spec["template"]["spec"]["containers"], "name")),
        (_, "Images") => json!(joined(&spec["template"]["spec"]["containers"], "image")),
        ("services", "Type") => json!(text(&spec["type"])),
        ("services", "Cluster-IP") => json!(text(&spec["clusterIP"])),
        ("services", "Port(s)") => json!(ports(spec)),
        ("services", "Selector") => json!(pairs(&spec["selector"])),
        (_, "Selector") => json!(pairs(&spec["selector"]["matchLabels"])),
        ("namespaces", "Status") => json!(text(&status["phase"])),
        ("nodes", "Status") => {
            let ready =
                status["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == "Ready");
            json!(match ready.map(|condition| condition["status"] == "True") {
                Some(true) => "Ready",
                Some(false) => "NotReady",
                None => "Unknown",
            })
        }
        ("nodes", "Version") => json!(status["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default()),
        ("configmaps", "Data") => json!(size(&object["data"]) + size(&object["binaryData"])),
        ("secrets", "Data") => json!(size(&object["data"])),
        ("secrets" | "events", "Type") => json!(text(&object["type"])),
        ("events", "Reason") => json!(text(&object["reason"])),
        ("events", "Message") => json!(object["message"].as_str().unwrap_or_default().trim()),
        ("events", "Object") => {
            let about = &object["involvedObject"];
            json!(format!(
                "{}/{}",
                about["kind"].as_str().unwrap_or_default().to_lowercase(),
                about["name"].as_str().unwrap_or_default()
            ))
        }
        ("events", "Last Seen") => {
            let seen = [&object["lastTimestamp"], &object["eventTime"], &object["metadata"]["creationTimestamp"]];
            json!(age(seen.iter().find_map(|time| time.as_str()).unwrap_or_default(), now))
        }
        ("jobs", "Completions") => json!(format!("{}/{}", number(&status["succeeded"]), number(&spec["completions"]))),
        ("jobs", "Status") => {
            json!(if number(&status["succeeded"]) >= number(&spec["completions"]) { "Complete" } else { "Running" })
        }
        ("leases", "Holder") => json!(spec["holderIdentity"].as_str().unwrap_or_default()),
        ("customresourcedefinitions", "Created At") => object["metadata"]["creationTimestamp"].clone(),
        _ => json!("<none>"),
    }
}

fn size(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

fn joined(items: &Value, field: &str) -> String {
    let found: Vec<&str> = items.as_array().into_iter().flatten().filter_map(|item| item[field].as_str()).collect();
    found.join(",")
}

fn pairs(labels: &Value) -> String {
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

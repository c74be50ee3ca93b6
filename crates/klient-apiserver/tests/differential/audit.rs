//! The audit log: the events of a script of requests, with everything that differs in every run normalised.

use serde_json::{Value, json};

use crate::script::{Run, Step};

/// Returns the steps of the script. The first has no identifier: the event of a new namespace has a default status on the real server.
pub fn steps() -> Vec<Step> {
    serde_json::from_str(include_str!("audit/steps.json")).unwrap()
}

/// The policy of the log.
pub const POLICY: &str = include_str!("audit/policy.yaml");

/// Returns the events of a run, which are those whose identifiers begin with the run's namespace, in the order of requests and stages.
pub fn events(run: &mut Run, namespace: &str, lines: &[String]) -> Vec<Value> {
    let parsed = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let id = |event: &Value| event["auditID"].as_str().unwrap_or_default().to_owned();
    let mut events: Vec<Value> = parsed.filter(|event| id(event).starts_with(namespace)).collect();
    // Stages are in the order of the log, which the sort leaves as it is.
    events.sort_by_key(id);
    for event in &mut events {
        for name in ["requestReceivedTimestamp", "stageTimestamp"] {
            assert!(
                event[name].as_str().is_some_and(|time| time.len() == "2026-01-02T03:04:05.678901Z".len()),
                "{event}"
            );
            event[name] = json!("TIME");
        }
        assert!(event["sourceIPs"].as_array().is_some_and(|list| list.len() == 1), "{event}");
        event["sourceIPs"] = json!(["ADDRESS"]);
        run.normalise(event);
    }
    events
}

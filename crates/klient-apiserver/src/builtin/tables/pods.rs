//! The cells of pods: how far a pod is, by the states of its containers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{age, number, plain, text};

/// Returns a cell of a pod.
pub(in crate::builtin) fn pod(object: &Value, column: &str, now: Timestamp) -> Option<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    Some(match column {
        "Ready" => {
            let state = State::of(object);
            json!(format!("{}/{}", state.ready, state.containers))
        }
        "Status" => json!(State::of(object).reason),
        "Restarts" => json!(State::of(object).restarts.shown(now)),
        "IP" => json!(text(&status["podIPs"][0]["ip"])),
        "Node" => json!(text(&spec["nodeName"])),
        "Nominated Node" => json!(text(&status["nominatedNodeName"])),
        "Readiness Gates" => json!(readiness_gates(object)),
        _ => return None,
    })
}

/// Returns the condition of a pod's row: whether the pod has ended.
pub(in crate::builtin) fn pod_condition(object: &Value) -> Option<Value> {
    let message = match plain(&object["status"]["phase"]) {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = &object["status"]["phase"];
    Some(json!({"type": "Completed", "status": "True", "reason": reason, "message": message}))
}

/// The state of a pod according to the states of its containers.
struct State {
    reason: String,
    ready: usize,
    containers: usize,
    restarts: Restarts,
}

/// The number of restarts, and the end of the last run before one.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += number(&status["restartCount"]);
        let ended = plain(&status["lastState"]["terminated"]["finishedAt"]);
        self.last = self.last.max(klient_core::parse_time(ended).ok().map(|time| time.0));
    }

    fn shown(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => format!("{} ({} ago)", self.count, age(&json!(last.to_string()), now)),
            _ => self.count.to_string(),
        }
    }
}

impl State {
    fn of(object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let mut state = Self {
            reason: reason_of_pod(status),
            ready: 0,
            containers: items(&spec["containers"]).len()
                + items(&spec["initContainers"]).iter().filter(|c| runs_on(c)).count(),
            restarts: Restarts::default(),
        };
        let (is_initializing, of_sidecars) = state.initialize(spec, status);
        if !is_initializing || has_condition(status, "Initialized") {
            state.restarts = of_sidecars;
            state.run(status);
        }
        let is_deleting = object["metadata"].get("deletionTimestamp").is_some();
        if is_deleting && status["reason"] == "NodeLost" {
            "Unknown".clone_into(&mut state.reason);
        } else if is_deleting && !matches!(plain(&status["phase"]), "Failed" | "Succeeded") {
            "Terminating".clone_into(&mut state.reason);
        }
        state
    }

    /// Reads the states of the init containers up to the first one that is not done. Returns whether there is one, and the restarts of
    /// those that run beside the containers.
    fn initialize(&mut self, spec: &Value, status: &Value) -> (bool, Restarts) {
        let all = items(&spec["initContainers"]);
        let mut of_sidecars = Restarts::default();
        for (index, container) in items(&status["initContainerStatuses"]).iter().enumerate() {
            self.restarts.add(container);
            let is_sidecar = all.iter().any(|declared| declared["name"] == container["name"] && runs_on(declared));
            if is_sidecar {
                of_sidecars.add(container);
            }
            let (ended, waiting) = (&container["state"]["terminated"], plain(&container["state"]["waiting"]["reason"]));
            if ended.is_object() && number(&ended["exitCode"]) == 0 {
                continue;
            }
            if is_sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            self.reason = match waiting {
                _ if ended.is_object() => format!("Init:{}", reason_of_end(ended)),
                "" | "PodInitializing" => format!("Init:{index}/{}", all.len()),
                reason => format!("Init:{reason}"),
            };
            return (true, of_sidecars);
        }
        (false, of_sidecars)
    }

    /// Reads the states of the containers. The first container with a reason determines that of the pod.
    fn run(&mut self, status: &Value) {
        let (mut is_running, mut failed) = (false, None);
        for container in items(&status["containerStatuses"]).iter().rev() {
            self.restarts.add(container);
            let (ended, waiting) = (&container["state"]["terminated"], plain(&container["state"]["waiting"]["reason"]));
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if ended.is_object() {
                self.reason = reason_of_end(ended);
                if number(&ended["exitCode"]) != 0 {
                    failed = Some(self.reason.clone());
                }
            } else if container["ready"] == true && container["state"]["running"].is_object() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason != "Completed" {
            return;
        }
        // Some containers have completed, and others may run on.
        if is_running && has_condition(status, "Ready") {
            "Running".clone_into(&mut self.reason);
        } else if let Some(reason) = failed {
            self.reason = reason;
        } else if is_running {
            "NotReady".clone_into(&mut self.reason);
        }
    }
}

fn reason_of_pod(status: &Value) -> String {
    let is_gated = |condition: &Value| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated";
    if items(&status["conditions"]).iter().any(is_gated) {
        return "SchedulingGated".to_owned();
    }
    match plain(&status["reason"]) {
        "" => plain(&status["phase"]).to_owned(),
        reason => reason.to_owned(),
    }
}

/// Returns why a container ended.
fn reason_of_end(ended: &Value) -> String {
    match (plain(&ended["reason"]), number(&ended["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(&ended["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Returns whether an init container runs beside the containers.
fn runs_on(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn has_condition(status: &Value, name: &str) -> bool {
    let found = items(&status["conditions"]).iter().find(|condition| condition["type"] == name);
    found.is_some_and(|condition| condition["status"] == "True")
}

fn readiness_gates(object: &Value) -> String {
    let gates = items(&object["spec"]["readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let is_open = |gate: &&Value| has_condition(&object["status"], plain(&gate["conditionType"]));
    format!("{}/{}", gates.iter().filter(is_open).count(), gates.len())
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(status: &Value) -> [Value; 3] {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}],
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]});
        let pod = json!({"metadata": {}, "spec": spec, "status": status});
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        ["Ready", "Status", "Restarts"].map(|column| super::pod(&pod, column, now).unwrap())
    }

    #[test]
    fn status_shows_how_far_a_pod_is() {
        let done = json!({"name": "i", "state": {"terminated": {"exitCode": 0}}});
        let running = |name: &str| json!({"name": name, "ready": true, "started": true, "state": {"running": {}}});
        let completed = json!({"name": "b", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
        let ready = json!([{"type": "Ready", "status": "True"}]);
        for (status, expected) in [
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
                json!(["0/3", "SchedulingGated", "0"]),
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
                json!(["0/3", "Init:0/2", "0"]),
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                 "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:05:00Z"}}}]}),
                json!(["0/3", "Init:CrashLoopBackOff", "2 (5m ago)"]),
            ),
            (
                json!({"phase": "Failed", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 1, "signal": 9}}}]}),
                json!(["0/3", "Init:Signal:9", "0"]),
            ),
            (
                json!({"phase": "Running", "initContainerStatuses": [done, running("s")], "containerStatuses": [running("a"), running("b")]}),
                json!(["3/3", "Running", "0"]),
            ),
            (
                json!({"phase": "Running", "containerStatuses": [running("a"), completed], "conditions": ready}),
                json!(["1/3", "Running", "0"]),
            ),
            (
                json!({"phase": "Running", "containerStatuses": [running("a"), completed]}),
                json!(["1/3", "NotReady", "0"]),
            ),
            (
                json!({"phase": "Failed", "containerStatuses": [completed, {"name": "a", "state": {"terminated": {"exitCode": 3}}}]}),
                json!(["0/3", "ExitCode:3", "0"]),
            ),
        ] {
            assert_eq!(json!(cells(&status)), expected, "{status}");
        }
    }
}

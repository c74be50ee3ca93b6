//! Which pods a drain removes: kubectl's filters, in kubectl's order. The first that decides wins.

use std::{fmt, time::Duration};

use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use klient_core::controller_of;

/// Why a pod stays on a drained node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Left {
    /// A daemon set manages it, and would create it again at once.
    DaemonSet,
    /// It is the mirror of a static pod, which only the kubelet can remove.
    Mirror,
    /// It has been in deletion for longer than [`Drain::skip_deleted_after`](super::Drain::skip_deleted_after).
    BeingDeleted,
}

/// Why a pod is not removed unless an option overrides it. Nothing is evicted while there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Refusal {
    /// A daemon set manages it: [`Drain::ignore_daemon_sets`](super::Drain::ignore_daemon_sets).
    DaemonSet,
    /// It has an `emptyDir` volume, whose data is lost: [`Drain::delete_empty_dir_data`](super::Drain::delete_empty_dir_data).
    EmptyDir,
    /// No controller would create it again: [`Drain::force`](super::Drain::force).
    NoController,
    /// Its daemon set does not exist: [`Drain::force`](super::Drain::force).
    MissingDaemonSet,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DaemonSet => "a daemon set manages it",
            Self::Mirror => "it is the mirror of a static pod",
            Self::BeingDeleted => "it is being deleted already",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DaemonSet => "a daemon set manages it",
            Self::EmptyDir => "it has local storage",
            Self::NoController => "no controller manages it",
            Self::MissingDaemonSet => "its daemon set does not exist",
        })
    }
}

/// The options that override refusals.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    pub(super) ignore_daemon_sets: bool,
    pub(super) delete_empty_dir_data: bool,
    pub(super) force: bool,
    pub(super) skip_deleted_after: Option<Duration>,
}

/// The fate of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Remove,
    /// It is removed because of an option.
    RemoveAlthough(Refusal),
    Leave(Left),
    Refuse(Refusal),
}

/// Decides about a pod. `has_daemon_set` is whether the daemon set that manages it exists, if one does.
pub(super) fn decide(pod: &Pod, has_daemon_set: Option<bool>, overrides: &Overrides, now: Timestamp) -> Decision {
    if let (Some(limit), Some(deleted)) = (overrides.skip_deleted_after, &pod.metadata.deletion_timestamp) {
        let age = now.duration_since(deleted.0);
        if age.try_into().is_ok_and(|age: Duration| age > limit) {
            return Decision::Leave(Left::BeingDeleted);
        }
    }
    let mut overridden = None;
    match has_daemon_set {
        Some(_) if is_finished(pod) => {}
        Some(true) if overrides.ignore_daemon_sets => return Decision::Leave(Left::DaemonSet),
        Some(true) => return Decision::Refuse(Refusal::DaemonSet),
        Some(false) if overrides.force => overridden = Some(Refusal::MissingDaemonSet),
        Some(false) => return Decision::Refuse(Refusal::MissingDaemonSet),
        None => {}
    }
    let annotations = pod.metadata.annotations.as_ref();
    if annotations.is_some_and(|annotations| annotations.contains_key(MIRROR)) {
        return Decision::Leave(Left::Mirror);
    }
    if has_empty_dir(pod) && !is_finished(pod) {
        if !overrides.delete_empty_dir_data {
            return Decision::Refuse(Refusal::EmptyDir);
        }
        overridden = overridden.or(Some(Refusal::EmptyDir));
    }
    if controller_of(&pod.metadata).is_none() && !is_finished(pod) {
        if !overrides.force {
            return Decision::Refuse(Refusal::NoController);
        }
        overridden = Some(Refusal::NoController);
    }
    overridden.map_or(Decision::Remove, Decision::RemoveAlthough)
}

/// Returns the name of the daemon set that manages a pod.
pub(super) fn daemon_set_of(pod: &Pod) -> Option<&str> {
    controller_of(&pod.metadata).filter(|owner| owner.kind == "DaemonSet").map(|owner| owner.name.as_str())
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn has_empty_dir(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes.iter().any(|volume| volume.empty_dir.is_some())
}

const MIRROR: &str = "kubernetes.io/config.mirror";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn decided(pod: Value, has_daemon_set: Option<bool>, overrides: &Overrides) -> Decision {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        decide(&pod, has_daemon_set, overrides, "2026-01-01T00:01:00Z".parse().unwrap())
    }

    fn owned(kind: &str) -> Value {
        json!([{"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": true}])
    }

    fn all() -> Overrides {
        Overrides { ignore_daemon_sets: true, delete_empty_dir_data: true, force: true, skip_deleted_after: None }
    }

    #[test]
    fn pods_of_controllers_are_removed() {
        let pod = json!({"metadata": {"ownerReferences": owned("ReplicaSet")}});
        assert_eq!(decided(pod, None, &Overrides::default()), Decision::Remove);
    }

    #[test]
    fn refusals_come_in_order_and_options_override_them() {
        let none = Overrides::default();
        let empty_dir = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
        let alone = json!({"metadata": {}, "spec": empty_dir});
        assert_eq!(decided(alone.clone(), None, &none), Decision::Refuse(Refusal::EmptyDir));
        let data = Overrides { delete_empty_dir_data: true, ..none.clone() };
        assert_eq!(decided(alone.clone(), None, &data), Decision::Refuse(Refusal::NoController));
        assert_eq!(decided(alone, None, &all()), Decision::RemoveAlthough(Refusal::NoController));
        let daemon = json!({"metadata": {"ownerReferences": owned("DaemonSet")}});
        assert_eq!(decided(daemon.clone(), Some(true), &none), Decision::Refuse(Refusal::DaemonSet));
        assert_eq!(decided(daemon.clone(), Some(true), &all()), Decision::Leave(Left::DaemonSet));
        assert_eq!(decided(daemon.clone(), Some(false), &none), Decision::Refuse(Refusal::MissingDaemonSet));
        assert_eq!(decided(daemon, Some(false), &all()), Decision::RemoveAlthough(Refusal::MissingDaemonSet));
    }

    #[test]
    fn finished_pods_are_removed_and_mirrors_stay() {
        let finished = json!({"metadata": {}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": []},
            "status": {"phase": "Succeeded"}});
        assert_eq!(decided(finished, None, &Overrides::default()), Decision::Remove);
        let mirror = json!({"metadata": {"annotations": {MIRROR: "x"}}, "status": {"phase": "Failed"}});
        assert_eq!(decided(mirror, None, &all()), Decision::Leave(Left::Mirror));
    }

    #[test]
    fn pods_in_long_deletion_stay_if_asked_for() {
        let pod = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owned("Job")}});
        let after =
            |seconds| Overrides { skip_deleted_after: Some(Duration::from_secs(seconds)), ..Overrides::default() };
        assert_eq!(decided(pod.clone(), None, &after(59)), Decision::Leave(Left::BeingDeleted));
        assert_eq!(decided(pod.clone(), None, &after(60)), Decision::Remove);
        assert_eq!(decided(pod, None, &Overrides::default()), Decision::Remove);
    }
}

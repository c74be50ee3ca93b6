//! Cordon, uncordon and drain on the embedded server. Pods have no kubelet, so a task of the test takes its place.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use klient::{
    Api, Client, ErrorKind, ObjectKey, Patch,
    node::{Drain, DrainStep, Left, cordon, uncordon},
};
use klient_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::embedded::client;

/// A server with a node and pods on it.
struct World {
    _server: ApiServer,
    client: Client,
    pods: Api<Pod>,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::start().await.unwrap();
        let client = client(&server);
        let nodes: Api<Node> = Api::cluster(client.clone());
        for name in ["worker", "other"] {
            nodes.create(&object(json!({"metadata": {"name": name}}))).await.unwrap();
        }
        Self { pods: Api::namespaced(client.clone(), "default"), client, _server: server }
    }

    /// Creates a pod on a node. `owner` is the kind of its controller.
    async fn pod(&self, name: &str, node: &str, owner: Option<&str>, rest: Value) {
        let mut pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {"nodeName": node,
            "containers": [{"name": "c", "image": "i"}]}});
        if let Some(kind) = owner {
            pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": kind, "name": "owner",
                "uid": self.owner(kind).await, "controller": true}]);
        }
        for (field, value) in rest.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        self.pods.create(&object(pod)).await.unwrap();
    }

    /// Returns the UID of a controller, which is created if it does not exist. Pods without theirs would be collected.
    async fn owner(&self, kind: &str) -> String {
        let path = format!("/apis/apps/v1/namespaces/default/{}s", kind.to_lowercase());
        let template =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let owner = json!({"metadata": {"name": "owner"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, "serviceName": "s"}});
        let created = self.client.rest().post().path(&path).json(&owner).value::<Value>().await;
        let owner = match created {
            Err(error) if error.is_already_exists() => {
                self.client.rest().get().path(format!("{path}/owner")).value().await.unwrap()
            }
            owner => owner.unwrap(),
        };
        owner["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// Removes pods that are being deleted, as a kubelet does.
    fn kubelet(&self) -> tokio::task::JoinHandle<()> {
        let pods = self.pods.clone();
        tokio::spawn(async move {
            loop {
                for pod in &pods.list().await.unwrap() {
                    if pod.metadata.deletion_timestamp.is_some() {
                        let name = pod.metadata.name.as_deref().unwrap();
                        pods.delete(name).grace_period(Duration::ZERO).await.unwrap();
                    }
                }
                sleep(Duration::from_millis(100)).await;
            }
        })
    }

    async fn names(&self) -> Vec<String> {
        self.pods.list().await.unwrap().into_iter().filter_map(|pod| pod.metadata.name).collect()
    }

    async fn is_unschedulable(&self) -> bool {
        let node = Api::<Node>::cluster(self.client.clone()).get("worker").await.unwrap();
        node.spec.and_then(|spec| spec.unschedulable).unwrap_or_default()
    }

    fn drain(&self) -> Drain {
        Drain::new(self.client.clone(), "worker").timeout(Duration::from_secs(60))
    }
}

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn keys(names: &[&str]) -> Vec<ObjectKey> {
    names.iter().map(|name| ObjectKey::namespaced("default", name)).collect()
}

#[tokio::test(start_paused = true)]
async fn cordon_and_uncordon_say_whether_they_changed_the_node() {
    let world = World::new().await;
    assert!(cordon(&world.client, "worker").await.unwrap());
    assert!(!cordon(&world.client, "worker").await.unwrap());
    assert!(world.is_unschedulable().await);
    assert!(uncordon(&world.client, "worker").await.unwrap());
    assert!(!uncordon(&world.client, "worker").await.unwrap());
    assert!(!world.is_unschedulable().await);
    assert!(cordon(&world.client, "missing").await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_pods_and_leaves_those_of_daemon_sets() {
    let world = World::new().await;
    world.pod("a", "worker", Some("ReplicaSet"), json!({})).await;
    world.pod("b", "worker", Some("ReplicaSet"), json!({})).await;
    world.pod("daemon", "worker", Some("DaemonSet"), json!({})).await;
    world.pod("elsewhere", "other", Some("ReplicaSet"), json!({})).await;
    let kubelet = world.kubelet();
    let drained = world.drain().ignore_daemon_sets().run().await.unwrap();
    assert_eq!(drained.gone, keys(&["a", "b"]));
    assert_eq!(drained.left, [(ObjectKey::namespaced("default", "daemon"), Left::DaemonSet)]);
    assert_eq!(world.names().await, ["daemon", "elsewhere"]);
    assert!(world.is_unschedulable().await);
    kubelet.abort();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_evicted_if_a_pod_is_refused() {
    let world = World::new().await;
    world.pod("a", "worker", Some("ReplicaSet"), json!({})).await;
    world.pod("alone", "worker", None, json!({})).await;
    world.pod("data", "worker", Some("StatefulSet"), json!({"volumes": [{"name": "v", "emptyDir": {}}]})).await;
    let error = world.drain().run().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "node worker was not drained because of pods that stay: default/data (it has local storage); default/alone (no \
         controller manages it)"
    );
    let kept = world.pods.list().await.unwrap();
    assert!(kept.iter().all(|pod| pod.metadata.deletion_timestamp.is_none()));
    let kubelet = world.kubelet();
    let drained = world.drain().force().delete_empty_dir_data().run().await.unwrap();
    assert_eq!(drained.gone, keys(&["a", "alone", "data"]));
    kubelet.abort();
}

#[tokio::test(start_paused = true)]
async fn blocked_eviction_is_repeated_until_the_budget_allows_it() {
    let world = World::new().await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(world.client.clone(), "default");
    let budget = json!({"metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    budgets.create(&object(budget)).await.unwrap();
    let status = |allowed: i32| {
        Patch::merge(json!({"status": {"disruptionsAllowed": allowed, "observedGeneration": 1, "currentHealthy": 1,
            "desiredHealthy": 1, "expectedPods": 1}}))
    };
    budgets.status().patch("web", status(0)).await.unwrap();
    world.pod("web", "worker", Some("ReplicaSet"), json!({})).await;
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    world.pods.status().patch("web", Patch::strategic(ready)).await.unwrap();

    let error = world.drain().timeout(Duration::from_secs(12)).run().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let text = error.to_string();
    assert!(text.contains("node worker was not drained within 12 s: default/web (Cannot evict pod"), "{text}");

    let steps = Arc::new(Mutex::new(Vec::new()));
    let (told, allow) = (Arc::clone(&steps), budgets.clone());
    let kubelet = world.kubelet();
    let drain = world.drain().on_step(move |step| {
        if let DrainStep::Blocked { error, .. } = step {
            assert!(error.status().unwrap().cause("DisruptionBudget").is_some());
        }
        told.lock().unwrap().push(step.to_string());
    });
    let (drained, ()) = tokio::join!(drain.run(), async {
        sleep(Duration::from_secs(7)).await;
        allow.status().patch("web", status(1)).await.unwrap();
    });
    assert_eq!(drained.unwrap().gone, keys(&["web"]));
    let steps = steps.lock().unwrap().clone();
    assert_eq!(steps.first().map(String::as_str), Some("evicting default/web"));
    assert_eq!(steps.iter().filter(|step| step.contains("cannot be evicted yet")).count(), 2, "{steps:?}");
    assert_eq!(steps.last().map(String::as_str), Some("default/web is gone, 0 left"));
    kubelet.abort();
}

#[tokio::test(start_paused = true)]
async fn dry_run_changes_nothing() {
    let world = World::new().await;
    world.pod("a", "worker", Some("ReplicaSet"), json!({})).await;
    let drained = world.drain().dry_run().run().await.unwrap();
    assert_eq!(drained.gone, keys(&["a"]));
    assert_eq!(world.names().await, ["a"]);
    assert!(world.pods.get("a").await.unwrap().metadata.deletion_timestamp.is_none());
    assert!(!world.is_unschedulable().await);
}

#[tokio::test(start_paused = true)]
async fn pod_that_is_replaced_counts_as_gone() {
    let world = World::new().await;
    world.pod("a", "worker", Some("StatefulSet"), json!({})).await;
    let drain = tokio::spawn(world.drain().run());
    // The controller creates another pod with the same name on the same node.
    while world.pods.get("a").await.unwrap().metadata.deletion_timestamp.is_none() {
        sleep(Duration::from_millis(50)).await;
    }
    world.pods.delete("a").grace_period(Duration::ZERO).await.unwrap();
    world.pod("a", "worker", Some("StatefulSet"), json!({})).await;
    assert_eq!(drain.await.unwrap().unwrap().gone, keys(&["a"]));
    assert!(world.pods.get("a").await.unwrap().metadata.deletion_timestamp.is_none());
}

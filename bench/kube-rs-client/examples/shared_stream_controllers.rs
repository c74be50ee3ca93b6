//! `examples/ported/shared_stream_controllers.rs`, written with kube-rs: the guide shows both.
//!
//! Runs on the cluster of the current kubeconfig: one controller labels pods, the other one annotates them; one watch serves both.

use std::{future::ready, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt as _, Result,
    api::{Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt as _,
        controller::{Action, Controller},
        reflector,
        wait::await_condition,
        watcher,
    },
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, time::timeout};

/// The number of events that a slow controller may lag behind the watch.
const BUFFER: usize = 256;

/// Sets metadata of a pod, unless it is set.
async fn mark(pod: Arc<Pod>, client: Arc<Client>, is_set: fn(&Pod) -> bool, metadata: Value) -> Result<Action> {
    if !is_set(&pod) {
        let pods: Api<Pod> = Api::namespaced(client.as_ref().clone(), &pod.namespace().unwrap_or_default());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(Action::await_change())
}

fn is_labelled(pod: &Pod) -> bool {
    pod.labels().contains_key("klient.dev/label")
}

fn is_annotated(pod: &Pod) -> bool {
    pod.annotations().contains_key("klient.dev/annotation")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = stopped.map(drop).shared();
    let (reader, writer) = reflector::store_shared(BUFFER);
    let subscribe = || writer.subscribe().ok_or_else(|| anyhow::anyhow!("the store is not shared"));
    let (first, second) = (subscribe()?, subscribe()?);
    let pods = watcher(Api::<Pod>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .reflect_shared(writer)
        .take_until(stopped.clone())
        .for_each(|_| ready(()));
    let context = Arc::new(client.clone());
    let labels = Controller::for_shared_stream(first, reader.clone())
        .graceful_shutdown_on(stopped.clone())
        .run(
            |pod, client| mark(pod, client, is_labelled, json!({"labels": {"klient.dev/label": "yes"}})),
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            context.clone(),
        )
        .for_each(|_| ready(()));
    let annotations = Controller::for_shared_stream(second, reader)
        .graceful_shutdown_on(stopped)
        .run(
            |pod, client| mark(pod, client, is_annotated, json!({"annotations": {"klient.dev/annotation": "yes"}})),
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            context,
        )
        .for_each(|_| ready(()));
    let exercise = async {
        let result = exercise(client).await;
        drop(stop);
        result
    };
    let ((), (), (), result) = tokio::join!(pods, labels, annotations, exercise);
    result
}

/// Creates what the controllers work on.
async fn exercise(client: Client) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
    let pod = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec}))?;
    pods.create(&PostParams::default(), &pod).await?;
    let is_marked = |pod: Option<&Pod>| pod.is_some_and(|pod| is_labelled(pod) && is_annotated(pod));
    timeout(Duration::from_secs(10), await_condition(pods, "web", is_marked)).await??;
    println!("the pod was labelled and annotated");
    Ok(())
}

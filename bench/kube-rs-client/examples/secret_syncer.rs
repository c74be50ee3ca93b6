//! `examples/ported/secret_syncer.rs`, written with kube-rs: the guide shows both.
//!
//! Runs on the cluster of the current kubeconfig: creates a config map, waits for its secret, deletes the config map, and ends.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Error, ResourceExt as _, Result,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        controller::{Action, Controller},
        finalizer::{self, Event, finalizer},
        wait::{Condition, await_condition, conditions::is_created},
        watcher,
    },
};
use tokio::{sync::oneshot, time::timeout};

const FINALIZER: &str = "configmap-secret-syncer.nullable.se/cleanup";

fn secret_name(map: &ConfigMap) -> String {
    format!("cmsyncer-{}", map.name_any())
}

async fn apply(secrets: &Api<Secret>, map: &ConfigMap) -> Result<Action> {
    let secret = Secret {
        metadata: ObjectMeta { name: Some(secret_name(map)), ..ObjectMeta::default() },
        string_data: map.data.clone(),
        data: map.binary_data.clone(),
        ..Secret::default()
    };
    let parameters = PatchParams::apply("secret-syncer").force();
    secrets.patch(&secret_name(map), &parameters, &Patch::Apply(&secret)).await?;
    Ok(Action::await_change())
}

async fn cleanup(secrets: &Api<Secret>, map: &ConfigMap) -> Result<Action> {
    match secrets.delete(&secret_name(map), &DeleteParams::default()).await {
        Err(Error::Api(status)) if status.is_not_found() => Ok(Action::await_change()),
        Err(error) => Err(error),
        Ok(_) => Ok(Action::await_change()),
    }
}

async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, Box<finalizer::Error<Error>>> {
    let namespace = map.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(client.as_ref().clone(), &namespace);
    let secrets: Api<Secret> = Api::namespaced(client.as_ref().clone(), &namespace);
    let handle = |event| async {
        match event {
            Event::Apply(map) => apply(&secrets, &map).await,
            Event::Cleanup(map) => cleanup(&secrets, &map).await,
        }
    };
    finalizer(&maps, FINALIZER, map, handle).await.map_err(Box::new)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let (stop, stopped) = oneshot::channel::<()>();
    let controller = Controller::new(maps, watcher::Config::default())
        .graceful_shutdown_on(async {
            let _ = stopped.await; // a sender that was dropped stops it as well
        })
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(client.clone()))
        .for_each(|result| async {
            if let Err(error) = result {
                eprintln!("reconcile failed: {error}");
            }
        });
    let exercise = async {
        let result = exercise(client).await;
        drop(stop);
        result
    };
    let ((), result) = tokio::join!(controller, exercise);
    result
}

/// Creates and deletes what the controller works on.
async fn exercise(client: Client) -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let secrets: Api<Secret> = Api::namespaced(client, "default");
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("menu".to_owned()), ..ObjectMeta::default() },
        data: Some([("soup".to_owned(), "4.50".to_owned())].into()),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await?;
    wait_for(&secrets, "cmsyncer-menu", is_created()).await?;
    println!("the secret was created");
    maps.delete("menu", &DeleteParams::default()).await?;
    wait_for(&maps, "menu", |map: Option<&ConfigMap>| map.is_none()).await?;
    wait_for(&secrets, "cmsyncer-menu", |secret: Option<&Secret>| secret.is_none()).await?;
    println!("both were deleted");
    Ok(())
}

/// Waits until the condition holds, for at most ten seconds.
async fn wait_for<K>(api: &Api<K>, name: &str, condition: impl Condition<K>) -> anyhow::Result<()>
where
    K: Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + kube::Resource + 'static,
{
    timeout(Duration::from_secs(10), await_condition(api.clone(), name, condition)).await??;
    Ok(())
}

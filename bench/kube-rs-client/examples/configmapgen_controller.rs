//! `examples/ported/configmapgen_controller.rs`, written with kube-rs: the guide shows both.
//!
//! Runs on the cluster of the current kubeconfig: creates a generator, waits for its config map, changes both, and ends.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt as _, Resource as _, ResourceExt as _,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        conditions::is_crd_established,
        controller::{Action, Controller},
        wait::{Condition, await_condition},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{sync::oneshot, time::timeout};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "nullable.se", version = "v1", kind = "ConfigMapGenerator", namespaced)]
struct GeneratorSpec {
    content: String,
}

async fn reconcile(generator: Arc<ConfigMapGenerator>, client: Arc<Client>) -> kube::Result<Action> {
    let namespace = generator.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(client.as_ref().clone(), &namespace);
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(generator.name_any()),
            owner_references: generator.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some([("content".to_owned(), generator.spec.content.clone())].into()),
        ..ConfigMap::default()
    };
    let parameters = PatchParams::apply("configmapgen").force();
    maps.patch(&generator.name_any(), &parameters, &Patch::Apply(&map)).await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &ConfigMapGenerator::crd()).await?;
    wait_for(&definitions, "configmapgenerators.nullable.se", is_crd_established()).await?;

    let generators: Api<ConfigMapGenerator> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let (stop, stopped) = oneshot::channel::<()>();
    let controller = Controller::new(generators, watcher::Config::default())
        .owns(maps, watcher::Config::default())
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

/// Creates and changes what the controller works on.
async fn exercise(client: Client) -> anyhow::Result<()> {
    let generators: Api<ConfigMapGenerator> = Api::namespaced(client.clone(), "default");
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let generator = ConfigMapGenerator::new("samurai", GeneratorSpec { content: "one".to_owned() });
    generators.create(&PostParams::default(), &generator).await?;
    for content in ["one", "two"] {
        let patch = Patch::Merge(json!({"spec": {"content": content}}));
        generators.patch("samurai", &PatchParams::default(), &patch).await?;
        let is_generated = move |map: Option<&ConfigMap>| {
            let data = map.and_then(|map| map.data.as_ref());
            data.and_then(|data| data.get("content")).is_some_and(|text| text == content)
        };
        if let Some(map) = wait_for(&maps, "samurai", is_generated).await? {
            println!("{} has {:?}, owned by {}", map.name_any(), map.data, map.owner_references()[0].name);
        }
    }
    // A config map that is deleted is created again.
    let first = maps.get("samurai").await?.uid();
    maps.delete("samurai", &DeleteParams::default()).await?;
    wait_for(&maps, "samurai", move |map: Option<&ConfigMap>| map.is_some_and(|map| map.uid() != first)).await?;
    println!("created again");
    Ok(())
}

/// Waits until the condition holds, for at most ten seconds.
async fn wait_for<K>(api: &Api<K>, name: &str, condition: impl Condition<K>) -> anyhow::Result<Option<K>>
where
    K: Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + kube::Resource + 'static,
{
    Ok(timeout(Duration::from_secs(10), await_condition(api.clone(), name, condition)).await??)
}

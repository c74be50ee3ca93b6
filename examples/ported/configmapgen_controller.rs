//! kube-rs's `configmapgen_controller`: a custom resource whose text is kept in a config map that it owns.
//!
//! Runs on the embedded server: creates a generator, waits for its config map, changes both, and ends.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, CustomResource, CustomResourceExt as _, Manager, Patch, ResourceExt,
    controller::{Outcome, Request, Retry, create_or_update},
    custom::install,
    owner::set_controller_ref,
    wait::{Until, wait_for},
};
use klient_apiserver::ApiServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "nullable.se", version = "v1", kind = "ConfigMapGenerator", namespaced)]
struct ConfigMapGeneratorSpec {
    content: String,
}

async fn reconcile(request: Request<ConfigMapGenerator>, client: Client) -> klient::Result<Outcome> {
    let Some(generator) = request.object()? else { return Ok(Outcome::Done) };
    let maps: Api<ConfigMap> = Api::namespaced(client, request.namespace());
    let mut map = ConfigMap::default();
    map.metadata.name = Some(request.name().to_owned());
    create_or_update(&maps, map, |map| {
        map.data = Some([("content".to_owned(), generator.spec.content.clone())].into());
        Ok(set_controller_ref(map, &*generator)?)
    })
    .await?;
    Ok(Outcome::RequeueAfter(Duration::from_secs(300)))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    install(&client, ConfigMapGenerator::crd()).await?;

    let generators: Api<ConfigMapGenerator> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let shared = client.clone();
    let controller = Controller::builder("configmapgen", generators)
        .owns(maps)
        .on_error(|_, _| Retry::After(Duration::from_secs(1)))
        .reconcile(move |request| reconcile(request, shared.clone()));
    let manager = Manager::builder().controller(controller).build().await?;
    manager
        .run_until(async move {
            if let Err(error) = exercise(client).await {
                println!("failed: {error:#}");
                std::process::exit(1);
            }
        })
        .await?;
    Ok(())
}

/// Creates and changes what the controller works on.
async fn exercise(client: Client) -> klient::Result<()> {
    let generators: Api<ConfigMapGenerator> = Api::namespaced(client.clone(), "default");
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let spec = ConfigMapGeneratorSpec { content: "one".to_owned() };
    generators.create(&ConfigMapGenerator::new("samurai", spec)).await?;
    for content in ["one", "two"] {
        generators.patch("samurai", Patch::merge(json!({"spec": {"content": content}}))).await?;
        let is_generated = Until::is(move |map: &ConfigMap| {
            map.data.as_ref().and_then(|data| data.get("content")).is_some_and(|text| text == content)
        });
        let map = wait_for(&maps, "samurai", &is_generated, Duration::from_secs(10)).await?;
        if let Some(map) = map {
            println!("{} has {:?}, owned by {}", map.name(), map.data, map.owner_references()[0].name);
        }
    }
    // A config map that is deleted is created again.
    maps.delete("samurai").await?;
    wait_for(&maps, "samurai", &Until::exists(), Duration::from_secs(10)).await?;
    println!("created again");
    Ok(())
}

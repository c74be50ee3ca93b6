//! kube-rs's `configmapgen_controller`: a custom resource whose text is kept in a config map that it owns.
//!
//! Runs on the embedded server: creates a generator, waits for its config map, changes both, and ends.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Apply, Client, Controller, CustomResource, CustomResourceExt as _, Manager, ResourceExt,
    controller::{Outcome, Request, Retry},
    custom::install,
    owner::controller_owner_ref,
    wait::{Until, wait_for},
};
use klient_apiserver::ApiServer;
use klient_apply::core::v1::ConfigMapApply;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Apply, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "nullable.se", version = "v1", kind = "ConfigMapGenerator", namespaced)]
struct ConfigMapGeneratorSpec {
    content: String,
}

async fn reconcile(request: Request<ConfigMapGenerator>, client: Client) -> klient::Result<Outcome> {
    let Some(generator) = request.object()? else { return Ok(Outcome::Done) };
    let maps: Api<ConfigMap> = Api::namespaced(client, request.namespace());
    let map = ConfigMapApply::new(request.name(), request.namespace())
        .owner(&controller_owner_ref(&*generator)?)
        .data([("content", &generator.spec.content)]);
    maps.apply(&map).manager("configmapgen").force().await?;
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
    for content in ["one", "two"] {
        let samurai = ConfigMapGeneratorApply::new("samurai", "default").spec(|spec| spec.content(content));
        generators.apply(&samurai).manager("exercise").await?;
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

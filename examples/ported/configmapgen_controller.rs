//! kube-rs's `configmapgen_controller`: a custom resource whose text is kept in a config map that it owns.
//!
//! Runs on the embedded server: creates a generator, waits for its config map, changes both, and ends.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use k8s_openapi::{
    NamespaceResourceScope, api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient::{
    Api, Client, Controller, Manager, Patch, ResourceExt,
    controller::{Outcome, Request, Retry, create_or_update},
    owner::set_controller_ref,
    wait::{Until, wait_for},
};
use klient_apiserver::ApiServer;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ConfigMapGenerator {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Spec {
    content: String,
}

impl k8s_openapi::Resource for ConfigMapGenerator {
    const API_VERSION: &'static str = "nullable.se/v1";
    const GROUP: &'static str = "nullable.se";
    const KIND: &'static str = "ConfigMapGenerator";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "configmapgenerators";
    type Scope = NamespaceResourceScope;
}

impl k8s_openapi::Metadata for ConfigMapGenerator {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
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
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    definitions.create(&definition()?).await?;
    let established = Until::condition("Established", "True");
    wait_for(&definitions, "configmapgenerators.nullable.se", &established, Duration::from_secs(10)).await?;

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
    let metadata = ObjectMeta { name: Some("samurai".to_owned()), ..ObjectMeta::default() };
    let spec = Spec { content: "one".to_owned() };
    generators.create(&ConfigMapGenerator { metadata, spec }).await?;
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

fn definition() -> serde_json::Result<CustomResourceDefinition> {
    let content = json!({"type": "object", "properties": {"content": {"type": "string"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": content}}});
    serde_json::from_value(json!({
        "metadata": {"name": "configmapgenerators.nullable.se"},
        "spec": {
            "group": "nullable.se",
            "scope": "Namespaced",
            "names": {"plural": "configmapgenerators", "kind": "ConfigMapGenerator"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    }))
}

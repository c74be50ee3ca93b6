//! kube-rs's `secret_syncer`: a copy of each config map as a secret, deleted by a finalizer together with the config map.
//!
//! Runs on the embedded server: creates a config map, waits for its secret, deletes the config map, and ends.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use klient::{
    Api, Client, Controller, Error, Manager, ResourceExt, Result,
    controller::{Outcome, Request, create_or_update},
    finalizer::Finalizer,
    wait::{Until, wait_for},
};
use klient_apiserver::ApiServer;
use serde_json::json;

fn secret_name(map: &str) -> String {
    format!("cmsyncer-{map}")
}

async fn apply(secrets: &Api<Secret>, map: ConfigMap) -> Result<()> {
    let mut secret = Secret::default();
    secret.metadata.name = Some(secret_name(map.name()));
    create_or_update(secrets, secret, |secret| {
        secret.string_data = map.data.clone();
        secret.data = map.binary_data.clone();
        Ok(())
    })
    .await?;
    Ok(())
}

async fn cleanup(secrets: &Api<Secret>, map: ConfigMap) -> Result<()> {
    match secrets.delete(&secret_name(map.name())).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

async fn reconcile(request: Request<ConfigMap>, client: Client) -> Result<Outcome> {
    let Some(map) = request.object()? else { return Ok(Outcome::Done) };
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), request.namespace());
    let secrets: Api<Secret> = Api::namespaced(client, request.namespace());
    let finalizer = Finalizer::new("configmap-secret-syncer.nullable.se/cleanup")?;
    finalizer.run(&maps, &map, |map| apply(&secrets, map), |map| cleanup(&secrets, map)).await?;
    Ok(Outcome::Done)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let (maps, shared) = (Api::<ConfigMap>::namespaced(client.clone(), "default"), client.clone());
    let controller =
        Controller::builder("secret-syncer", maps).reconcile(move |request| reconcile(request, shared.clone()));
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

/// Creates and deletes what the controller works on.
async fn exercise(client: Client) -> Result<(), Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let secrets: Api<Secret> = Api::namespaced(client, "default");
    let mut map = ConfigMap::default();
    map.metadata.name = Some("menu".to_owned());
    map.data = serde_json::from_value(json!({"soup": "4.50"})).ok();
    maps.create(&map).await?;
    wait_for(&secrets, "cmsyncer-menu", &Until::exists(), Duration::from_secs(10)).await?;
    println!("the secret was created");
    maps.delete("menu").await?;
    wait_for(&maps, "menu", &Until::absent(), Duration::from_secs(10)).await?;
    wait_for(&secrets, "cmsyncer-menu", &Until::absent(), Duration::from_secs(10)).await?;
    println!("both were deleted");
    Ok(())
}

//! A local, current copy of a kind: handlers, an index, reads after own writes, and a watch that breaks.
//!
//! On the embedded server; with `Client::infer()` instead it would be any cluster.

#![allow(clippy::print_stdout)]

use std::error::Error;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, InformerFactory, ObjectKey, Patch,
    informer::{HandlerFuncs, IndexFunc},
};
use klient_apiserver::ApiServer;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for (name, team) in [("menu", "kitchen"), ("prices", "bar"), ("tables", "kitchen")] {
        let map = serde_json::from_value(json!({"metadata": {"name": name, "labels": {"team": team}}}))?;
        maps.create(&map).await?;
    }

    // One watch, shared by everyone in the process who asks for the same objects.
    let factory = InformerFactory::new(client).namespace("default");
    let informer = factory.core_v1().config_maps();
    let by_team = informer.add_index("team", IndexFunc::label("team"))?;
    let registration = informer.add_handler(
        HandlerFuncs::new()
            .on_add(|map, in_initial_list| println!("added {} (first list: {in_initial_list})", map.key()))
            .on_update(|_, map| println!("changed {} to {}", map.key(), map.resource_version()))
            .on_delete(|map| println!("deleted {}", map.object().key())),
    );
    factory.start();
    registration.wait_for_sync().await?;
    println!("the kitchen has {:?}", by_team.keys("kitchen"));

    // The cache shows a write a moment after the write.
    let menu = maps.patch("menu", Patch::merge(json!({"data": {"today": "soup"}}))).await?;
    informer.wait_for_write(&menu).await?;
    let cached = informer.lister().get(&ObjectKey::namespaced("default", "menu")).ok_or("not in the cache")?;
    println!("today there is {:?}", cached.decode()?.data.as_ref().and_then(|data| data.get("today")));

    // All watches break. Changes during the gap are not lost.
    server.end_watches();
    maps.delete("prices").await?;
    let last = maps.create(&serde_json::from_value(json!({"metadata": {"name": "wine"}}))?).await?;
    informer.wait_for_write(&last).await?;
    println!("the cache has {:?}", informer.lister().list().keys());
    factory.shutdown().await;
    println!("{:?}", informer.status().relists);
    Ok(())
}

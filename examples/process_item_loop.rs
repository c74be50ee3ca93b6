//! A controller as users of client-go write it: handlers add keys to a queue, workers process them, a lister reads the cache.
//!
//! Everything that a `Controller` does is written out here. On the embedded server; with `Client::infer()` it would run on any cluster.

#![allow(clippy::print_stdout)]

use std::{collections::BTreeMap, error::Error};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, InformerFactory, Lister, ObjectKey, Patch, ResourceExt, WorkQueue, informer::HandlerFuncs,
    workqueue::QueueOptions,
};
use klient_apiserver::ApiServer;
use serde_json::json;
use tokio::task::JoinSet;

/// Labels each config map with how many entries it has.
async fn sync(maps: &Api<ConfigMap>, lister: &Lister<ConfigMap>, key: &ObjectKey) -> Result<(), klient::Error> {
    let Some(map) = lister.get(key) else {
        println!("{key} was deleted");
        return Ok(());
    };
    let map = map.decode()?;
    let entries = map.data.as_ref().map_or(0, BTreeMap::len).to_string();
    if map.label("entries") == Some(&entries) {
        return Ok(());
    }
    maps.patch(key.name(), Patch::merge(json!({"metadata": {"labels": {"entries": entries}}}))).await?;
    println!("{key} has {entries} entries");
    Ok(())
}

/// Processes keys until the queue is shut down. A failed key is retried with growing delays.
async fn process_items(queue: WorkQueue<ObjectKey>, maps: Api<ConfigMap>, lister: Lister<ConfigMap>) {
    while let Some(item) = queue.get().await {
        match sync(&maps, &lister, item.key()).await {
            Ok(()) => item.forget(),
            Err(error) => {
                println!("{} failed {} times: {error}", item.key(), item.failures() + 1);
                item.retry();
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let informer = InformerFactory::new(client).namespace("default").core_v1().config_maps();

    let queue = WorkQueue::with_options(QueueOptions::default().name("maps"));
    let (added, updated, deleted) = (queue.clone(), queue.clone(), queue.clone());
    let registration = informer.add_handler(
        HandlerFuncs::new()
            .on_add(move |map, _| added.add(map.key().clone()))
            .on_update(move |_, map| updated.add(map.key().clone()))
            .on_delete(move |map| deleted.add(map.object().key().clone())),
    );
    informer.start();
    registration.wait_for_sync().await?;

    let mut workers = JoinSet::new();
    for _ in 0..2 {
        workers.spawn(process_items(queue.clone(), maps.clone(), informer.lister()));
    }

    // Two writes fail, and the queue retries their keys.
    let patches = http::Method::PATCH;
    server.inject(klient_apiserver::Fault::internal_error().on_method(patches).times(2));
    for (name, data) in [("menu", json!({"soup": "4.50", "cake": "3.20"})), ("tables", json!({"terrace": "12"}))] {
        let map = serde_json::from_value(json!({"metadata": {"name": name}, "data": data}))?;
        maps.create(&map).await?;
    }
    for name in ["menu", "tables"] {
        let labelled = klient::wait::Until::is(|map: &ConfigMap| map.metadata.labels.is_some());
        klient::wait::wait_for(&maps, name, &labelled, std::time::Duration::from_secs(10)).await?;
    }

    queue.shut_down_and_drain().await;
    while workers.join_next().await.is_some() {}
    informer.stop().await;
    println!("{:?}", queue.stats());
    Ok(())
}

//! Watches config maps, makes three changes, and receives each of them.
//!
//! Needs a cluster: the one of your kubeconfig, or the one that it runs in.
//!
//! ```text
//! cargo run -p klient-examples --example watch
//! ```

#![allow(clippy::print_stdout)]

use anyhow::Context as _;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use klient::{Api, Client, Patch, WatchEvent};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::infer()?);
    // A list, and then a watch after its version: no change is lost in between.
    let selector = format!("metadata.name={NAME}");
    let list = maps.list().fields(&selector).await?;
    println!("{} config maps are called {NAME} so far", list.items.len());
    // Reconnects by itself.
    let mut watch = maps.watch().after(list.resource_version()).fields(&selector).retrying()?;

    let changes = async {
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
        maps.create(&ConfigMap { metadata, ..ConfigMap::default() }).await?;
        maps.patch(NAME, Patch::merge(json!({"data": {"colour": "blue"}}))).await?;
        maps.delete(NAME).await
    };
    let events = async {
        loop {
            let event = watch.next().await.context("the watch has ended")??;
            if let Some(map) = event.object() {
                println!("{} {:?}", event.type_name(), map.data.clone().unwrap_or_default());
            }
            if matches!(event, WatchEvent::Deleted(_)) {
                return anyhow::Ok(());
            }
        }
    };
    let (changed, seen) = tokio::join!(changes, events);
    changed?;
    seen
}

const NAME: &str = "demo-watch";

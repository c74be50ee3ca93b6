//! Watches config maps, makes three changes, and sees each of them.
//!
//! Needs a cluster: the one of your kubeconfig, or the one that it runs in.
//!
//! ```text
//! cargo run -p klient-examples --example watch
//! ```

#![allow(clippy::print_stdout)]

use anyhow::Context as _;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use klient::{Api, Client, Patch, WatchEvent, client::RetryWatch, options::WatchOptions};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::infer()?);
    // What is there now, and then every change since: nothing is lost in between.
    let selector = format!("metadata.name={NAME}");
    let list = maps.list().fields(&selector).await?;
    println!("{} config maps are called {NAME} so far", list.items.len());
    // Goes on by itself when its connection breaks.
    let options = WatchOptions::after(list.resource_version()).fields(&selector);
    let mut watch = RetryWatch::new(maps.clone(), options)?;

    let changes = async {
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
        maps.create(&ConfigMap { metadata, ..ConfigMap::default() }).await?;
        let patch = Patch::merge(json!({"data": {"colour": "blue"}}));
        maps.patch(NAME, patch.clone()).await?;
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

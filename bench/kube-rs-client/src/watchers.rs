//! Stores that `watcher` fills, by lists and by initial events, across an ended watch, a broken one and an expired
//! one.

use std::{collections::BTreeMap, fmt::Debug, hash::Hash};

use anyhow::{Result, ensure};
use futures_util::StreamExt as _;
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt as _,
        reflector::{self, Store},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{ask, eventually, make};

pub(crate) async fn check(client: &Client) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for index in 0..20 {
        make(&maps, &format!("kube-{index}")).await?;
    }
    let listed = follow(maps.clone(), watcher::Config::default().labels("of=kube").page_size(6), ());
    let streamed = follow(maps.clone(), watcher::Config::default().labels("of=kube").streaming_lists(), ());
    for store in [&listed, &streamed] {
        store.wait_until_ready().await?;
        ensure!(store.len() == 20, "{} objects", store.len());
    }
    for (round, fault) in ["none", "end-watches", "cut-watches", "forget"].into_iter().enumerate() {
        if fault != "none" {
            ask(fault)?;
        }
        change(&maps, round).await?;
        if fault == "forget" {
            ask("remember")?;
        }
        for store in [&listed, &streamed] {
            eventually(fault, async || {
                let params = ListParams::default().labels("of=kube");
                let there = versions(maps.list(&params).await?.items.iter());
                Ok((versions(store.state().iter().map(AsRef::as_ref)) == there).then_some(()))
            })
            .await?;
        }
    }
    custom(client).await
}

/// Creates one object, changes others, removes the label of one and deletes one.
async fn change(maps: &Api<ConfigMap>, round: usize) -> Result<()> {
    make(maps, &format!("kube-new-{round}")).await?;
    let params = PatchParams::default();
    let data = json!({"data": {"round": round.to_string()}});
    maps.patch("kube-10", &params, &Patch::Merge(&data)).await?;
    maps.patch("kube-11", &params, &Patch::Strategic(&data)).await?;
    let unlabelled = json!({"metadata": {"labels": {"of": null}}});
    maps.patch(&format!("kube-{round}"), &params, &Patch::Merge(&unlabelled)).await?;
    maps.delete(&format!("kube-{}", 12 + round), &DeleteParams::default()).await?;
    Ok(())
}

/// Checks a kind that is defined at run time, and for which this program has no type.
async fn custom(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = serde_json::from_value(json!({
        "metadata": {"name": "gadgets.kube.klient.invalid"},
        "spec": {
            "group": "kube.klient.invalid", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    }))?;
    definitions.create(&PostParams::default(), &definition).await?;
    let established = kube::runtime::conditions::is_crd_established();
    kube::runtime::wait::await_condition(definitions, "gadgets.kube.klient.invalid", established).await?;
    let kind = GroupVersionKind::gvk("kube.klient.invalid", "v1", "Gadget");
    let (resource, _) = kube::discovery::pinned_kind(client, &kind).await?;
    let gadgets: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let store = follow(gadgets.clone(), watcher::Config::default(), resource.clone());
    store.wait_until_ready().await?;
    let gadget = DynamicObject::new("one", &resource).data(json!({"spec": {"size": 1}}));
    gadgets.create(&PostParams::default(), &gadget).await?;
    let seen = |resource: &ApiResource| {
        let reference = reflector::ObjectRef::new_with("one", resource.clone()).within("default");
        store.get(&reference)
    };
    let found = eventually("the object is seen", async || Ok(seen(&resource))).await?;
    ensure!(found.data["spec"]["size"] == 1, "{found:?}");
    gadgets.delete("one", &DeleteParams::default()).await?;
    eventually("the deletion is seen", async || Ok(seen(&resource).is_none().then_some(()))).await
}

/// Returns a store that a watcher keeps current while the program runs.
fn follow<K>(api: Api<K>, config: watcher::Config, kind: K::DynamicType) -> Store<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + Hash + Send + Sync + Unpin,
{
    let writer = reflector::store::Writer::new(kind);
    let store = writer.as_reader();
    let mut events = reflector::reflector(writer, watcher(api, config)).default_backoff().boxed();
    tokio::spawn(async move { while events.next().await.is_some() {} });
    store
}

fn versions<'a>(maps: impl Iterator<Item = &'a ConfigMap>) -> BTreeMap<String, Option<String>> {
    maps.map(|map| (map.name_any(), map.resource_version())).collect()
}

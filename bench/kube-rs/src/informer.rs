//! Jobs of reflectors and stores.

use std::{fmt::Debug, hash::Hash};

use anyhow::{Context as _, Result};
use bench_jobs::{
    Answer, Arguments, CUSTOM_GROUP, CUSTOM_KIND, CUSTOM_PLURAL, CUSTOM_VERSION, FLEET, Job, Mark, Measured,
    forget_peak, peak, replay_changes, replay_expiry,
};
use futures_util::{Stream, StreamExt as _};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{WatchStreamExt as _, reflector, watcher},
};
use serde::de::DeserializeOwned;

/// Fills a store. Objects are always decoded.
pub(crate) async fn sync(mark: Mark, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    store(mark, fleet, (), watcher::Config::default(), Answer::add_pod).await
}

/// The same, by a watch with initial events.
pub(crate) async fn sync_watch_list(fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    store(Mark::now()?, fleet, (), watcher::Config::default().streaming_lists(), Answer::add_pod).await
}

/// The same for custom resources, with the API for kinds known only at run time.
pub(crate) async fn sync_custom(client: &Client) -> Result<(Measured, Answer)> {
    let kind = GroupVersionKind::gvk(CUSTOM_GROUP, CUSTOM_VERSION, CUSTOM_KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, CUSTOM_PLURAL);
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), FLEET, &resource);
    let add = |answer: &mut Answer, rollout: &DynamicObject| {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        answer.add_custom(&text(&rollout.metadata.namespace), &text(&rollout.metadata.name), &rollout.data);
    };
    store(Mark::now()?, api, resource, watcher::Config::default(), add).await
}

async fn store<K>(
    mark: Mark,
    api: Api<K>,
    kind: K::DynamicType,
    config: watcher::Config,
    add: fn(&mut Answer, &K),
) -> Result<(Measured, Answer)>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + Hash + Send + Sync + Unpin,
{
    let writer = reflector::store::Writer::new(kind);
    let store = writer.as_reader();
    let mut events = std::pin::pin!(reflector(writer, watched(api, config)).default_backoff());
    while !matches!(events.next().await.context("the watch has ended")??, watcher::Event::InitDone) {}
    let mut measured = mark.measured()?;
    measured.rest().await?;
    let mut answer = Answer::default();
    store.state().iter().for_each(|object| add(&mut answer, object));
    Ok((measured, answer))
}

/// Removes the managed fields, as users do to save memory.
fn watched<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = watcher::Result<watcher::Event<K>>>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, config).modify(|object| object.meta_mut().managed_fields = None)
}

/// Measures changes that arrive after the store is complete.
pub(crate) async fn events(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let (_store, writer) = reflector::store();
    let mut events = std::pin::pin!(reflector(writer, watched(fleet, watcher::Config::default())).default_backoff());
    while !matches!(events.next().await.context("the watch has ended")??, watcher::Event::InitDone) {}
    let mut answer = Answer::default();
    let mark = Mark::now()?;
    replay_changes(arguments)?;
    while answer.count() < arguments.count {
        let watcher::Event::Apply(pod) = events.next().await.context("the watch has ended")?? else { continue };
        match arguments.job {
            Job::EventsTyped => answer.add_pod(&pod),
            _ => add_key(&mut answer, &pod.metadata),
        }
    }
    Ok((mark.measured()?, answer))
}

/// Measures a relist, after the server has ended the watch and rejected its resumption.
pub(crate) async fn expire(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let (store, writer) = reflector::store();
    let mut events = std::pin::pin!(reflector(writer, watched(fleet, watcher::Config::default())).default_backoff());
    while !matches!(events.next().await.context("the watch has ended")??, watcher::Event::InitDone) {}
    let mut rest = Mark::now()?.measured()?;
    rest.rest().await?;
    forget_peak()?;
    let mark = Mark::now()?;
    replay_expiry(arguments)?;
    // kube reports the rejection as an error, and lists afterwards.
    while !matches!(events.next().await.context("the watch has ended")?, Ok(watcher::Event::InitDone)) {}
    let mut measured = mark.measured()?;
    measured.peak_rss_bytes = i64::try_from(peak()?)?;
    (measured.rss_bytes, measured.heap_bytes) = (rest.rss_bytes, rest.heap_bytes);
    let mut answer = Answer::default();
    store.state().iter().for_each(|pod| answer.add_pod(pod));
    Ok((measured, answer))
}

fn add_key(answer: &mut Answer, metadata: &ObjectMeta) {
    let text = |field: &Option<String>| field.as_deref().unwrap_or_default().to_owned();
    answer.add_key(&text(&metadata.namespace), &text(&metadata.name));
}

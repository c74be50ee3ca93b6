//! Custom resources, which are JSON, with the API for kinds known only at run time.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Result, ensure};
use bench_jobs::{Answer, CUSTOM_GROUP, CUSTOM_KIND, CUSTOM_PLURAL, CUSTOM_VERSION, FLEET, Mark, Measured};
use klient::{Client, client::DynamicClient};
use klient::{SharedInformer, informer::Event};
use klient::{
    object::DynamicObject,
    resource::{ApiResource, GroupVersionKind, Scope},
};

/// Fills a cache from the start, with a handler.
pub(crate) async fn sync(client: &Client) -> Result<(Measured, Answer)> {
    let kind = GroupVersionKind::new(CUSTOM_GROUP, CUSTOM_VERSION, CUSTOM_KIND);
    let resource = ApiResource::new(kind, CUSTOM_PLURAL, Scope::Namespaced);
    let api = DynamicClient::new(client.clone()).in_namespace(&resource, FLEET);
    let told = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&told);
    let mark = Mark::now()?;
    let informer = SharedInformer::new(api);
    let registration = informer.add_handler(move |_: &Event<DynamicObject>| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    informer.start();
    registration.wait_for_sync().await?;
    let mut measured = mark.measured()?;
    measured.rest().await?;
    let mut answer = Answer::default();
    for rollout in &informer.lister().list() {
        let (key, rollout) = (rollout.key(), rollout.decode()?);
        answer.add_custom(key.namespace().unwrap_or_default(), key.name(), &rollout.data);
    }
    ensure!(told.load(Ordering::Relaxed) == answer.count(), "the handler was not told of everything");
    Ok((measured, answer))
}

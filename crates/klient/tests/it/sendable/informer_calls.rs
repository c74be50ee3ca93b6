//! The async functions of informers.

use std::{pin::Pin, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Error, InformerFactory, ObjectKey, SharedInformer,
    controller::{Outcome, Reconciler, Request},
    informer::{CachedObject, DeltaQueue, Reflector, Registration, ThreadSafeStore},
    object::ResourceVersion,
};

/// The values that the calls below borrow.
struct Borrowed {
    informer: SharedInformer<ConfigMap>,
    factory: InformerFactory,
    registration: Registration<ConfigMap>,
    queue: DeltaQueue<CachedObject<ConfigMap>>,
    version: ResourceVersion,
    key: ObjectKey,
    maps: Api<ConfigMap>,
    store: ThreadSafeStore<CachedObject<ConfigMap>>,
}

sendable! {
    informer(borrowed) {
        borrowed.informer.wait_for_sync().await?;
        borrowed.informer.wait_until_seen(&borrowed.version).await?;
        borrowed.informer.wait_until_deleted(&borrowed.key, Some("uid")).await?;
        borrowed.informer.run_until(borrowed.informer.stop()).await;
        borrowed.informer.stop().await;
    }
    events(borrowed) {
        let mut events = borrowed.informer.events();
        while let Some(event) = events.next().await {
            borrowed.informer.wait_until_seen(&event.object().resource_version()).await?;
        }
        borrowed.registration.wait_for_sync().await?;
    }
    reflector_run(borrowed) {
        let reflector = Reflector::new(borrowed.maps.clone(), borrowed.store.clone());
        tokio::select! {
            never = reflector.run() => match never {},
            synced = borrowed.informer.wait_for_sync() => synced?,
        }
    }
    factory(borrowed) {
        borrowed.factory.wait_for_sync().await?;
        borrowed.factory.shutdown().await;
    }
    delta_queue(borrowed) {
        borrowed.queue.ready().await;
        while let Some(deltas) = borrowed.queue.pop().await {
            drop(deltas);
            borrowed.informer.wait_for_sync().await?;
        }
        while borrowed.queue.pop_batch().await.is_some() {}
    }
}

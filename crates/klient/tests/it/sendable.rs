//! Every public async function can be called with borrowed arguments inside a reconciler, inside `tokio::spawn`, and inside a
//! boxed `Send` future.
//!
//! These functions must compile. `sendable!` lists each call once, and checks it in all three places.

use std::{pin::Pin, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, Error, Manager, ObjectKey, WorkQueue,
    controller::{Outcome, Reconciler, Request, create_or_update},
    election::{LeaderElector, LeaderLock, LeaderRecord, Leadership, LeaseLock},
    events::{EventOptions, EventRecorder, EventSink},
    finalizer::Finalizer,
    manager::Stop,
    retry::{Backoff, retry_on_conflict, retry_on_error},
    wait::{Until, wait_for},
};
use klient_apiserver::ApiServer;

use crate::support::embedded::client;

/// The values that the calls below borrow.
struct Borrowed {
    maps: Api<ConfigMap>,
    map: ConfigMap,
    name: String,
    finalizer: Finalizer,
    until: Until<ConfigMap>,
    controller: Controller<ConfigMap>,
    queue: WorkQueue<String>,
    elector: LeaderElector<LeaseLock>,
    lock: LeaseLock,
    leadership: Leadership,
    record: LeaderRecord,
    shards: klient::shard::Shards,
    fleet: klient::cluster::Fleet,
}

impl Borrowed {
    async fn changed(&self, map: &ConfigMap) -> Result<ConfigMap, Error> {
        self.maps.update(map).await
    }

    async fn stopped(&self) {
        self.leadership.ended().await;
    }

    fn sink(&self) -> EventSink {
        EventRecorder::new(self.maps.client().clone(), EventOptions::new(self.name.as_str())).1
    }

    async fn manager(&self) -> Result<Manager, Error> {
        Manager::builder().controller(self.controller.clone()).build().await
    }
}

/// Checks that a call compiles in a reconciler, in a spawned task and in a boxed `Send` future.
macro_rules! sendable {
    ($($function:ident($borrowed:ident) $call:block)*) => {$(
        #[expect(dead_code, reason = "it must compile")]
        fn $function(owned: Arc<Borrowed>) {
            fn boxed($borrowed: &Borrowed) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
                Box::pin(async move {
                    $call
                    Ok(())
                })
            }

            struct InReconciler(Arc<Borrowed>);

            impl Reconciler<ConfigMap> for InReconciler {
                type Error = Error;

                async fn reconcile(&self, _request: Request<ConfigMap>) -> Result<Outcome, Error> {
                    let $borrowed = &*self.0;
                    $call
                    Ok(Outcome::Done)
                }
            }

            let spawned = Arc::clone(&owned);
            tokio::spawn(async move {
                let $borrowed = &*spawned;
                $call
                Ok::<_, Error>(())
            });
            drop(boxed(&owned));
            drop(InReconciler(owned));
        }
    )*};
}

// Below the macro, which they use.
mod client_calls;
mod informer_calls;

sendable! {
    shards(borrowed) {
        borrowed.shards.wait_until(|status| status.group == borrowed.name).await;
    }
    fleet(borrowed) {
        borrowed.fleet.wait_until(|status| status.contains_key(&borrowed.name)).await;
        borrowed.fleet.run_until(borrowed.stopped()).await;
    }
    follow_definitions(borrowed) {
        let client = borrowed.maps.client().clone();
        borrowed.controller.follow_definitions(client, |_| true, |_, _| {}, borrowed.stopped()).await?;
    }
    retry_on_conflict_with_shared_borrows(borrowed) {
        retry_on_conflict(Backoff::default(), async || {
            let map = borrowed.maps.get(&borrowed.name).await?;
            borrowed.changed(&map).await
        })
        .await?;
    }
    retry_on_conflict_with_changed_captures(borrowed) {
        let mut attempts = 0;
        retry_on_conflict(Backoff::default(), || {
            attempts += 1;
            async move { borrowed.changed(&borrowed.map).await }
        })
        .await?;
        assert!(attempts > 0);
    }
    retry_on_error_with_borrows(borrowed) {
        let name = borrowed.name.as_str();
        let retriable = |error: &Error| error.is_timeout() && !name.is_empty();
        retry_on_error(Backoff::growing(), retriable, async || borrowed.changed(&borrowed.map).await).await?;
    }
    finalizer_run(borrowed) {
        let apply = |map: ConfigMap| async move { borrowed.changed(&map).await };
        let cleanup = |map: ConfigMap| async move { borrowed.changed(&map).await.map(drop) };
        borrowed.finalizer.run(&borrowed.maps, &borrowed.map, apply, cleanup).await?;
    }
    finalizer_run_with_async_closures(borrowed) {
        let apply = async |map: ConfigMap| borrowed.changed(&map).await;
        let cleanup = async |map: ConfigMap| borrowed.changed(&map).await.map(drop);
        borrowed.finalizer.run(&borrowed.maps, &borrowed.map, apply, cleanup).await?;
    }
    finalizer_add(borrowed) {
        borrowed.finalizer.add(&borrowed.maps, &borrowed.map).await?;
    }
    finalizer_remove(borrowed) {
        borrowed.finalizer.remove(&borrowed.maps, &borrowed.map).await?;
    }
    wait_for_condition(borrowed) {
        wait_for(&borrowed.maps, &borrowed.name, &borrowed.until, Duration::from_secs(1)).await?;
    }
    create_or_update_object(borrowed) {
        let name = borrowed.name.as_str();
        let mut calls = 0;
        create_or_update(&borrowed.maps, borrowed.map.clone(), |map| {
            calls += 1;
            map.data.get_or_insert_default().insert(name.to_owned(), calls.to_string());
            Ok(())
        })
        .await?;
    }
    controller_run_until(borrowed) {
        borrowed.controller.run_until(borrowed.stopped()).await?;
    }
    controller_reconcile_once(borrowed) {
        let key = ObjectKey::namespaced("default", &borrowed.name);
        assert!(borrowed.controller.reconcile_once(key).await.is_ok());
    }
    manager_run(borrowed) {
        borrowed.manager().await?.run().await?;
    }
    manager_run_until(borrowed) {
        borrowed.manager().await?.run_until(borrowed.stopped()).await?;
    }
    queue_get(borrowed) {
        while let Some(item) = borrowed.queue.get().await {
            borrowed.stopped().await;
            item.forget();
        }
    }
    queue_drain(borrowed) {
        borrowed.queue.shut_down_and_drain().await;
    }
    elector_run(borrowed) {
        borrowed.elector.run(async |leadership| tokio::join!(leadership.ended(), borrowed.stopped())).await?;
    }
    elector_run_until(borrowed) {
        let work = |leadership: Leadership| async move { tokio::join!(leadership.ended(), borrowed.stopped()) };
        borrowed.elector.run_until(borrowed.stopped(), work).await?;
    }
    leader_changes_next(borrowed) {
        let mut changes = borrowed.elector.leader_changes();
        while changes.next().await.is_some() {}
    }
    leadership_ended(borrowed) {
        borrowed.leadership.ended().await;
    }
    lease_lock(borrowed) {
        let lease = match borrowed.lock.get().await? {
            Some(lease) => lease,
            None => borrowed.lock.create(&borrowed.record).await?,
        };
        borrowed.lock.update(&lease.version, &lease.record).await?;
    }
    event_sink_run(borrowed) {
        borrowed.sink().run().await;
    }
    event_sink_run_until(borrowed) {
        borrowed.sink().run_until(borrowed.stopped()).await;
    }
    shutdown_signal(borrowed) {
        tokio::select! {
            () = klient::shutdown::signal() => {}
            () = borrowed.stopped() => {}
        }
    }
    task_of_a_manager(borrowed) {
        let name = borrowed.name.clone();
        Manager::builder()
            .task(name, async |stop: Stop| {
                stop.requested().await;
                Ok::<_, Error>(())
            })
            .build()
            .await?
            .run()
            .await?;
    }
    pager_for_each(borrowed) {
        let pager = klient::client::Pager::new(borrowed.maps.clone(), Default::default());
        pager.for_each(async |map| borrowed.changed(&map).await.map(drop)).await?;
    }
}

/// A reconciler that calls the helpers that did not compile there before.
async fn reconcile(request: Request<ConfigMap>, client: Arc<Client>) -> Result<Outcome, Error> {
    let Some(map) = request.object()? else { return Ok(Outcome::Done) };
    let maps: Api<ConfigMap> = Api::namespaced(Client::clone(&client), request.namespace());
    let set = async |map: ConfigMap, value: &str| {
        retry_on_conflict(Backoff::default(), async || {
            let mut map = maps.get(map.metadata.name.as_deref().unwrap_or_default()).await?;
            map.data.get_or_insert_default().insert("state".to_owned(), value.to_owned());
            maps.update(&map).await
        })
        .await
    };
    let apply = async |map| set(map, "applied").await;
    let cleanup = async |map| set(map, "clean").await.map(drop);
    Finalizer::new("example.com/state")?.run(&maps, &*map, apply, cleanup).await?;
    Ok(Outcome::Done)
}

#[tokio::test(start_paused = true)]
async fn helpers_work_in_a_reconciler() {
    let server = ApiServer::start().await.unwrap();
    let client = client(&server);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut map = ConfigMap::default();
    map.metadata.name = Some("web".to_owned());
    maps.create(&map).await.unwrap();
    let controller = Controller::builder("maps", maps.clone()).reconcile_with(Arc::new(client), reconcile);
    let applied = Until::is(|map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["state"] == "applied"));
    let test = async {
        wait_for(&maps, "web", &applied, Duration::from_secs(60)).await.unwrap();
        maps.delete("web").await.unwrap();
        wait_for(&maps, "web", &Until::absent(), Duration::from_secs(60)).await.unwrap();
    };
    controller.run_until(test).await.unwrap();
}

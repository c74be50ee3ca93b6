//! Behaviour under bad input and shared duties, against the real server.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Controller, Manager, ObjectKey, Patch, SharedInformer,
    controller::{Outcome, Request},
    election::{ElectionOptions, LeaderElector, Leadership, LeaseLock},
    informer::{Event, Tombstone},
    metrics::Registry,
};
use serde_json::json;
use tokio::time::timeout;

use crate::cluster::{both_clients, client, namespace, or_skip};

const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn unreadable_object_keeps_its_state_until_it_is_deleted() {
    for (encoding, client) in or_skip!(both_clients()) {
        let namespace = namespace(&client, &format!("unreadable-{encoding}")).await;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        let map = serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"n": "good"}})).unwrap();
        maps.create(&map).await.unwrap();
        let informer = SharedInformer::builder(maps.clone())
            .transform(|map: &mut ConfigMap| {
                let bad = map.data.as_ref().is_some_and(|data| data.get("n").is_some_and(|value| value == "bad"));
                assert!(!bad, "a transform that cannot handle this object");
            })
            .build();
        let mut events = informer.events();
        informer.start();
        assert!(matches!(timeout(LIMIT, events.next()).await.unwrap(), Some(Event::Added { .. })));

        let bad = maps.patch("a", Patch::merge(json!({"data": {"n": "bad"}}))).await.unwrap();
        timeout(LIMIT, informer.wait_for_write(&bad)).await.unwrap().unwrap();
        let key = ObjectKey::namespaced(&namespace, "a");
        let cached = informer.lister().get(&key).unwrap().decode().unwrap();
        assert_eq!(cached.data.as_ref().unwrap()["n"], "good", "{encoding}");
        assert_eq!(informer.status().unreadable_keys, [key]);

        maps.delete("a").await.unwrap();
        let deleted = timeout(LIMIT, events.next()).await.unwrap();
        assert!(matches!(deleted, Some(Event::Deleted(Tombstone::LastKnown(_)))), "{encoding}: {deleted:?}");
        assert_eq!((informer.lister().len(), informer.status().unreadable), (0, 0));
        informer.stop().await;
    }
}

#[tokio::test]
async fn standby_has_caches_and_reconciles_after_the_leader_stops() {
    let client = or_skip!(client());
    let namespace = namespace(&client, "standby").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&map).await.unwrap();
    let mut managers = Vec::new();
    for identity in ["anna", "berta"] {
        let (sender, mut calls) = tokio::sync::mpsc::unbounded_channel();
        let informer = SharedInformer::new(maps.clone());
        let controller = Controller::builder(identity, informer.clone()).registry(Registry::new()).reconcile(
            move |request: Request<ConfigMap>| {
                let _ = sender.send(request.leadership().map(Leadership::token));
                async { Ok::<_, klient::Error>(Outcome::Done) }
            },
        );
        let lock = LeaseLock::new(client.clone(), &namespace, "lock");
        let options = ElectionOptions::default().registry(Registry::new());
        let elector = LeaderElector::new(lock, identity, options).unwrap();
        let manager = Manager::builder().elected_by(elector).controller(controller).build().await.unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
        let token = match identity {
            "anna" => timeout(LIMIT, calls.recv()).await.unwrap().flatten(),
            _ => None,
        };
        managers.push((stop, task, calls, informer, token));
    }
    let (_stop, _task, mut calls, standby, _) = managers.pop().unwrap();
    timeout(LIMIT, standby.wait_for_sync()).await.unwrap().unwrap();
    assert_eq!(standby.lister().list().len(), 1);
    assert!(calls.try_recv().is_err(), "a standby reconciles nothing");
    let (stop, task, _, _, first) = managers.pop().unwrap();
    drop(stop);
    task.await.unwrap().unwrap();
    let second = timeout(LIMIT, calls.recv()).await.unwrap().flatten();
    assert!(second > first && first.is_some(), "{first:?} {second:?}");
}

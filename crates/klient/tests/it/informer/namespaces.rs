//! Informers over many namespaces, and of referenced objects.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use klient::{
    Api, Client, InformerFactory, ObjectKey, Patch, SharedInformer,
    informer::{Event, IndexFunc, InformerState, NamespaceSet, References},
};
use klient_apiserver::Fault;
use serde_json::json;

use super::{World, within};

async fn create_namespace(client: &Client, name: &str, labels: serde_json::Value) {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap();
    Api::<Namespace>::cluster(client.clone()).create(&namespace).await.unwrap();
}

async fn create_map(client: &Client, namespace: &str, name: &str) {
    let map = json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"n": "0"}});
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    Api::<ConfigMap>::namespaced(client.clone(), namespace).create(&map).await.unwrap();
}

fn keys(informer: &SharedInformer<ConfigMap>) -> BTreeSet<String> {
    informer.lister().list().iter().map(|map| map.key().to_string()).collect()
}

/// Waits until the cache has exactly these objects.
async fn shows(informer: &SharedInformer<ConfigMap>, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|key| (*key).to_owned()).collect();
    let mut events = informer.events();
    let waiting = async {
        while keys(informer) != expected {
            events.next().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await;
    assert!(waited.is_ok(), "the cache has {:?}, expected {expected:?}", keys(informer));
}

#[tokio::test(start_paused = true)]
async fn informer_shows_the_namespaces_of_a_fixed_set() {
    let world = World::start().await;
    for namespace in ["a", "b", "c"] {
        create_namespace(&world.client, namespace, json!({})).await;
        create_map(&world.client, namespace, "web").await;
    }
    let set = NamespaceSet::of(["a", "b"]);
    let maps = InformerFactory::new(world.client.clone()).namespaces::<ConfigMap>(&set);
    let by_app = maps.add_index("app", IndexFunc::label("app")).unwrap();
    let mut events = maps.events();
    maps.start();
    within(maps.wait_for_sync()).await.unwrap();
    assert_eq!(keys(&maps), BTreeSet::from(["a/web".to_owned(), "b/web".to_owned()]));
    assert_eq!(by_app.get("web").len(), 2);
    for _ in 0..2 {
        let event = within(events.next()).await.unwrap();
        assert!(matches!(event, Event::Added { in_initial_list: true, .. }), "{event:?}");
    }
    assert_eq!((maps.status().state, maps.status().resource.as_str()), (InformerState::Synced, "configmaps"));
    // Writes to a namespace of the set are shown; a set may grow and shrink.
    let patched = Api::<ConfigMap>::namespaced(world.client.clone(), "b")
        .patch("web", Patch::merge(json!({"data": {"n": "1"}})))
        .await
        .unwrap();
    within(maps.wait_for_write(&patched)).await.unwrap();
    set.set(["b", "c"]);
    shows(&maps, &["b/web", "c/web"]).await;
    set.set(Vec::<String>::new());
    shows(&maps, &[]).await;
    maps.stop().await;
}

#[tokio::test(start_paused = true)]
async fn informer_follows_namespaces_that_match_a_selector() {
    let world = World::start().await;
    let tenants = NamespaceSet::selected(world.client.clone(), "tenant");
    let maps = InformerFactory::new(world.client.clone()).namespaces::<ConfigMap>(&tenants);
    maps.start();
    // A selector that no namespace matches is complete, too.
    within(maps.wait_for_sync()).await.unwrap();
    create_namespace(&world.client, "a", json!({"tenant": "1"})).await;
    create_namespace(&world.client, "other", json!({})).await;
    create_map(&world.client, "a", "web").await;
    create_map(&world.client, "other", "web").await;
    shows(&maps, &["a/web"]).await;
    // A label is added to a namespace, and removed from another one.
    let namespaces: Api<Namespace> = Api::cluster(world.client.clone());
    let label = |value: serde_json::Value| Patch::merge(json!({"metadata": {"labels": {"tenant": value}}}));
    namespaces.patch("other", label(json!("2"))).await.unwrap();
    shows(&maps, &["a/web", "other/web"]).await;
    namespaces.patch("a", label(json!(null))).await.unwrap();
    shows(&maps, &["other/web"]).await;
    assert_eq!(tenants.names(), BTreeSet::from(["other".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn one_denied_namespace_shows_in_the_status_of_all() {
    let world = World::start().await;
    for namespace in ["a", "b"] {
        create_namespace(&world.client, namespace, json!({})).await;
        create_map(&world.client, namespace, "web").await;
    }
    world
        .server
        .inject(Fault::respond(klient::status::Status::unauthorized("no access")).on_path("/api/v1/namespaces/b/"));
    let set = NamespaceSet::of(["a", "b"]);
    let maps = InformerFactory::new(world.client.clone()).namespaces::<ConfigMap>(&set);
    maps.start();
    within(maps.states().wait_for(|state| *state == InformerState::Denied)).await.unwrap();
    shows(&maps, &["a/web"]).await;
    assert!(!maps.has_synced());
    assert!(maps.status().last_error.unwrap().starts_with("namespace \"b\": "));
    world.server.clear_faults();
    within(maps.wait_for_sync()).await.unwrap();
    shows(&maps, &["a/web", "b/web"]).await;
    within(maps.states().wait_for(|state| *state == InformerState::Synced)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn references_watch_only_what_is_referred_to() {
    let world = World::start().await;
    for name in ["a", "b", "c"] {
        create_map(&world.client, "default", name).await;
    }
    let maps: References<ConfigMap> = References::new(world.client.clone());
    maps.informer().start();
    within(maps.informer().wait_for_sync()).await.unwrap();
    let (web, shop) = (ObjectKey::cluster("web"), ObjectKey::cluster("shop"));
    let key = |name: &str| ObjectKey::namespaced("default", name);
    maps.set(web.clone(), [key("a"), key("missing")]);
    maps.set(shop.clone(), [key("a"), key("b")]);
    shows(maps.informer(), &["default/a", "default/b"]).await;
    assert_eq!(maps.len(), 3);
    // The object is watched until its last owner is gone.
    maps.remove(&shop);
    shows(maps.informer(), &["default/a"]).await;
    create_map(&world.client, "default", "missing").await;
    shows(maps.informer(), &["default/a", "default/missing"]).await;
    maps.remove(&web);
    shows(maps.informer(), &[]).await;
    assert!(maps.is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_references_to_a_namespace_share_one_watch() {
    let world = World::start().await;
    let names: Vec<String> = (0..30).map(|number| format!("map-{number:02}")).collect();
    for name in &names {
        create_map(&world.client, "default", name).await;
    }
    let maps: References<ConfigMap> = References::new(world.client.clone());
    let informer = maps.informer().clone();
    let deleted = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&deleted);
    let _registration = informer.add_handler(move |event: &Event<ConfigMap>| {
        if matches!(event, Event::Deleted(_)) {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    informer.start();
    let owner = ObjectKey::cluster("web");
    let set = |range: std::ops::Range<usize>| {
        maps.set(owner.clone(), names[range].iter().map(|name| ObjectKey::namespaced("default", name)));
    };
    let expected =
        |range: std::ops::Range<usize>| names[range].iter().map(|name| format!("default/{name}")).collect::<Vec<_>>();
    for range in [0..10, 0..25, 5..28, 20..26] {
        set(range.clone());
        let expected = expected(range);
        shows(&informer, &expected.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    // Only objects that are not referred to any more were announced as deleted, whatever the watches were.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(deleted.load(std::sync::atomic::Ordering::Relaxed), 5 + 17);
    let status = informer.status();
    assert_eq!((status.state, status.objects), (InformerState::Synced, 6));
}

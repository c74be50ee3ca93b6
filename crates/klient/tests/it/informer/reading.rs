//! Reads of the cache: by key, by namespace, by selector, by index.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use klient::{
    Api, ObjectKey, SharedInformer,
    informer::{IndexFunc, Indexers, NAMESPACE_INDEX, ObjectFormat},
};
use serde_json::json;

use super::{World, within};

#[tokio::test(start_paused = true)]
async fn lister_finds_by_key_namespace_and_labels() {
    let world = World::start().await;
    world.create_with("a", json!({"app": "web"})).await;
    world.create_with("b", json!({"app": "db"})).await;
    let informer = world.synced().await;
    let lister = informer.lister();
    assert!(lister.get(&ObjectKey::namespaced("default", "a")).is_some());
    assert!(lister.get(&ObjectKey::namespaced("other", "a")).is_none());
    let default = lister.namespace("default");
    assert_eq!(default.list().len(), 2);
    assert!(lister.namespace("other").list().is_empty());
    let names = |objects: Vec<klient::informer::CachedObject<ConfigMap>>| {
        objects.iter().map(|object| object.key().name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(default.select(&"app=web".parse().unwrap())), ["a"]);
    assert_eq!(names(lister.select(&"app!=web".parse().unwrap())), ["b"]);
    assert_eq!(lister.select(&"".parse().unwrap()).len(), 2);
    let version = world.create("c").await;
    within(informer.wait_until_seen(&version)).await.unwrap();
    assert_eq!(default.list().len(), 3, "the namespace index is updated");
}

#[tokio::test(start_paused = true)]
async fn wait_for_write_returns_when_the_cache_shows_the_write() {
    let world = World::start().await;
    world.create("a").await;
    let informer = world.synced().await;
    let patch = klient::Patch::merge(json!({"data": {"soup": "4.50"}}));
    let written = world.maps.patch("a", patch).await.unwrap();
    within(informer.wait_for_write(&written)).await.unwrap();
    let cached = informer.lister().get(&ObjectKey::namespaced("default", "a")).unwrap();
    assert_eq!(cached.decode().unwrap().data, written.data);
    let error = within(informer.wait_for_write(&ConfigMap::default())).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn index_finds_by_label_owner_field_and_closure() {
    let world = World::start().await;
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "default");
    for (name, node) in [("p", "node-1"), ("q", "node-2"), ("r", "node-1")] {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "web"},
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u1"}]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": format!("image-{name}")}]}});
        pods.create(&serde_json::from_value(pod).unwrap()).await.unwrap();
    }
    for form in [ObjectFormat::Wire, ObjectFormat::Decoded] {
        let informer = SharedInformer::builder(pods.clone())
            .object_format(form)
            .indexers(Indexers::new().with("node", IndexFunc::field("spec.nodeName".parse().unwrap())))
            .build();
        informer.start();
        within(informer.wait_for_sync()).await.unwrap();
        let images = informer
            .add_index(
                "image",
                IndexFunc::typed(|pod: &Pod, found| {
                    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                        found.add(container.image.as_deref().unwrap_or_default());
                    }
                }),
            )
            .unwrap();
        let apps = informer.add_index("app", IndexFunc::label("app")).unwrap();
        let owners = informer.add_index("owner", IndexFunc::owner()).unwrap();
        let names = |keys: Vec<ObjectKey>| keys.iter().map(|key| key.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(informer.store().index_keys("node", "node-1").unwrap()), ["p", "r"]);
        assert_eq!(names(images.keys("image-q")), ["q"]);
        assert_eq!(apps.get("web").len(), 3);
        assert_eq!(owners.get("u1").len(), 3);
        assert_eq!(
            images.values().iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["image-p", "image-q", "image-r"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_and_duplicate_indices_are_errors() {
    let world = World::start().await;
    let informer = world.informer();
    let error = informer.store().by_index("node", "x").unwrap_err();
    assert!(error.to_string().contains("node"), "{error}");
    assert!(informer.lister().index("node").is_err());
    informer.add_index(NAMESPACE_INDEX, IndexFunc::namespace()).unwrap();
    assert!(informer.add_index(NAMESPACE_INDEX, IndexFunc::namespace()).unwrap_err().is_already_exists());
}

#[tokio::test(start_paused = true)]
async fn snapshot_does_not_change() {
    let world = World::start().await;
    world.create("a").await;
    let informer = world.synced().await;
    let before = informer.lister().snapshot();
    let listed = informer.lister().list();
    world.delete("a").await;
    let version = world.create("b").await;
    within(informer.wait_until_seen(&version)).await.unwrap();
    assert_eq!(before.iter().map(|object| object.key().name().to_owned()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(listed.keys(), [ObjectKey::namespaced("default", "a")]);
    assert_eq!(informer.lister().list().keys(), [ObjectKey::namespaced("default", "b")]);
}

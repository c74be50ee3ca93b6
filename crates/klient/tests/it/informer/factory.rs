//! The factory returns one informer for the same objects.

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use klient::{
    Api, InformerFactory,
    informer::{HandlerFuncs, InformerState},
    resource::ApiResource,
};

use super::{World, within};

#[tokio::test(start_paused = true)]
async fn factory_shares_informer_by_kind_scope_and_selector() {
    let world = World::start().await;
    world.create("a").await;
    let factory = InformerFactory::new(world.client.clone());
    let maps = factory.core_v1().config_maps();
    let again = factory.namespaced::<ConfigMap>();
    let elsewhere = factory.namespace("default").core_v1().config_maps();
    let selected = factory.labels("app=web").core_v1().config_maps();
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    assert_eq!(again.lister().len(), 1);
    let same = |a: &klient::SharedInformer<ConfigMap>, b: &klient::SharedInformer<ConfigMap>| {
        std::ptr::eq(a.store(), b.store())
    };
    assert!(same(&maps, &again));
    assert!(!same(&maps, &elsewhere) && !same(&maps, &selected));
    assert_eq!(selected.lister().len(), 0);
    let lists = |world: &World| world.server.requests()[&("GET".to_owned(), "/api/v1/configmaps".to_owned())];
    // A list and a watch for each of the two informers of all namespaces.
    assert_eq!(lists(&world), 4);
}

#[tokio::test(start_paused = true)]
async fn factory_creates_new_informer_after_last_handle() {
    let world = World::start().await;
    let factory = InformerFactory::new(world.client.clone());
    let maps = factory.core_v1().config_maps();
    factory.start();
    within(maps.wait_for_sync()).await.unwrap();
    drop(maps);
    let maps = factory.core_v1().config_maps();
    assert_eq!(maps.status().state, InformerState::Idle);
    factory.start();
    within(maps.wait_for_sync()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn factory_creates_dynamic_and_metadata_informers() {
    let world = World::start().await;
    world.create("a").await;
    let factory = InformerFactory::new(world.client.clone()).namespace("default");
    let dynamic = factory.dynamic(ApiResource::of::<ConfigMap>());
    let metadata = factory.metadata_of(&Api::<ConfigMap>::namespaced(world.client.clone(), "default"));
    let nodes = factory.cluster::<Node>();
    let typed = factory.core_v1().config_maps();
    let _registration = typed.add_handler(HandlerFuncs::new());
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    assert_eq!((dynamic.lister().len(), metadata.lister().len(), nodes.lister().len()), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn factory_shutdown_stops_all_informers() {
    let world = World::start().await;
    let factory = InformerFactory::new(world.client.clone());
    let maps = factory.core_v1().config_maps();
    factory.start();
    within(maps.wait_for_sync()).await.unwrap();
    within(factory.shutdown()).await;
    assert_eq!(maps.status().state, InformerState::Stopped);
    let pods = factory.core_v1().pods();
    factory.start();
    assert_eq!(pods.status().state, InformerState::Idle);
    assert!(factory.wait_for_sync().await.is_err());
}

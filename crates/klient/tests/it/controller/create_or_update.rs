//! `create_or_update` on the embedded server.

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    ErrorKind,
    controller::{Operation, create_or_update},
};
use klient_apiserver::Fault;

use crate::informer::World;

fn theme() -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("theme".to_owned());
    map
}

fn set_color(map: &mut ConfigMap, color: &str) -> Result<(), klient::Error> {
    map.data.get_or_insert_default().insert("color".to_owned(), color.to_owned());
    Ok(())
}

#[tokio::test]
async fn create_or_update_creates_updates_or_does_nothing() {
    let world = World::start().await;
    let set = async |color: &str| create_or_update(&world.maps, theme(), |map| set_color(map, color)).await.unwrap();
    let (created, operation) = set("red").await;
    assert_eq!((operation, created.data.as_ref().unwrap()["color"].as_str()), (Operation::Created, "red"));
    let (unchanged, operation) = set("red").await;
    assert_eq!(
        (operation, unchanged.metadata.resource_version),
        (Operation::Unchanged, created.metadata.resource_version)
    );
    let (updated, operation) = set("blue").await;
    assert_eq!((operation, updated.data.unwrap()["color"].as_str()), (Operation::Updated, "blue"));
    assert_eq!(updated.metadata.uid, created.metadata.uid);
}

#[tokio::test]
async fn create_or_update_reads_again_after_a_conflict() {
    let world = World::start().await;
    create_or_update(&world.maps, theme(), |map| set_color(map, "red")).await.unwrap();
    world.server.inject(Fault::conflict().on_method(http::Method::PUT).times(2));
    let mut calls = 0;
    let (map, operation) = create_or_update(&world.maps, theme(), |map| {
        calls += 1;
        set_color(map, "blue")
    })
    .await
    .unwrap();
    assert_eq!((operation, map.data.unwrap()["color"].as_str(), calls), (Operation::Updated, "blue", 3));
}

#[tokio::test]
async fn create_or_update_writes_nothing_if_mutate_fails() {
    let world = World::start().await;
    let failure = || klient::Error::new(ErrorKind::Invalid, "no color");
    let error = create_or_update(&world.maps, theme(), |_| Err(failure())).await.unwrap_err();
    assert_eq!(error.to_string(), "no color");
    assert!(world.maps.get_opt("theme").await.unwrap().is_none());
    let error = create_or_update(&world.maps, ConfigMap::default(), |_| Ok(())).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot create or update an object of configmaps without a name");
}

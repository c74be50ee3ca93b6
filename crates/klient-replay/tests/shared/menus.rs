//! A controller that is recorded and replayed.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, ResourceExt, SharedInformer,
    controller::{Outcome, Request},
    metrics::Registry,
    owner,
    recording::Recording,
};
use klient_replay::{Replay, Report};

/// A program that copies each menu for the guests.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(dead_code, reason = "each test program uses some of them")]
pub(crate) enum Program {
    /// As it was recorded.
    Old,
    /// Prices are left out.
    WithoutPrices,
    /// Menus of the kitchen are ignored.
    WithoutKitchen,
}

fn map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mut map = ConfigMap { data: Some(data), ..ConfigMap::default() };
    (map.metadata.namespace, map.metadata.name) = (Some("default".to_owned()), Some(name.to_owned()));
    map
}

async fn reconcile(request: Request<ConfigMap>, context: Arc<(Client, Program)>) -> Result<Outcome, klient::Error> {
    let (client, program) = &*context;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let Some(menu) = request.object()?.filter(|menu| menu.label("part") == Some("menu")) else {
        return Ok(Outcome::Done);
    };
    if *program == Program::WithoutKitchen && menu.name() == "kitchen" {
        return Ok(Outcome::Done);
    }
    let name = format!("{}-guests", menu.name());
    let mut copy = map(&name, &[]);
    copy.data = menu.data.clone();
    if *program == Program::WithoutPrices {
        copy.data.get_or_insert_default().remove("price");
    }
    copy.metadata.owner_references = Some(vec![owner::controller_owner_ref(&*menu)?]);
    match maps.get_opt(&name).await? {
        None => drop(maps.create(&copy).await?),
        Some(found) if found.data != copy.data => {
            copy.metadata.resource_version = found.metadata.resource_version;
            maps.update(&copy).await?;
        }
        Some(_) => {}
    }
    if menu.data.as_ref().is_some_and(|data| data.contains_key("broken")) {
        return Err(klient::Error::new(klient::ErrorKind::Invalid, "the oven is broken"));
    }
    Ok(Outcome::Done)
}

pub(crate) fn controller(client: Client, program: Program) -> Controller<ConfigMap> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let informer = SharedInformer::new(maps);
    Controller::builder("menus", informer.clone())
        .owns(informer)
        .workers(2)
        .registry(Registry::new())
        .reconcile_with(Arc::new((client, program)), reconcile)
}

pub(crate) fn menu(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let mut menu = map(name, data);
    menu.metadata.labels = Some([("part".to_owned(), "menu".to_owned())].into());
    menu
}

pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap_or_else(|_| panic!("timed out: {what}"));
}

/// Replays a recording.
pub(crate) fn replayed(recording: &Recording, program: Program) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut replay = Replay::of(recording).await.unwrap();
        replay.controller(&controller(replay.client(), program)).await.unwrap();
        replay.run().await.unwrap()
    })
}

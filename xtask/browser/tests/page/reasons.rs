//! A person finds within one page why a key is not done: one test per reason.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Controller, InformerFactory, Manager, ObjectKey, Patch,
    controller::{Outcome, Predicate, Request, Source},
    election::{ElectionOptions, LeaderElector, LeaseLock},
    manager::DebugPage,
    shard::{ShardKey, ShardOptions, Shards},
};
use klient_apiserver::Fault;
use serde_json::json;

use crate::{browser::browse, world::World};

/// Opens the story of one key of the hostile controller, and checks its summary.
async fn check(name: &'static str, expected: &'static str) {
    browse(move |page| async move {
        let mut world = World::start().await;
        world.create(name).await;
        let address = world.run(Manager::builder().controller(world.hostile()), DebugPage::local()).await;
        page.open(address).await;
        page.story(&format!("default/{name}"), expected).await;
        page.screenshot(&format!("story-{name}")).await;
    })
    .await;
}

#[tokio::test]
async fn page_shows_a_key_that_is_done() {
    check("good", "and nothing changed since").await;
}

#[tokio::test]
async fn page_shows_backoff_with_its_error() {
    check("retried", "retried in").await;
}

#[tokio::test]
async fn page_shows_a_scheduled_turn() {
    check("scheduled", "reconciled, and scheduled again in").await;
}

#[tokio::test]
async fn page_shows_a_reconcile_that_runs() {
    check("slow", "reconciling for").await;
}

#[tokio::test]
async fn page_shows_the_predicate_that_ignored_a_key() {
    check("filtered", "by the predicate \"is not called filtered\"").await;
}

#[tokio::test]
async fn page_shows_a_terminal_error_as_text() {
    browse(|page| async move {
        let mut world = World::start().await;
        world.create("failing").await;
        let address = world.run(Manager::builder().controller(world.hostile()), DebugPage::local()).await;
        page.open(address).await;
        page.story("default/failing", "<img src=x onerror=alert(1)> & no quota").await;
        let images = page.script("return document.images.length", json!(null)).await;
        assert_eq!(images, json!(0), "the message of an error became HTML");
        // A hostile key is text as well.
        page.story("<script>alert(1)</script>/<b>", "").await;
        let title = page.wait_for("#story-title", |text| text.contains("<script>")).await;
        assert_eq!(title, "<script>alert(1)</script>/<b>");
    })
    .await;
}

#[tokio::test]
async fn page_shows_how_many_keys_are_ahead() {
    browse(|page| async move {
        let mut world = World::start().await;
        world.create("slow").await;
        let address = world.run(Manager::builder().controller(world.hostile()), DebugPage::local()).await;
        page.open(address).await;
        page.story("default/slow", "reconciling for").await;
        world.create("first").await;
        page.story("default/first", "behind 0 other keys").await;
        world.create("second").await;
        page.story("default/second", "behind 1 other keys: 1 of 1 workers are busy").await;
        page.wait_for("#controllers-body", |text| text.contains("default/slow")).await;
    })
    .await;
}

#[tokio::test]
async fn page_shows_that_another_process_leads() {
    browse(|page| async move {
        let mut world = World::start().await;
        world.create("good").await;
        for identity in ["anna", "berta"] {
            let lock = LeaseLock::new(world.client.clone(), "default", "lock");
            let options = ElectionOptions::default().registry(world.registry.clone());
            let elector = LeaderElector::new(lock, identity, options).unwrap();
            let builder = Manager::builder().elected_by(elector).controller(world.hostile());
            let address = world.run(builder, DebugPage::local()).await;
            page.open(address).await;
            match identity {
                "anna" => drop(page.wait_for("#leadership", |text| text.contains("this process leads")).await),
                _ => drop(page.story("default/good", "this process does not lead: anna does").await),
            }
        }
        page.wait_for("#leadership", |text| text.contains("standby, anna leads")).await;
    })
    .await;
}

#[tokio::test]
async fn page_shows_that_another_shard_has_the_key() {
    browse(|page| async move {
        let mut world = World::start().await;
        let mut replicas = Vec::new();
        for identity in ["anna", "berta"] {
            let options = ShardOptions::default()
                .lease_duration(Duration::from_secs(8))
                .renew_deadline(Duration::from_secs(6))
                .retry_period(Duration::from_millis(500))
                .settle(Duration::from_secs(1))
                .registry(world.registry.clone());
            let shards = Shards::new(world.client.clone(), "default", "maps", options).unwrap().identity(identity);
            let maps = InformerFactory::new(world.client.clone()).core_v1().config_maps();
            let controller = Controller::builder("maps", maps)
                .registry(world.registry.clone())
                .sharded(ShardKey::object())
                .reconcile(|_: Request<ConfigMap>| async { Ok::<_, klient::Error>(Outcome::Done) });
            let builder = Manager::builder().shards(shards.clone()).controller(controller);
            replicas.push((world.run(builder, DebugPage::local()).await, shards));
        }
        for number in 0..32 {
            world.create(&format!("map-{number}")).await;
        }
        let (anna, shards) = &replicas[0];
        // The page names the coordinator, which may be berta, before it shows a table.
        let both_have_slots = shards.wait_until(|status| {
            status.moves.is_empty() && status.members.iter().filter(|member| member.slots > 0).count() == 2
        });
        tokio::time::timeout(Duration::from_secs(60), both_have_slots).await.unwrap();
        page.open(*anna).await;
        let is_shared = |text: &str| text.contains("berta") && !text.contains("have no owner");
        page.wait_for("#shards-body", is_shared).await;
        let keys = (0..32).map(|number| ObjectKey::namespaced("default", &format!("map-{number}")));
        let own = shards.status().member;
        let is_theirs = |key: &ObjectKey| shards.owner_of(key).is_some_and(|owner| owner != own);
        let theirs = keys.into_iter().find(is_theirs).unwrap();
        page.story(theirs.as_str(), "the key belongs to the shard of").await;
    })
    .await;
}

#[tokio::test]
async fn page_shows_an_informer_without_its_first_list() {
    browse(|page| async move {
        let mut world = World::start().await;
        world.server().inject(Fault::internal_error().on_path("/api/v1/configmaps"));
        let address = world.run(Manager::builder().controller(world.hostile()), DebugPage::local()).await;
        page.open(address).await;
        page.story("default/good", "waiting for the first list of configmaps, whose informer is syncing").await;
    })
    .await;
}

#[tokio::test]
async fn page_shows_that_an_object_is_not_cached() {
    browse(|page| async move {
        let mut world = World::start().await;
        let maps = InformerFactory::new(world.client.clone()).namespace("default").core_v1().config_maps();
        let controller = Controller::builder("maps", maps)
            .registry(world.registry.clone())
            .reconcile(|_: Request<ConfigMap>| async { Ok::<_, klient::Error>(Outcome::Done) });
        let address = world.run(Manager::builder().controller(controller), DebugPage::local()).await;
        page.open(address).await;
        page.story("default/nothing", "the cache has no such object").await;
        page.story("elsewhere/nothing", "the informer does not cover this key").await;
    })
    .await;
}

#[tokio::test]
async fn page_shows_a_wait_for_an_own_write() {
    browse(|page| async move {
        let mut world = World::start().await;
        world.create("a").await;
        let (maps, requests) = (world.maps.clone(), InformerFactory::new(world.client.clone()));
        let controller = Controller::builder("writer", requests.core_v1().config_maps())
            .registry(world.registry.clone())
            .wait_for_own_writes(Duration::from_secs(600))
            .reconcile(move |request: Request<ConfigMap>| {
                let maps = maps.clone();
                async move {
                    maps.patch(request.name(), Patch::merge(json!({"data": {"n": "1"}}))).await?;
                    Ok::<_, klient::Error>(Outcome::Done)
                }
            });
        let address = world.run(Manager::builder().controller(controller.clone()), DebugPage::local()).await;
        page.open(address).await;
        page.story("default/a", "nothing changed since").await;
        // The watch ends, and the next one never begins: the cache does not show the write.
        world.server().inject(Fault::internal_error().on_watches(true));
        world.server().inject(Fault::internal_error().on_path("/api/v1/configmaps"));
        world.server().end_watches();
        world.set("a", "2").await;
        controller.request("default/a".parse().unwrap());
        page.wait_for("#informers-body", |text| text.contains("stale")).await;
        controller.request("default/a".parse().unwrap());
        page.story("default/a", "until the cache shows its own write of configmaps default/a").await;
    })
    .await;
}

#[tokio::test]
async fn page_shows_that_no_event_reached_a_key() {
    browse(|page| async move {
        let world = World::start().await;
        world.create("a").await;
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let blocked = std::sync::Mutex::new(blocked);
        // The handler hangs, in a thread of its own runtime: the cache has the change, and the key is not queued.
        let hangs =
            Predicate::on_update(move |_, _| tokio::task::block_in_place(|| blocked.lock().unwrap().recv().is_err()));
        let source = Source::from(InformerFactory::new(world.client.clone()).core_v1().config_maps()).only(hangs);
        let controller = Controller::builder("maps", source)
            .registry(world.registry.clone())
            .reconcile(|_: Request<ConfigMap>| async { Ok::<_, klient::Error>(Outcome::Done) });
        let (started, address) = tokio::sync::oneshot::channel();
        let runtime = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let builder = Manager::builder().serve(([127, 0, 0, 1], 0)).debug(DebugPage::local());
                let manager = builder.controller(controller).build().await.unwrap();
                let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
                started.send((manager.address().unwrap(), stop)).unwrap();
                manager.run_until(async { drop(stopped.await) }).await.unwrap();
            });
        });
        let (address, stop) = address.await.unwrap();
        page.open(address).await;
        page.story("default/a", "nothing changed since").await;
        world.set("a", "2").await;
        page.story("default/a", "cached, but no event has queued it; its informer is synced").await;
        drop((release, stop));
        tokio::task::spawn_blocking(move || runtime.join().unwrap()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn page_shows_hot_loops_and_fights() {
    browse(|page| async move {
        let mut world = World::start().await;
        world.create("looping").await;
        world.create("fought").await;
        let rival = world.maps.clone();
        world.spawn(async move {
            loop {
                let _ = rival.patch("fought", Patch::merge(json!({"data": {"n": "yours"}}))).manager("rival").await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let debug = DebugPage::local().watching_with(world.client.clone());
        let address = world.run(Manager::builder().controller(world.hostile()), debug).await;
        page.open(address).await;
        page.wait_for("#controllers-body", |text| text.contains("reconciled in a loop")).await;
        // Two samples of the numbers are a plot.
        page.wait_for("#controllers-body figcaption", |text| text.starts_with("queue: ready")).await;
        page.screenshot("overview").await;
        page.story("default/fought", "").await;
        let shown = |text: &str| text.contains(".data.n") && text.contains("hostile and rival");
        page.wait_for("#story-body", shown).await;
        page.screenshot("fight").await;
    })
    .await;
}

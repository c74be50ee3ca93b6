//! Leases that are deleted or edited by hand, replicas that disagree, and labels that change.

use klient::{ErrorKind, Patch};
use serde_json::json;

use super::*;

#[tokio::test(start_paused = true)]
async fn member_joins_again_after_its_lease_was_deleted() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 20).await;
    let anna = Replica::start(&world, &ledger, "anna").await;
    anna.wait(|status| status.open == 256).await;
    let first = anna.status().member;
    leases(&world).delete(&first).await.unwrap();
    anna.wait(|status| status.member != first).await;
    assert_eq!(anna.status().open, 0);
    anna.wait(|status| status.open == 256).await;
    assert_eq!(anna.status().member, format!("{first}-2"));
    assert!(anna.registry.render().contains("klient_shard_rejoins_total{group=\"maps\"} 1"));
    world.set("map-3", "1").await;
    let key = ObjectKey::namespaced("default", "map-3");
    ledger.wait(|entries| entries[&key].seen.as_deref() == Some("1")).await;
    ledger.check();
    anna.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lost_table_is_rebuilt_after_all_members_stopped() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 20).await;
    let anna = Replica::start(&world, &ledger, "anna").await;
    anna.wait(|status| status.open == 256).await;
    let berta = Replica::start(&world, &ledger, "berta").await;
    berta.wait(|status| status.open == 128).await;
    let before = berta.status().generation.unwrap();
    for edit in ["delete", "damage"] {
        match edit {
            "delete" => drop(leases(&world).delete(GROUP).await.unwrap()),
            _ => {
                let patch = json!({"metadata": {"annotations": {"shard.klient/record": "0 {}"}}});
                leases(&world).patch(GROUP, Patch::merge(patch)).await.unwrap();
            }
        }
        let generation = berta.status().generation;
        // The present owners work on until all of them have obeyed a table without owners.
        let is_rebuilt = |status: &ShardStatus| status.generation > generation;
        anna.wait(|status| is_rebuilt(status) && status.open == 128).await;
        berta.wait(|status| is_rebuilt(status) && status.open == 128).await;
        ledger.check();
    }
    assert!(berta.status().generation.unwrap() > before);
    anna.stop().await;
    berta.stop().await;
}

#[tokio::test(start_paused = true)]
async fn replicas_with_the_same_identity_are_two_members() {
    let (world, ledger) = (World::start().await, Ledger::default());
    let first = Replica::start(&world, &ledger, "anna").await;
    let second = Replica::start(&world, &ledger, "anna").await;
    first.wait(|status| status.open == 128).await;
    second.wait(|status| status.open == 128).await;
    assert_ne!(first.status().member, second.status().member);
    first.stop().await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn replica_with_another_shard_key_is_refused() {
    let (world, ledger) = (World::start().await, Ledger::default());
    let anna = Replica::start(&world, &ledger, "anna").await;
    anna.wait(|status| status.open == 256).await;
    let berta = Replica::start_with(&world, &ledger, "berta", ShardKey::namespace(), Duration::ZERO).await;
    let error = berta.task.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let message = error.to_string();
    assert!(
        message.starts_with("cannot join the group \"maps\": controller \"controller-maps\" is sharded by"),
        "{message}"
    );
    assert!(message.ends_with("stop the other replicas first, or use another group"), "{message}");
    assert_eq!(anna.status().members.len(), 1);
    anna.stop().await;
}

#[tokio::test(start_paused = true)]
async fn object_moves_when_its_shard_label_changes() {
    let (world, ledger) = (World::start().await, Ledger::default());
    for number in 0..20 {
        world.create_with(&format!("map-{number}"), json!({"tenant": format!("t{}", number % 5)})).await;
    }
    let takes = Duration::from_millis(1);
    let anna = Replica::start_with(&world, &ledger, "anna", ShardKey::label("tenant"), takes).await;
    anna.wait(|status| status.open == 256).await;
    let berta = Replica::start_with(&world, &ledger, "berta", ShardKey::label("tenant"), takes).await;
    berta.wait(|status| status.open == 128).await;
    for number in 0..20 {
        world.set(&format!("map-{number}"), "1").await;
    }
    ledger.wait(|entries| entries.values().all(|entry| entry.seen.as_deref() == Some("1"))).await;
    let owner = |name: &str| {
        let key = ObjectKey::namespaced("default", name);
        ledger.0.entries.lock().unwrap()[&key].last.clone().unwrap()
    };
    for number in 0..15 {
        assert_eq!(owner(&format!("map-{number}")), owner(&format!("map-{}", number + 5)), "one tenant, two replicas");
    }
    // Another value, and then none: the object belongs to the replica of the value, and then to that of its name.
    for labels in [json!({"tenant": "elsewhere"}), json!({"tenant": null})] {
        let value = labels.to_string();
        let patch = json!({"metadata": {"labels": labels}, "data": {"n": value}});
        world.maps.patch("map-0", Patch::merge(patch)).await.unwrap();
        let key = ObjectKey::namespaced("default", "map-0");
        ledger.wait(|entries| entries[&key].seen.as_deref() == Some(value.as_str())).await;
        let slot = match value.contains("elsewhere") {
            true => klient::shard::Slot::of_text("elsewhere"),
            false => klient::shard::Slot::of(&key),
        };
        let expected = if anna.shards.owner_of_slot(slot) == Some(anna.status().member) { "anna" } else { "berta" };
        assert_eq!(owner("map-0"), expected);
    }
    // The deletion of an object belongs to the replica that had the object.
    let before = owner("map-7");
    world.delete("map-7").await;
    let key = ObjectKey::namespaced("default", "map-7");
    ledger.wait(|entries| entries[&key].seen.is_none()).await;
    assert_eq!(owner("map-7"), before);
    anna.stop().await;
    berta.stop().await;
}

#[tokio::test(start_paused = true)]
async fn manager_rejects_shards_without_sharded_controllers() {
    let (world, ledger) = (World::start().await, Ledger::default());
    let registry = Registry::new();
    let sharded = controller(&world, &ledger, "a", ShardKey::object(), Duration::ZERO, &registry, 8);
    let error = Manager::builder().controller(sharded).build().await.unwrap_err();
    let expected = "controller-maps is sharded, and the manager has no shards: call `shards` on its builder";
    assert_eq!(error.to_string(), expected);
    let error = Manager::builder().shards(shards(&world, "a", &registry)).build().await.unwrap_err();
    assert!(error.to_string().starts_with("the manager has shards, and none of its controllers is sharded"));
    for name in ["", "Maps", "-maps", "maps.shop", &"m".repeat(41)] {
        let error = Shards::new(world.client.clone(), "default", name, ShardOptions::default()).unwrap_err();
        assert!(error.to_string().starts_with("invalid name of a group of replicas"), "{error}");
    }
    let late = ShardOptions::default().renew_deadline(Duration::from_secs(14));
    let error = Shards::new(world.client.clone(), "default", "maps", late).unwrap_err();
    assert!(error.to_string().contains("three quarters of the lease duration"), "{error}");
}

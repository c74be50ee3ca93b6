//! Replicas that leave, die, hang and are cut off.

use klient_apiserver::Fault;
use tokio::time::Instant;

use super::*;

/// Starts two replicas, and waits until each has its half.
async fn two(world: &World, ledger: &Ledger, takes: Duration) -> (Replica, Replica) {
    let anna = Replica::start_with(world, ledger, "anna", ShardKey::object(), takes).await;
    anna.wait(|status| status.open == 256).await;
    let berta = Replica::start_with(world, ledger, "berta", ShardKey::object(), takes).await;
    anna.wait(|status| status.open == 128 && status.draining == 0).await;
    berta.wait(|status| status.open == 128).await;
    (anna, berta)
}

#[tokio::test(start_paused = true)]
async fn replica_that_stops_hands_its_keys_over_first() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 40).await;
    let (anna, berta) = two(&world, &ledger, Duration::from_millis(50)).await;
    // The coordinator leaves: the group goes on without a pause.
    assert!(anna.status().coordinates);
    let began = Instant::now();
    anna.stop().await;
    assert_eq!(berta.status().open, 256, "all slots are handed over before the replica has stopped");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    berta.wait(|status| status.coordinates).await;
    ledger.wait(|entries| entries.values().all(|entry| entry.last.as_deref() == Some("berta"))).await;
    ledger.check();
    // Scale to zero and back: the table has no living owner, and is taken at once.
    berta.stop().await;
    let began = Instant::now();
    let clara = Replica::start(&world, &ledger, "clara").await;
    clara.wait(|status| status.open == 256).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    clara.stop().await;
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_dead_replica_move_after_its_lease() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 40).await;
    let (anna, berta) = two(&world, &ledger, Duration::from_millis(50)).await;
    let dead = anna.status().member;
    anna.kill().await;
    let died = Instant::now();
    berta.wait(|status| status.open == 256).await;
    let took = died.elapsed();
    assert!(took > Duration::from_secs(12) && took < Duration::from_secs(17), "{took:?}");
    let fenced = berta.status().members.into_iter().find(|member| member.name == dead).unwrap();
    assert_eq!(fenced.state, klient::shard::MemberState::Fenced);
    assert!(berta.registry.render().contains("klient_shard_fenced_members_total{group=\"maps\"} 1"));
    ledger.wait(|entries| entries.values().all(|entry| entry.last.as_deref() == Some("berta"))).await;
    // The Lease of the dead member is removed in the end.
    berta.wait(|status| status.members.len() == 1).await;
    berta.stop().await;
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn replica_that_is_cut_off_stops_before_others_begin() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 20).await;
    // Reconciles never end by themselves.
    let hour = Duration::from_secs(3600);
    let anna = Replica::start_with(&world, &ledger, "anna", ShardKey::object(), hour).await;
    anna.wait(|status| status.open == 256).await;
    let member = anna.status().member;
    let running = || ledger.0.entries.lock().unwrap().values().filter(|entry| entry.running.is_some()).count();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(running(), 8);
    world.server.inject(Fault::internal_error().on_method(http::Method::PUT));
    sleep(Duration::from_secs(14)).await;
    assert_eq!(running(), 0, "reconciles run although the Lease was not renewed");
    assert_eq!(anna.status().open, 0);
    assert!(anna.status().problem.unwrap().contains("was not renewed"));
    // The server is back, and no other replica has taken the keys: the same owner goes on.
    world.server.clear_faults();

    anna.wait(|status| status.open == 256).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(running(), 8);
    assert_eq!(anna.status().member, member);
    ledger.check();
    anna.kill().await;
}

#[tokio::test(start_paused = true)]
async fn handover_waits_for_reconciles_and_drops_slow_ones() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 60).await;
    let hour = Duration::from_secs(3600);
    let anna = Replica::start_busy(&world, &ledger, "anna", hour).await;
    anna.wait(|status| status.open == 256).await;
    let berta = Replica::start_busy(&world, &ledger, "berta", hour).await;
    anna.wait(|status| status.draining > 0).await;
    let began = Instant::now();
    assert!(!berta.status().moves.is_empty());
    assert_eq!(berta.status().open, 0, "the next owner begins before the reconciles of the last one have ended");
    berta.wait(|status| status.open == 128).await;
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(12), "{took:?}");
    ledger.check();
    anna.kill().await;
    berta.kill().await;
}

#[tokio::test(start_paused = true)]
async fn namespace_key_keeps_namespaces_together() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 30).await;
    let takes = Duration::from_millis(10);
    let anna = Replica::start_with(&world, &ledger, "anna", ShardKey::namespace(), takes).await;
    anna.wait(|status| status.open == 256).await;
    let berta = Replica::start_with(&world, &ledger, "berta", ShardKey::namespace(), takes).await;
    berta.wait(|status| status.open == 128).await;
    for number in 0..30 {
        world.set(&format!("map-{number}"), "1").await;
    }
    ledger.wait(|entries| entries.values().all(|entry| entry.seen.as_deref() == Some("1"))).await;
    assert_eq!(ledger.counts().len(), 1, "all objects of a namespace belong to one replica: {:?}", ledger.counts());
    ledger.check();
    anna.stop().await;
    berta.stop().await;
}

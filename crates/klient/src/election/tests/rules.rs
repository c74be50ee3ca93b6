//! The rules, one at a time.

use tokio::time::{sleep, timeout};

use super::{
    world::{Chance, Path, World, elector},
    *,
};

fn path(world: &World) -> Path {
    Path::new(world, &Chance::new(1))
}

#[test]
fn times_must_leave_room_for_each_other() {
    let world = World::default();
    let problem = |identity: &str, options: ElectionOptions| {
        LeaderElector::new(path(&world), identity, options.registry(Registry::new()))
            .err()
            .map(|error| error.to_string())
    };
    let default = ElectionOptions::default;
    assert_eq!(problem("anna", default()), None);
    for (options, part) in [
        (default().retry_period(Duration::ZERO), "zero"),
        (default().renew_deadline(Duration::from_millis(2400)), "1.2 retry periods"),
        (default().lease_duration(secs(10)), "longer than the renew deadline"),
        (default().lease_duration(Duration::from_millis(15_500)), "whole seconds"),
    ] {
        assert!(problem("anna", options).unwrap().contains(part), "{part}");
    }
    assert!(problem("", default()).unwrap().contains("identity"));
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_its_lease_is_given_back_after_the_work() {
    let world = World::default();
    let elector = elector("anna", &path(&world), 1.0);
    let during = elector
        .run(async |leadership: Leadership| {
            sleep(secs(60)).await;
            assert!(leadership.is_valid() && elector.is_leader());
            assert_eq!(elector.leader().as_deref(), Some("anna"));
            world.held().unwrap().record
        })
        .await
        .unwrap();
    assert_eq!((during.holder.as_str(), during.transitions), ("anna", 0));
    let after = world.held().unwrap().record;
    assert_eq!(after.holder, "");
    assert!(!elector.is_leader());
}

#[tokio::test(start_paused = true)]
async fn work_that_was_told_to_stop_ends_before_the_lease_is_given_back() {
    let world = World::default();
    let elector = elector("anna", &path(&world), 1.0);
    let ended = elector
        .run_until(sleep(secs(5)), async |leadership: Leadership| {
            leadership.ended().await;
            let told = Instant::now();
            // Longer than the lease: it is renewed meanwhile.
            sleep(secs(40)).await;
            assert_eq!(world.held().unwrap().record.holder, "anna");
            told.elapsed()
        })
        .await
        .unwrap();
    assert_eq!(ended, Some(secs(40)));
    assert_eq!(world.held().unwrap().record.holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_told_to_stop_never_works() {
    let world = World::default();
    world.overwrite("berta");
    let elector = elector("anna", &path(&world), 1.0);
    let outcome = elector.run_until(sleep(secs(5)), async |_| unreachable!("it does not lead")).await;
    assert_eq!(outcome.unwrap(), None::<()>);
    assert_eq!(world.held().unwrap().record.holder, "berta");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_back_is_taken_at_the_next_look() {
    let world = World::default();
    world.overwrite("");
    let started = Instant::now();
    let token =
        elector("anna", &path(&world), 1.0).run(async |leadership: Leadership| leadership.token().clone()).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(token.unwrap().transitions, 8);
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_another_one_is_taken_when_it_did_not_change_for_its_duration() {
    let world = World::default();
    world.overwrite("berta");
    let started = Instant::now();
    elector("anna", &path(&world), 1.0).run(async |_| ()).await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn leadership_is_lost_at_the_renew_deadline_if_the_server_is_gone() {
    let world = World::default();
    let path = path(&world);
    let elector = elector("anna", &path, 1.0);
    let told = std::cell::Cell::new(None);
    let outcome = elector
        .run(async |leadership: Leadership| {
            path.change(|trouble| trouble.cut = true);
            let started = Instant::now();
            leadership.ended().await;
            told.set(Some(started.elapsed()));
            assert!(!leadership.is_valid());
            // It would go on for ever.
            std::future::pending::<()>().await;
        })
        .await;
    let error = outcome.unwrap_err();
    assert_eq!(error.to_string(), "leadership was lost");
    assert_eq!(told.get().unwrap().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_stop_is_dropped_before_another_one_can_lead() {
    let world = World::default();
    let path = path(&world);
    let started = Instant::now();
    let elector = elector("anna", &path, 1.0);
    let outcome = elector
        .run(async |_| {
            path.change(|trouble| trouble.cut = true);
            std::future::pending::<()>().await;
        })
        .await;
    outcome.unwrap_err();
    assert_eq!(started.elapsed(), Duration::from_millis(12_500));
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_leadership_at_the_next_renewal() {
    let world = World::default();
    let elector = elector("anna", &path(&world), 1.0);
    let started = Instant::now();
    let outcome = elector
        .run(async |leadership: Leadership| {
            world.overwrite("berta");
            leadership.ended().await;
            started.elapsed()
        })
        .await;
    outcome.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 2);
    assert_eq!(world.held().unwrap().record.holder, "berta");
    assert_eq!(elector.shared.slow_path.value(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_made_anew_by_its_leader() {
    let world = World::default();
    let elector = elector("anna", &path(&world), 1.0);
    let outcome = elector
        .run(async |leadership: Leadership| {
            world.put(None);
            timeout(secs(60), leadership.ended()).await.is_err()
        })
        .await;
    assert!(outcome.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_not_taken_before_its_leader_must_have_noticed() {
    let world = World::default();
    world.overwrite("berta");
    let elector = elector("anna", &path(&world), 1.0);
    let started = Instant::now();
    let (led, ()) = tokio::join!(elector.run(async |_| started.elapsed()), async {
        sleep(secs(3)).await;
        world.put(None);
    });
    assert_eq!(led.unwrap().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_written_is_lost_and_taken_again_later() {
    let world = World::default();
    let path = path(&world);
    let elector = elector("anna", &path, 1.0);
    let work = async |leadership: Leadership| {
        path.change(|trouble| trouble.refused = true);
        leadership.ended().await;
    };
    elector.run(work).await.unwrap_err();
    assert!(timeout(secs(60), elector.run(async |_| ())).await.is_err(), "it cannot lead");
    path.change(|trouble| trouble.refused = false);
    elector.run(async |_| ()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_is_no_reason_to_lose_the_lease() {
    let world = World::default();
    let path = path(&world);
    path.change(|trouble| trouble.slow = secs(2));
    let elector = elector("anna", &path, 1.0);
    let outcome =
        elector.run(async |leadership: Leadership| timeout(secs(300), leadership.ended()).await.is_err()).await;
    assert!(outcome.unwrap());
}

#[tokio::test(start_paused = true)]
async fn health_and_metrics_tell_who_leads() {
    let world = World::default();
    let registry = Registry::new();
    let options = ElectionOptions::default().registry(registry.clone());
    let elector = LeaderElector::new(path(&world), "anna", options).unwrap();
    let line = |value: u32| format!("leader_election_master_status{{name=\"simulated\"}} {value}\n");
    assert!(registry.render().contains(&line(0)));
    elector
        .run(async |_| {
            assert!(registry.render().contains(&line(1)));
            assert!(elector.check(Duration::ZERO).is_ok());
            // Nothing can be renewed while the work blocks its thread.
            tokio::time::advance(secs(16)).await;
            assert!(elector.check(Duration::ZERO).is_err());
            assert!(elector.check(secs(20)).is_ok());
        })
        .await
        .ok();
    assert!(registry.render().contains(&line(0)));
    assert!(elector.check(Duration::ZERO).is_ok());
}

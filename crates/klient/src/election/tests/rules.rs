//! The rules of an election, one at a time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{
    world::{Chance, Path, World, elector},
    *,
};

fn path(world: &World) -> Path {
    Path::new(world, &Chance::new(1))
}

#[test]
fn options_reject_timings_that_overlap() {
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
        (default().retry_period(Duration::MAX), "1.2 retry periods"),
        (default().renew_deadline(Duration::from_millis(2400)), "1.2 retry periods"),
        (default().lease_duration(secs(10)), "longer than the renew deadline"),
        (default().lease_duration(Duration::from_millis(15_500)), "whole seconds"),
    ] {
        assert!(problem("anna", options).unwrap().contains(part), "{part}");
    }
    assert!(problem("", default()).unwrap().contains("identity"));
}

#[tokio::test(start_paused = true)]
async fn elector_releases_lease_after_work() {
    let world = World::default();
    let elector = elector("anna", &path(&world), 1.0);
    let during = elector
        .run(async |leadership: Leadership| {
            sleep(secs(60)).await;
            assert!(leadership.is_valid() && elector.is_leader());
            assert_eq!(elector.leader().as_deref(), Some("anna"));
            world.lease().unwrap().record
        })
        .await
        .unwrap();
    assert_eq!((during.holder.as_str(), during.transitions), ("anna", 0));
    let after = world.lease().unwrap().record;
    assert_eq!(after.holder, "");
    assert!(!elector.is_leader());
}

#[tokio::test(start_paused = true)]
async fn elector_renews_lease_until_stopping_work_ends() {
    let world = World::default();
    let elector = elector("anna", &path(&world), 1.0);
    let ended = elector
        .run_until(sleep(secs(5)), async |leadership: Leadership| {
            leadership.ended().await;
            let stopping = Instant::now();
            // Longer than the lease, which is renewed meanwhile.
            sleep(secs(40)).await;
            assert_eq!(world.lease().unwrap().record.holder, "anna");
            stopping.elapsed()
        })
        .await
        .unwrap();
    assert_eq!(ended, Some(secs(40)));
    assert_eq!(world.lease().unwrap().record.holder, "");
}

#[tokio::test(start_paused = true)]
async fn candidate_stops_without_working() {
    let world = World::default();
    world.overwrite("berta");
    let elector = elector("anna", &path(&world), 1.0);
    let outcome = elector.run_until(sleep(secs(5)), async |_| unreachable!("candidate leads")).await;
    assert_eq!(outcome.unwrap(), None::<()>);
    assert_eq!(world.lease().unwrap().record.holder, "berta");
}

#[tokio::test(start_paused = true)]
async fn candidate_acquires_released_lease_at_once() {
    let world = World::default();
    world.overwrite("");
    let started = Instant::now();
    let token = elector("anna", &path(&world), 1.0).run(async |leadership: Leadership| leadership.token()).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(token.unwrap().number(), 2);
    assert_eq!(world.lease().unwrap().record.transitions, 8);
}

#[tokio::test(start_paused = true)]
async fn candidate_acquires_lease_unchanged_for_its_duration() {
    let world = World::default();
    world.overwrite("berta");
    let started = Instant::now();
    elector("anna", &path(&world), 1.0).run(async |_| ()).await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn leadership_ends_at_renew_deadline_if_server_is_down() {
    let world = World::default();
    let path = path(&world);
    let elector = elector("anna", &path, 1.0);
    let ended_after = std::cell::Cell::new(None);
    let outcome = elector
        .run(async |leadership: Leadership| {
            path.change(|trouble| trouble.cut = true);
            let started = Instant::now();
            leadership.ended().await;
            ended_after.set(Some(started.elapsed()));
            assert!(!leadership.is_valid());
            // This work never ends by itself.
            std::future::pending::<()>().await;
        })
        .await;
    let error = outcome.unwrap_err();
    assert_eq!(error.to_string(), "leadership of simulated was lost");
    assert_eq!(ended_after.get().unwrap().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn elector_drops_work_before_another_can_lead() {
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
async fn leadership_ends_at_next_renewal_if_lease_is_stolen() {
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
    assert_eq!(world.lease().unwrap().record.holder, "berta");
    assert_eq!(elector.observed.slow_path.value(), 1);
}

#[tokio::test(start_paused = true)]
async fn leader_recreates_deleted_lease() {
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
async fn candidate_waits_out_a_deleted_lease() {
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
async fn elector_leads_again_after_writes_were_refused() {
    let world = World::default();
    let path = path(&world);
    let elector = elector("anna", &path, 1.0);
    let work = async |leadership: Leadership| {
        path.change(|trouble| trouble.refused = true);
        leadership.ended().await;
    };
    elector.run(work).await.unwrap_err();
    assert!(timeout(secs(60), elector.run(async |_| ())).await.is_err(), "candidate leads without a lease");
    path.change(|trouble| trouble.refused = false);
    elector.run(async |_| ()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn leader_keeps_lease_on_slow_server() {
    let world = World::default();
    let path = path(&world);
    path.change(|trouble| trouble.slow = secs(2));
    let elector = elector("anna", &path, 1.0);
    let outcome =
        elector.run(async |leadership: Leadership| timeout(secs(300), leadership.ended()).await.is_err()).await;
    assert!(outcome.unwrap());
}

#[tokio::test(start_paused = true)]
async fn elector_reports_leadership_in_health_and_metrics() {
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
            // The lease cannot be renewed while the work blocks its thread.
            tokio::time::advance(secs(16)).await;
            assert!(elector.check(Duration::ZERO).is_err());
            assert!(elector.check(secs(20)).is_ok());
        })
        .await
        .ok();
    assert!(registry.render().contains(&line(0)));
    assert!(elector.check(Duration::ZERO).is_ok());
}

#[tokio::test(start_paused = true)]
async fn candidate_that_never_led_makes_no_request_at_shutdown() {
    let world = World::default();
    let path = path(&world);
    path.change(|trouble| trouble.cut = true);
    let started = Instant::now();
    let outcome = elector("anna", &path, 1.0).run_until(sleep(secs(7)), async |_| ()).await;
    assert_eq!(outcome.unwrap(), None);
    // A request to release the lease would have to time out first.
    assert_eq!(started.elapsed(), secs(7));
}

#[tokio::test(start_paused = true)]
async fn candidate_releases_lease_acquired_without_a_response() {
    let world = World::default();
    world.overwrite("");
    let path = path(&world);
    let elector = elector("anna", &path, 1.0);
    let signal = async {
        // The write that acquires the lease is stored, and its response is on the way.
        while world.lease().is_none_or(|lease| lease.record.holder != "anna") {
            sleep(Duration::from_millis(1)).await;
        }
    };
    path.change(|trouble| trouble.slow = secs(2));
    let outcome = elector.run_until(signal, async |_| ()).await;
    assert_eq!(outcome.unwrap(), None);
    assert_eq!(world.lease().unwrap().record.holder, "");
}

/// A lock whose first write is on its way until the test lets it arrive. The server processes it even if its sender has
/// given up.
#[derive(Clone, Default)]
struct LateLock {
    world: World,
    later_write: Arc<AtomicBool>,
    sent: Arc<Notify>,
    arrives: Arc<Notify>,
    processed: Arc<Notify>,
}

impl LateLock {
    async fn write(&self, expected: Option<&str>, record: &LeaderRecord) -> Result<VersionedRecord, Error> {
        if self.later_write.swap(true, Ordering::Relaxed) {
            return self.world.write(expected, record.clone());
        }
        let (lock, expected, record) = (self.clone(), expected.map(str::to_owned), record.clone());
        tokio::spawn(async move {
            lock.arrives.notified().await;
            let _ = lock.world.write(expected.as_deref(), record);
            lock.processed.notify_one();
        });
        self.sent.notify_one();
        std::future::pending().await
    }
}

impl LeaderLock for LateLock {
    async fn get(&self) -> Result<Option<VersionedRecord>, Error> {
        Ok(self.world.lease())
    }

    async fn create(&self, record: &LeaderRecord) -> Result<VersionedRecord, Error> {
        self.write(None, record).await
    }

    async fn update(&self, version: &str, record: &LeaderRecord) -> Result<VersionedRecord, Error> {
        self.write(Some(version), record).await
    }

    fn name(&self) -> String {
        "late".to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn canceled_write_cannot_take_the_lease_later() {
    for lease_exists in [true, false] {
        let lock = LateLock::default();
        if lease_exists {
            lock.world.overwrite("");
        }
        let options = ElectionOptions::default().registry(Registry::new());
        let elector = LeaderElector::new(lock.clone(), "anna", options).unwrap();
        let outcome = elector.run_until(lock.sent.notified(), async |_| unreachable!("candidate leads")).await;
        assert_eq!(outcome.unwrap(), None::<()>);
        lock.arrives.notify_one();
        lock.processed.notified().await;
        assert_eq!(lock.world.lease().unwrap().record.holder, "", "lease is held by a candidate that gave up");
    }
}

#[tokio::test(start_paused = true)]
async fn token_is_higher_if_the_same_identity_acquires_again() {
    let world = World::default();
    let mut elector = elector("anna", &path(&world), 1.0);
    elector.options = elector.options.keep_lease();
    let token = async || elector.run(async |leadership: Leadership| leadership.token()).await.unwrap();
    assert!(token().await < token().await);
}

#[tokio::test(start_paused = true)]
async fn token_is_higher_after_the_lease_was_deleted() {
    let world = World::default();
    world.overwrite("");
    let elector = elector("anna", &path(&world), 1.0);
    let token = async || elector.run(async |leadership: Leadership| leadership.token()).await.unwrap();
    let first = token().await;
    world.put(None);
    assert!(first < token().await);
}

#[tokio::test(start_paused = true)]
async fn work_is_not_polled_after_the_machine_was_suspended() {
    let world = World::default();
    let mut elector = elector("anna", &path(&world), 1.0);
    let since_boot = Arc::new(Mutex::new(secs(1000)));
    let read = Arc::clone(&since_boot);
    elector.options.clock = Clock::new(move || *read.lock().unwrap());
    let work = async |leadership: Leadership| {
        assert!(leadership.is_valid());
        // Longer than the renew deadline, but not than the last moment of work.
        *since_boot.lock().unwrap() += secs(11);
        assert!(!leadership.is_valid() && leadership.may_run());
        leadership.ended().await;
        *since_boot.lock().unwrap() += secs(3600);
        assert!(!leadership.may_run());
        tokio::task::yield_now().await;
        unreachable!("work goes on although another process can lead")
    };
    let error = elector.run(work).await.unwrap_err();
    assert_eq!(error.to_string(), "leadership of simulated was lost");
}

#[tokio::test(start_paused = true)]
async fn leader_changes_yields_current_leader_and_each_new_one() {
    let world = World::default();
    world.overwrite("berta");
    let elector = elector("anna", &path(&world), 1.0);
    let mut changes = elector.leader_changes();
    assert_eq!(changes.next().await, Some(None));
    let leaders = async {
        let mut leaders = Vec::new();
        for _ in 0..3 {
            leaders.push(changes.next().await.unwrap());
        }
        leaders
    };
    let (led, leaders) = tokio::join!(elector.run(async |_| sleep(secs(1)).await), leaders);
    led.unwrap();
    assert_eq!(leaders, [Some("berta".to_owned()), Some("anna".to_owned()), None]);
    drop(elector);
    assert_eq!((changes.next().await, changes.next().await), (None, None));
}

//! Several candidates under partitions, packet loss, delays, suspended processes and drifting clocks.

use tokio::{
    task::JoinSet,
    time::{advance, sleep, timeout},
};

use super::{
    world::{Chance, Path, World, elector, stoppable},
    *,
};

fn simulate<F: Future>(simulation: impl FnOnce() -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(simulation())
}

/// Runs for election again and again, and acts while it leads.
async fn candidate(name: &'static str, path: Path, chance: Chance, rate: f64) {
    let elector = elector(name, &path, rate);
    loop {
        let obeys = chance.happens(0.7);
        let ends = secs(1).mul_f64(chance.between(5.0, 200.0));
        let work = async |leadership: Leadership| {
            let working = async {
                loop {
                    path.world.act(name, leadership.token());
                    sleep(Duration::from_millis(250)).await;
                    if obeys && !leadership.is_valid() {
                        return;
                    }
                }
            };
            let _ = timeout(ends, working).await;
        };
        let _ = stoppable(&path, elector.run(work)).await;
    }
}

/// Changes the faults of one candidate every few seconds.
async fn trouble(path: Path, chance: Chance) {
    loop {
        sleep(secs(1).mul_f64(chance.between(0.5, 15.0))).await;
        path.change(|trouble| {
            trouble.cut = chance.happens(0.25);
            trouble.suspended = chance.happens(0.2);
            trouble.refused = chance.happens(0.1);
            trouble.loss = if chance.happens(0.3) { chance.between(0.0, 0.6) } else { 0.0 };
            trouble.slow = secs(1).mul_f64(if chance.happens(0.3) { chance.between(0.0, 8.0) } else { 0.02 });
        });
    }
}

fn run(seed: u64) -> u64 {
    simulate(async || {
        let (world, chance) = (World::default(), Chance::new(seed));
        let mut all = JoinSet::new();
        for name in ["anna", "berta", "clara"] {
            let path = Path::new(&world, &chance);
            // Up to six minutes per hour apart: far more than working clocks.
            let rate = chance.between(0.95, 1.05);
            all.spawn(candidate(name, path.clone(), chance.clone(), rate));
            all.spawn(trouble(path, chance.clone()));
        }
        // A panic of any task ends the run.
        let ended = timeout(secs(80), all.join_next()).await;
        if let Ok(Some(Err(error))) = ended {
            panic!("seed {seed}: {error}");
        }
        world.acts()
    })
}

#[test]
fn simulated_leaders_never_overlap_in_1000_runs() {
    let runs: Vec<u64> = std::thread::scope(|scope| {
        let half = |part: u64| scope.spawn(move || (0..500).map(|seed| run(2 * seed + part)).collect::<Vec<_>>());
        [half(0), half(1)].into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert_eq!(runs.len(), 1000);
    let idle = runs.iter().filter(|acts| **acts == 0).count();
    assert!(idle < 20, "no candidate led in {idle} runs");
}

#[test]
fn candidate_takes_over_within_lease_and_retry_period() {
    let mut longest = Duration::ZERO;
    for seed in 0..100 {
        let took = simulate(async || {
            let (world, chance) = (World::default(), Chance::new(seed));
            let paths = ["anna", "berta", "clara"].map(|name| (name, Path::new(&world, &chance)));
            let mut all = JoinSet::new();
            for (name, path) in paths.clone() {
                let (path, world) = (path.clone(), world.clone());
                all.spawn(async move {
                    let elector = elector(name, &path, 1.0);
                    let work = async |leadership: Leadership| {
                        loop {
                            world.act(name, leadership.token());
                            sleep(Duration::from_millis(10)).await;
                        }
                    };
                    let _: Result<(), _> = stoppable(&path, elector.run(work)).await;
                });
            }
            sleep(secs(20).mul_f64(1.0 + chance.number())).await;
            let first = world.actor().unwrap();
            let (_, path) = paths.into_iter().find(|(name, _)| *name == first).unwrap();
            path.change(|trouble| trouble.suspended = true);
            let died = Instant::now();
            while world.actor().as_ref() == Some(&first) {
                advance(Duration::from_millis(10)).await;
                tokio::task::yield_now().await;
                assert!(died.elapsed() < secs(60), "no candidate takes over");
            }
            died.elapsed()
        });
        longest = longest.max(took);
    }
    // The tolerance is one step of the clock and one of the simulation.
    assert!(longest <= secs(17) + Duration::from_millis(50), "{longest:?}");
}

//! One world: its plan from a seed, its run through phases of faults, and the checks at its end.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant as RealInstant},
};

use anyhow::Result;
use klient::{Client, ObjectKey, metrics::Registry};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::{
    checks,
    controllers::Mirror,
    electors::{Acts, Candidate},
    faults::Fault,
    observers::{AnyObserver, Manner, ONE_NAME, Setup},
    report::{PhaseReport, WorldReport},
    rng::Rng,
    site::Site,
    truth::{Fresh, Truth, Watched},
    weather::{Active, Role, Scope, Weather},
    widget,
    writers::{self, Acks, Pace, Writer},
};

/// The sorts of worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The embedded server on one thread, with a paused clock.
    Embedded,
    /// The embedded server on two threads, in real time.
    Threaded,
    /// The real server.
    Real,
}

/// A phase: one or two faults for a time.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) faults: Vec<Fault>,
    length: Duration,
    scope: Scope,
    chance: u64,
}

/// The plan of a world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) mode: Mode,
    pub(crate) is_durable: bool,
    informers: Vec<Setup>,
    writers: u8,
    candidates: u8,
    has_controller: bool,
    pace: Pace,
    phases: Vec<Phase>,
    rng: Rng,
}

impl Plan {
    /// Draws the plan of a seed.
    pub(crate) fn new(seed: u64, mode: Mode) -> Self {
        let mut rng = Rng::new(seed);
        let is_quick = mode != Mode::Embedded;
        let slowness = if is_quick { (1, 40) } else { (30, 1500) };
        let informers = (0..rng.range(2, 6)).map(|_| Setup::draw(&mut rng, slowness)).collect();
        let (writers, candidates) = (rng.range(1, 4), if rng.percent(60) { rng.range(2, 4) } else { 0 });
        let catalogue = match mode {
            Mode::Embedded => Fault::EMBEDDED,
            Mode::Threaded => Fault::THREADED,
            Mode::Real => Fault::REAL,
        };
        let pace = if is_quick {
            Pace { shortest: 1, longest: rng.range(5, 60) }
        } else {
            Pace { shortest: 5, longest: rng.range(100, 3000) }
        };
        let phases = (0..rng.range(2, 6)).map(|_| Phase::draw(&mut rng, catalogue, mode, candidates)).collect();
        Self {
            seed,
            mode,
            is_durable: mode == Mode::Embedded && rng.percent(12),
            informers,
            writers: u8::try_from(writers).unwrap_or(1),
            candidates: u8::try_from(candidates).unwrap_or(0),
            has_controller: rng.percent(70),
            pace,
            phases,
            rng,
        }
    }
}

impl Phase {
    fn draw(rng: &mut Rng, catalogue: &[Fault], mode: Mode, candidates: u64) -> Self {
        let mut faults = vec![rng.pick(catalogue)];
        if rng.percent(25) {
            let second = rng.pick(catalogue);
            if !faults.contains(&second) {
                faults.push(second);
            }
        }
        let scope = match rng.range(0, 10) {
            0..4 => Scope::All,
            4..6 => Scope::Watches,
            6 | 7 => Scope::NotWatches,
            8 if candidates > 0 => Scope::Only(Role::Elector(u8::try_from(rng.range(0, candidates)).unwrap_or(0))),
            _ => Scope::Only(Role::Informer(0)),
        };
        let length = match mode {
            Mode::Embedded => rng.millis(5_000, 150_000),
            Mode::Threaded => rng.millis(100, 700),
            Mode::Real => rng.millis(1_000, 6_000),
        };
        Self { faults, length, scope, chance: rng.pick(&[20, 50, 80, 100]) }
    }
}

/// Everything that runs in a world.
struct World {
    plan: Plan,
    site: Site,
    weather: Arc<Weather>,
    direct: Client,
    truth: Truth,
    observers: Vec<Box<dyn AnyObserver>>,
    mirror: Option<Mirror>,
    acks: Acks,
    acts: Acts,
    writers: Vec<JoinHandle<()>>,
    candidates: Vec<JoinHandle<()>>,
    follow: Vec<JoinHandle<()>>,
    stop_writers: watch::Sender<bool>,
    stop: watch::Sender<bool>,
    is_faulty: watch::Sender<bool>,
    poison: watch::Sender<bool>,
    rng: Rng,
}

/// Runs a world to its end.
pub(crate) async fn run(plan: Plan, site: Site, weather: Arc<Weather>, registry: &Registry) -> WorldReport {
    let started = (Instant::now(), RealInstant::now());
    let mut report = WorldReport::new(&plan);
    if let Err(error) = run_in(plan, site, weather, registry, &mut report).await {
        report.failures.push(format!("{error:#}"));
    }
    (report.virtual_time, report.real_time) = (started.0.elapsed(), started.1.elapsed());
    report
}

async fn run_in(
    plan: Plan,
    site: Site,
    weather: Arc<Weather>,
    registry: &Registry,
    report: &mut WorldReport,
) -> Result<()> {
    let mut world = World::start(plan, site, weather, registry).await?;
    for phase in world.plan.phases.clone() {
        let told = world.play(&phase).await?;
        report.failures.extend(told.excess());
        report.phases.push(told);
    }
    world.heal().await?;
    let fresh = world.converge(report).await?;
    world.check(&fresh, report);
    if world.plan.mode == Mode::Threaded {
        report.failures.extend(world.stalled_by_handler().await?);
    }
    world.stop(report).await;
    Ok(())
}

impl World {
    async fn start(plan: Plan, site: Site, weather: Arc<Weather>, registry: &Registry) -> Result<Self> {
        let mut rng = plan.rng.clone();
        let namespace = site.namespace().to_owned();
        let direct = site.direct()?;
        site.prepare(&direct).await?;
        widget::install(&direct, &namespace).await?;
        let truth = Truth::default();
        let mut follow = Vec::new();
        for watched in Watched::ALL {
            let api = watched.api(&direct, &namespace);
            follow.push(tokio::spawn(truth.clone().follow(watched, api)));
        }
        let (stop, is_faulty, poison) =
            (watch::Sender::new(false), watch::Sender::new(true), watch::Sender::new(false));
        let mut world = Self {
            weather,
            direct,
            truth,
            observers: Vec::new(),
            mirror: None,
            acks: Acks::default(),
            acts: Acts::default(),
            writers: Vec::new(),
            candidates: Vec::new(),
            follow,
            stop_writers: watch::Sender::new(false),
            stop,
            is_faulty,
            poison,
            rng: rng.fork(),
            plan,
            site,
        };
        // Some objects exist before the informers start.
        for watched in Watched::ALL {
            world.truth.settle(watched, &watched.api(&world.direct, &namespace)).await?;
        }
        world.start_parts(&namespace, registry, &mut rng)?;
        Ok(world)
    }

    fn start_parts(&mut self, namespace: &str, registry: &Registry, rng: &mut Rng) -> Result<()> {
        for id in 0..self.plan.writers {
            let writer = Writer {
                id,
                client: self.site.client(Role::Writer(id))?,
                namespace: namespace.to_owned(),
                rng: rng.fork(),
                acks: self.acks.clone(),
                poison: self.poison.subscribe(),
                pace: self.plan.pace,
            };
            self.writers.push(tokio::spawn(writer.run(self.stop_writers.subscribe())));
        }
        for (id, setup) in self.plan.informers.clone().into_iter().enumerate() {
            let client = self.site.client(Role::Informer(u8::try_from(id).unwrap_or(0)))?;
            let mut observer = setup.start(&client, namespace);
            for _ in 0..rng.range(1, 4) {
                observer.add_handler(self.manner(rng), rng.fork());
            }
            if id == 0 && self.plan.mode == Mode::Threaded {
                observer.add_handler(Manner::Blocking, rng.fork());
            }
            self.observers.push(observer);
        }
        if self.plan.has_controller {
            let client = self.site.client(Role::Controller)?;
            let (is_faulty, stop) = (self.is_faulty.subscribe(), self.stop.subscribe());
            self.mirror = Some(Mirror::start(&client, namespace, registry, rng.fork(), is_faulty, stop));
        }
        for id in 0..self.plan.candidates {
            let candidate = Candidate {
                id,
                client: self.site.client(Role::Elector(id))?,
                namespace: namespace.to_owned(),
                registry: registry.clone(),
                rng: rng.fork(),
                acts: self.acts.clone(),
            };
            self.candidates.push(tokio::spawn(candidate.run(self.stop.subscribe())));
        }
        Ok(())
    }

    fn manner(&self, rng: &mut Rng) -> Manner {
        match self.plan.mode {
            Mode::Threaded => rng.pick(&[Manner::Fast, Manner::Panicking]),
            _ => rng.pick(&[Manner::Fast, Manner::Fast, Manner::Resynced, Manner::Panicking, Manner::Slow]),
        }
    }

    /// Inflicts the faults of a phase, and counts the requests of each informer.
    async fn play(&mut self, phase: &Phase) -> Result<PhaseReport> {
        let started = Instant::now();
        let before = self.weather.requests();
        let active = |fault: &Fault| Active { fault: *fault, scope: phase.scope, chance: phase.chance };
        self.weather.set(phase.faults.iter().map(active).collect());
        self.poison.send_replace(phase.faults.contains(&Fault::Poison));
        let mut strikes = 0;
        while started.elapsed() < phase.length {
            let left = phase.length.saturating_sub(started.elapsed());
            let (low, high) = self.site.ticks();
            tokio::time::sleep(self.rng.millis(low, high).min(left)).await;
            for fault in &phase.faults {
                strikes += self.strike(*fault).await?;
            }
        }
        self.weather.set(Vec::new());
        let seconds = started.elapsed().as_secs_f64();
        let after = self.weather.requests();
        let sent = |role: &Role| after.get(role).copied().unwrap_or(0) - before.get(role).copied().unwrap_or(0);
        let informers = after.keys().filter(|role| matches!(role, Role::Informer(_)));
        let most = informers.map(sent).max().unwrap_or(0);
        let limit = phase.faults.iter().map(|fault| fault.limit().of(seconds, strikes)).sum();
        Ok(PhaseReport { faults: phase.faults.clone(), seconds, strikes, most, limit })
    }

    /// Inflicts what does not depend on single requests. Returns the number of times that connections may have been lost.
    async fn strike(&mut self, fault: Fault) -> Result<u64> {
        let rng = &mut self.rng;
        match fault {
            Fault::Quiet | Fault::Poison => return Ok(0),
            Fault::Refused
            | Fault::Cut
            | Fault::HalfOpen
            | Fault::Stalled
            | Fault::Trickle
            | Fault::Truncated
            | Fault::Corrupted
            | Fault::Gone
            | Fault::GoneInStream
            | Fault::TooManyRequests
            | Fault::TooManyRequestsBare
            | Fault::Unavailable
            | Fault::UnavailableBare
            | Fault::RetryAfterDay
            | Fault::ErrorStorm => {
                if !rng.percent(40) {
                    return Ok(0);
                }
                self.weather.cut_all();
            }
            Fault::Restart if rng.percent(30) => self.site.restart(rng).await?,
            Fault::Compaction if rng.percent(50) => {
                self.site.compact(&self.direct).await?;
                if rng.percent(50) {
                    self.weather.cut_all();
                }
            }
            Fault::TokenRotation if rng.percent(40) => self.site.rotate_token()?,
            Fault::CertificateRotation if rng.percent(40) => self.site.rotate_certificate().await?,
            Fault::ClockJump if rng.percent(30) => self.site.jump(rng).await,
            Fault::Wire => self.site.disturb(rng),
            Fault::DefinitionRemoved if rng.percent(25) => {
                widget::remove(&self.direct).await?;
                let (low, high) = self.site.ticks();
                tokio::time::sleep(rng.millis(low, high * 4)).await;
                widget::install(&self.direct, self.site.namespace()).await?;
            }
            Fault::HandlerChurn => {
                let index = usize::try_from(rng.range(0, self.observers.len() as u64)).unwrap_or(0);
                let (adds, seed) = (rng.percent(60), rng.fork());
                let mut rng = seed;
                let manner = self.manner(&mut rng);
                let observer = &mut self.observers[index];
                if adds {
                    observer.add_handler(manner, rng);
                } else {
                    observer.remove_handler(&mut rng);
                }
                return Ok(0);
            }
            _ => return Ok(0),
        }
        Ok(1)
    }

    /// Ends all faults, and waits for the writers.
    async fn heal(&mut self) -> Result<()> {
        self.weather.set(Vec::new());
        self.site.calm();
        self.poison.send_replace(false);
        self.is_faulty.send_replace(false);
        self.stop_writers.send_replace(true);
        for writer in self.writers.drain(..) {
            let _ = writer.await;
        }
        writers::write_last(&self.direct, self.site.namespace(), "last").await?;
        Ok(())
    }

    /// Waits until everything agrees with the server, and returns the server's objects.
    async fn converge(&self, report: &mut WorldReport) -> Result<BTreeMap<Watched, Fresh>> {
        let started = Instant::now();
        let limit = self.site.patience();
        let (mut pause, mut is_resynced) = (Duration::from_millis(50), false);
        loop {
            let mut fresh = BTreeMap::new();
            for watched in Watched::ALL {
                let api = watched.api(&self.direct, self.site.namespace());
                fresh.insert(watched, self.truth.settle(watched, &api).await?);
            }
            let problems = self.differences(&fresh).await;
            if problems.is_empty() || started.elapsed() > limit {
                report.failures.extend(problems.into_iter().map(|problem| format!("after {limit:?}: {problem}")));
                return Ok(fresh);
            }
            let is_late = started.elapsed() > limit / 2;
            if is_late
                && !is_resynced
                && let Some(mirror) = &self.mirror
            {
                is_resynced = true;
                let fresh = &fresh[&Watched::ConfigMaps];
                report.resyncs += mirror.resync(&self.direct, self.site.namespace(), fresh).await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.site.longest_pause());
        }
    }

    async fn differences(&self, fresh: &BTreeMap<Watched, Fresh>) -> Vec<String> {
        let mut problems = Vec::new();
        for observer in &self.observers {
            let found = observer.differences(&self.truth, fresh);
            let status = observer.status();
            let error = status.last_error.unwrap_or_default();
            let describe = |problem| format!("{} ({:?}, {error}): {problem}", observer.describe(), status.state);
            problems.extend(found.into_iter().map(describe));
        }
        if let Some(mirror) = &self.mirror {
            let found = mirror.differences(&self.direct, self.site.namespace(), &fresh[&Watched::ConfigMaps]).await;
            problems.extend(found);
        }
        if self.plan.candidates > 0 && !self.acts.has_acted_within(Duration::from_secs(2)) {
            problems.push("election: there is no leader".to_owned());
        }
        problems
    }

    fn check(&self, fresh: &BTreeMap<Watched, Fresh>, report: &mut WorldReport) {
        for observer in &self.observers {
            let found = observer.impossible(&self.truth, fresh);
            let describe = |problem| format!("{}: {problem}", observer.describe());
            report.failures.extend(found.into_iter().map(describe));
            report.events += observer.events();
            report.relists += observer.status().relists.values().sum::<u64>();
        }
        report.failures.extend(self.acks.lost(&self.truth, fresh));
        report.failures.extend(self.acts.conflicts());
        report.failures.extend(self.weather.take_violations());
        report.writes = self.acks.len();
        report.terms = self.acts.terms();
        report.requests = self.weather.requests().values().sum();
        if let Some(mirror) = &self.mirror {
            let status = mirror.status();
            report.reconciles = status.succeeded + status.failed;
        }
    }

    /// Returns the informers whose cache waited for the handler that blocks its thread.
    async fn stalled_by_handler(&self) -> Result<Vec<String>> {
        let (namespace, key) = (self.site.namespace(), ObjectKey::namespaced(self.site.namespace(), ONE_NAME));
        let mut value = String::new();
        // The handler needs seconds for these.
        for number in 0..BUSY_WRITES {
            value = format!("busy-{number}");
            writers::write_last(&self.direct, namespace, &value).await?;
        }
        let written = Instant::now();
        let late = || self.observers.iter().filter(|observer| !observer.has_value(&key, &value));
        while late().next().is_some() && written.elapsed() < BUSY_LIMIT {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let describe = |name: String| format!("{name}: cache is {BUSY_LIMIT:?} behind a handler that blocks");
        Ok(late().map(|observer| describe(observer.describe())).collect())
    }

    /// Stops everything, and checks that no task is left.
    async fn stop(mut self, report: &mut WorldReport) {
        self.stop.send_replace(true);
        for candidate in self.candidates.drain(..) {
            let _ = candidate.await;
        }
        if let Some(mirror) = self.mirror.take()
            && let Err(problem) = mirror.stop().await
        {
            report.failures.push(problem);
        }
        for observer in &mut self.observers {
            observer.stop().await;
        }
        for task in self.follow.drain(..) {
            task.abort();
        }
        drop(self);
        report.failures.extend(checks::tasks_left().await);
    }
}

/// The number of writes for which a handler that blocks for 20 ms needs 2 s.
const BUSY_WRITES: u64 = 100;
/// The time within which caches must have these writes.
const BUSY_LIMIT: Duration = Duration::from_secs(1);

//! A simulated world: one lock, candidates whose networks fail, whose clocks run fast or slow, and which stop for a while.
//!
//! Everything happens on a paused clock in one thread, and all chance comes from one seed: a run can be repeated.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use k8s_openapi::jiff::Timestamp;
use tokio::sync::Notify;

use super::*;

/// Numbers from a seed.
#[derive(Clone)]
pub(super) struct Chance(Arc<Mutex<u64>>);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)))
    }

    /// From 0 up to 1.
    pub(super) fn number(&self) -> f64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn between(&self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.number()
    }

    pub(super) fn happens(&self, probability: f64) -> bool {
        self.number() < probability
    }
}

/// The lock that all compete for, and what has happened.
#[derive(Clone, Default)]
pub(super) struct World(Arc<Mutex<Facts>>);

#[derive(Default)]
struct Facts {
    held: Option<Held>,
    writes: u64,
    /// Who acted last, and the version with which its leadership began.
    actor: Option<(String, u64)>,
    acts: HashMap<String, u64>,
}

impl World {
    pub(super) fn held(&self) -> Option<Held> {
        self.0.lock().unwrap().held.clone()
    }

    pub(super) fn put(&self, held: Option<Held>) {
        self.0.lock().unwrap().held = held;
    }

    /// Writes as somebody else would.
    pub(super) fn overwrite(&self, holder: &str) {
        let mut facts = self.0.lock().unwrap();
        facts.writes += 1;
        let version = facts.writes.to_string();
        let now = Timestamp::now();
        let record = LeaderRecord {
            holder: holder.to_owned(),
            lease_duration: secs(15),
            acquired: now,
            renewed: now,
            transitions: 7,
        };
        facts.held = Some(Held { record, version });
    }

    /// A leader does something. Nobody may do so after a later leader has.
    pub(super) fn act(&self, who: &str, token: &FencingToken) {
        let began: u64 = token.version.parse().unwrap();
        let mut facts = self.0.lock().unwrap();
        if let Some((other, last)) = &facts.actor {
            assert!(began >= *last, "{who} of {began} acts after {other} of {last}");
            assert!(began != *last || who == other, "{who} and {other} both began with {began}");
        }
        facts.actor = Some((who.to_owned(), began));
        *facts.acts.entry(who.to_owned()).or_default() += 1;
    }

    pub(super) fn actor(&self) -> Option<String> {
        self.0.lock().unwrap().actor.clone().map(|(who, _)| who)
    }

    pub(super) fn acts(&self) -> u64 {
        self.0.lock().unwrap().acts.values().sum()
    }

    fn write(&self, expected: Option<&str>, record: LeaderRecord) -> Result<Held, Error> {
        let mut facts = self.0.lock().unwrap();
        let current = facts.held.as_ref().map(|held| held.version.as_str());
        if current != expected {
            return Err(Error::new(ErrorKind::Conflict, "it changed"));
        }
        facts.writes += 1;
        let held = Held { record, version: facts.writes.to_string() };
        facts.held = Some(held.clone());
        Ok(held)
    }
}

/// One candidate's way to the lock.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) world: World,
    trouble: Arc<Mutex<Trouble>>,
    changed: Arc<Notify>,
}

/// What is wrong with it.
#[derive(Clone)]
pub(super) struct Trouble {
    pub(super) chance: Chance,
    pub(super) cut: bool,
    /// Requests and answers take up to so long each.
    pub(super) slow: Duration,
    /// How often a request is lost, or its answer.
    pub(super) loss: f64,
    pub(super) refused: bool,
    pub(super) asleep: bool,
    /// How fast its clock is; what it reads as a duration is so much shorter.
    pub(super) rate: f64,
}

impl Path {
    pub(super) fn new(world: &World, chance: &Chance) -> Self {
        let trouble = Trouble {
            chance: chance.clone(),
            cut: false,
            slow: Duration::ZERO,
            loss: 0.0,
            refused: false,
            asleep: false,
            rate: 1.0,
        };
        Self { world: world.clone(), trouble: Arc::new(Mutex::new(trouble)), changed: Arc::default() }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Trouble)) {
        change(&mut self.trouble.lock().unwrap());
        self.changed.notify_one();
    }

    fn trouble(&self) -> Trouble {
        self.trouble.lock().unwrap().clone()
    }

    /// One way of a message: it takes a while, or is lost.
    async fn travel(&self) -> Result<(), Error> {
        let trouble = self.trouble();
        tokio::time::sleep(trouble.slow.mul_f64(trouble.chance.number())).await;
        let trouble = self.trouble();
        if trouble.cut || trouble.chance.happens(trouble.loss) {
            // As if nobody answered: whoever asks has to give up by itself.
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// A request that is done where the lock is even if whoever asked has given up.
    async fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&World) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (path, world) = (self.clone(), self.world.clone());
        let done = tokio::spawn(async move {
            path.travel().await?;
            let outcome = what(&world);
            path.travel().await?;
            outcome
        });
        done.await.unwrap()
    }

    fn read(&self, held: Held) -> Held {
        let rate = self.trouble().rate;
        let lease_duration = held.record.lease_duration.div_f64(rate);
        Held { record: LeaderRecord { lease_duration, ..held.record }, ..held }
    }

    /// What is written is the same for all clocks; times of day are nonsense.
    fn written(&self, record: &LeaderRecord) -> Result<LeaderRecord, Error> {
        let trouble = self.trouble();
        if trouble.refused {
            return Err(Error::new(ErrorKind::Forbidden, "read only"));
        }
        let nonsense = Timestamp::from_second((trouble.chance.number() * 4e9) as i64).unwrap();
        Ok(LeaderRecord { lease_duration: secs(15), renewed: nonsense, acquired: nonsense, ..record.clone() })
    }
}

impl LeaderLock for Path {
    async fn get(&self) -> Result<Option<Held>, Error> {
        let held = self.ask(|world| Ok(world.held())).await?;
        Ok(held.map(|held| self.read(held)))
    }

    async fn create(&self, record: &LeaderRecord) -> Result<Held, Error> {
        let record = self.written(record)?;
        self.ask(move |world| world.write(None, record)).await.map(|held| self.read(held))
    }

    async fn update(&self, version: &str, record: &LeaderRecord) -> Result<Held, Error> {
        let (record, version) = (self.written(record)?, version.to_owned());
        self.ask(move |world| world.write(Some(&version), record)).await.map(|held| self.read(held))
    }

    fn name(&self) -> String {
        "simulated".to_owned()
    }
}

/// A candidate, by its name, whose clock runs at that rate.
pub(super) fn elector(name: &str, path: &Path, rate: f64) -> LeaderElector<Path> {
    path.change(|trouble| trouble.rate = rate);
    let chance = path.trouble().chance;
    let mut options = ElectionOptions::default().registry(Registry::new());
    options.random = Arc::new(move || chance.number());
    let mut elector = LeaderElector::new(path.clone(), name, options).unwrap();
    for time in
        [&mut elector.options.lease_duration, &mut elector.options.renew_deadline, &mut elector.options.retry_period]
    {
        *time = time.div_f64(rate);
    }
    elector
}

/// Runs a future, but does not touch it while its process is stopped.
pub(super) async fn stoppable<F: Future>(path: &Path, process: F) -> F::Output {
    let mut process = pin!(process);
    loop {
        if path.trouble().asleep {
            path.changed.notified().await;
            continue;
        }
        tokio::select! {
            biased;
            () = path.changed.notified() => {}
            output = &mut process => return output,
        }
    }
}

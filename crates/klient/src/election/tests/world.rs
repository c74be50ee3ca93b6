//! A simulated world: one lock, and candidates with network faults, drifting clocks and suspended processes.
//!
//! Everything runs on a paused clock in one thread, and all randomness comes from one seed, so that a run can be repeated.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use k8s_openapi::jiff::Timestamp;
use tokio::sync::Notify;

use super::*;

/// A random number generator with a seed.
#[derive(Clone)]
pub(crate) struct Chance(Arc<Mutex<u64>>);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)))
    }

    /// Returns a number from 0 up to 1.
    pub(crate) fn number(&self) -> f64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn between(&self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.number()
    }

    pub(crate) fn happens(&self, probability: f64) -> bool {
        self.number() < probability
    }
}

/// The lock that all candidates compete for, and the history of leaders' actions.
#[derive(Clone, Default)]
pub(super) struct World(Arc<Mutex<Facts>>);

#[derive(Default)]
struct Facts {
    lease: Option<VersionedRecord>,
    writes: u64,
    /// The leader that acted last, and the version with which its leadership began.
    actor: Option<(String, u64)>,
    acts: HashMap<String, u64>,
}

impl World {
    pub(super) fn lease(&self) -> Option<VersionedRecord> {
        self.0.lock().unwrap().lease.clone()
    }

    pub(super) fn put(&self, lease: Option<VersionedRecord>) {
        self.0.lock().unwrap().lease = lease;
    }

    /// Writes as another candidate would.
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
        facts.lease = Some(VersionedRecord { record, version });
    }

    /// Notes that a leader acts. Fails if a later leader has acted before.
    pub(super) fn act(&self, who: &str, token: FencingToken) {
        let began = token.number();
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

    pub(super) fn write(&self, expected: Option<&str>, record: LeaderRecord) -> Result<VersionedRecord, Error> {
        let mut facts = self.0.lock().unwrap();
        let current = facts.lease.as_ref().map(|lease| lease.version.as_str());
        if current != expected {
            return Err(Error::new(ErrorKind::Conflict, "lease has changed"));
        }
        facts.writes += 1;
        let lease = VersionedRecord { record, version: facts.writes.to_string() };
        facts.lease = Some(lease.clone());
        Ok(lease)
    }
}

/// One candidate's network path to the lock.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) world: World,
    trouble: Arc<Mutex<Trouble>>,
    changed: Arc<Notify>,
}

/// The faults of one candidate.
#[derive(Clone)]
pub(super) struct Trouble {
    pub(super) chance: Chance,
    pub(super) cut: bool,
    /// The longest time that a request or a response travels.
    pub(super) slow: Duration,
    /// The probability that a request or its response is lost.
    pub(super) loss: f64,
    pub(super) refused: bool,
    pub(super) suspended: bool,
    /// The rate of its clock: durations appear shorter by this factor.
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
            suspended: false,
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

    /// Delays a message, or loses it.
    async fn travel(&self) -> Result<(), Error> {
        let trouble = self.trouble();
        tokio::time::sleep(trouble.slow.mul_f64(trouble.chance.number())).await;
        let trouble = self.trouble();
        if trouble.cut || trouble.chance.happens(trouble.loss) {
            // No response ever comes: the caller has to time out.
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// Sends a request. It is processed even if the caller has given up.
    async fn send<T: Send + 'static>(
        &self,
        request: impl FnOnce(&World) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (path, world) = (self.clone(), self.world.clone());
        let done = tokio::spawn(async move {
            path.travel().await?;
            let outcome = request(&world);
            path.travel().await?;
            outcome
        });
        done.await.unwrap()
    }

    fn read(&self, lease: VersionedRecord) -> VersionedRecord {
        let rate = self.trouble().rate;
        let lease_duration = lease.record.lease_duration.div_f64(rate);
        VersionedRecord { record: LeaderRecord { lease_duration, ..lease.record }, ..lease }
    }

    /// Returns the record as it is stored: durations are real time, and times of day are random.
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
    async fn get(&self) -> Result<Option<VersionedRecord>, Error> {
        let lease = self.send(|world| Ok(world.lease())).await?;
        Ok(lease.map(|lease| self.read(lease)))
    }

    async fn create(&self, record: &LeaderRecord) -> Result<VersionedRecord, Error> {
        let record = self.written(record)?;
        self.send(move |world| world.write(None, record)).await.map(|lease| self.read(lease))
    }

    async fn update(&self, version: &str, record: &LeaderRecord) -> Result<VersionedRecord, Error> {
        let (record, version) = (self.written(record)?, version.to_owned());
        self.send(move |world| world.write(Some(&version), record)).await.map(|lease| self.read(lease))
    }

    fn name(&self) -> String {
        "simulated".to_owned()
    }
}

/// Creates a candidate whose clock runs at `rate`.
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

/// Runs a future, but does not poll it while its process is suspended.
pub(super) async fn stoppable<F: Future>(path: &Path, process: F) -> F::Output {
    let mut process = pin!(process);
    loop {
        if path.trouble().suspended {
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

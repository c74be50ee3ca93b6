//! Candidates for one lease, and a log of when each of them acted as the leader.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use klient::{
    Client,
    election::{ElectionOptions, FencingToken, LeaderElector, Leadership, LeaseLock},
    metrics::Registry,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::rng::Rng;

/// One action of a leader.
#[derive(Clone, Debug)]
struct Act {
    term: u64,
    identity: u8,
    token: FencingToken,
    at: Instant,
}

/// The actions of all leaders, in the order in which they happened.
#[derive(Clone, Default)]
pub(crate) struct Acts {
    all: Arc<Mutex<Vec<Act>>>,
}

/// A candidate.
pub(crate) struct Candidate {
    pub(crate) id: u8,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) registry: Registry,
    pub(crate) rng: Rng,
    pub(crate) acts: Acts,
}

impl Candidate {
    /// Takes part in the election until the signal. After a lost leadership, it starts again.
    pub(crate) async fn run(mut self, stop: watch::Receiver<bool>) {
        let mut round = 0;
        while !*stop.borrow() {
            round += 1;
            let lock = LeaseLock::new(self.client.clone(), &self.namespace, "leader");
            let options = ElectionOptions::default().registry(self.registry.clone());
            let Ok(elector) = LeaderElector::new(lock, format!("candidate-{}", self.id), options) else { return };
            let mut stopped = stop.clone();
            let signal = async {
                let _ = stopped.wait_for(|stop| *stop).await;
            };
            let term = u64::from(self.id) * 1_000_000 + round;
            let work = Work { term, identity: self.id, acts: self.acts.clone(), rng: self.rng.fork() };
            // Lost leadership is an error, and reported in the log of actions alone.
            let _ = elector.run_until(signal, |leadership| work.run(leadership)).await;
            if !*stop.borrow() {
                sleep(self.rng.millis(100, 3000)).await;
            }
        }
    }
}

/// The work of one term.
struct Work {
    term: u64,
    identity: u8,
    acts: Acts,
    rng: Rng,
}

impl Work {
    /// Acts until leadership ends. Every other term ignores the end, and acts until it is dropped.
    async fn run(mut self, leadership: Leadership) {
        let (resigns, is_stubborn) = (self.rng.percent(30), self.rng.percent(50));
        let (mut left, mut after_end) = (self.rng.range(5, 200), 0);
        loop {
            let token = leadership.token();
            let (term, identity) = (self.term, self.identity);
            self.acts.lock().push(Act { term, identity, token, at: Instant::now() });
            let pause = self.rng.millis(50, 900);
            tokio::select! {
                () = leadership.ended(), if !is_stubborn => return,
                () = sleep(pause) => {}
            }
            left = left.saturating_sub(1);
            after_end += u64::from(!leadership.is_valid());
            if (resigns && left == 0) || after_end > PATIENCE {
                return;
            }
        }
    }
}

impl Acts {
    fn lock(&self) -> MutexGuard<'_, Vec<Act>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of terms.
    pub(crate) fn terms(&self) -> usize {
        self.lock().iter().map(|act| act.term).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Returns whether a leader has acted within the last time span.
    pub(crate) fn has_acted_within(&self, span: Duration) -> bool {
        self.lock().last().is_some_and(|act| act.at.elapsed() <= span)
    }

    /// Returns the moments in which two leaders acted at once, and tokens that did not grow.
    pub(crate) fn conflicts(&self) -> Vec<String> {
        let acts = self.lock();
        let mut problems = Vec::new();
        let mut ended: BTreeMap<u64, usize> = BTreeMap::new();
        let mut last: Option<&Act> = None;
        for (index, act) in acts.iter().enumerate() {
            if let Some(before) = last
                && before.term != act.term
            {
                ended.insert(before.term, index);
                if act.token <= before.token {
                    problems.push(format!(
                        "election: token of candidate-{} is {}, after {} of candidate-{}",
                        act.identity, act.token, before.token, before.identity
                    ));
                }
            }
            if let Some(since) = ended.get(&act.term) {
                let other = &acts[*since];
                problems.push(format!(
                    "election: candidate-{} acted {:?} after candidate-{} had taken over",
                    act.identity,
                    act.at - other.at,
                    other.identity
                ));
                ended.remove(&act.term);
            }
            last = Some(act);
        }
        problems
    }
}

/// The number of actions after which work ends that ignores the end of its leadership. A stopped world has to end.
const PATIENCE: u64 = 10;

//! The queue behaves like a simple model of three sets and a line, as in client-go, for any sequence of calls.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use proptest::prelude::*;

use super::{super::state::DelayCause, *};

#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    AddAfter(u8, u64),
    Reschedule(u8, u64),
    Cancel(u8),
    Get,
    /// The number of one of the held items.
    Done(usize),
    RequeueAfter(usize, u64),
    Retry(usize),
    Succeed(usize),
    Advance(u64),
    Fail(u8),
    Forget(u8),
    ShutDown,
}

#[derive(Default)]
struct Model {
    line: VecDeque<u8>,
    dirty: HashSet<u8>,
    processing: HashSet<u8>,
    waiting: BTreeMap<(u64, u64), u8>,
    failures: HashMap<u8, u32>,
    /// The cause of each delay.
    causes: HashMap<u8, DelayCause>,
    now: u64,
    sequence: u64,
    over: bool,
}

impl Model {
    fn add(&mut self, key: u8) {
        if !self.over && self.dirty.insert(key) && !self.processing.contains(&key) {
            self.line.push_back(key);
        }
    }

    fn cancel(&mut self, key: u8) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|_, other| *other != key);
        self.causes.remove(&key);
        before != self.waiting.len()
    }

    fn deadline(&self, key: u8) -> Option<u64> {
        self.waiting.iter().find(|(_, other)| **other == key).map(|(at, _)| at.0)
    }

    fn after(&mut self, key: u8, delay: u64, replace: bool, cause: DelayCause) {
        if self.over {
            return;
        }
        let deadline = self.now + delay;
        let cause = self.causes.get(&key).filter(|_| !replace).map_or(cause, |old| cause.max(*old));
        if self.deadline(key).is_some_and(|old| !replace && old <= deadline) {
            self.causes.insert(key, cause);
            return;
        }
        self.cancel(key);
        self.causes.insert(key, cause);
        self.sequence += 1;
        self.waiting.insert((deadline, self.sequence), key);
    }

    fn promote(&mut self) {
        while let Some((&at, &key)) = self.waiting.first_key_value().filter(|(at, _)| at.0 <= self.now) {
            self.waiting.remove(&at);
            self.causes.remove(&key);
            self.add(key);
        }
    }

    fn get(&mut self) -> Option<u8> {
        self.promote();
        let key = self.line.pop_front()?;
        self.dirty.remove(&key);
        self.processing.insert(key);
        Some(key)
    }

    fn done(&mut self, key: u8) {
        self.processing.remove(&key);
        if self.dirty.contains(&key) {
            self.line.push_back(key);
        }
    }

    fn succeed(&mut self, key: u8) {
        self.failures.remove(&key);
        if self.causes.get(&key) == Some(&DelayCause::Retry) {
            self.cancel(key);
        }
    }

    /// Counts a failure, and returns the limiter's delay; or the rest of a delay that is pending.
    fn fail(&mut self, key: u8) -> u64 {
        let pending = self.causes.get(&key).is_some_and(|cause| *cause < DelayCause::Timer);
        if let Some(left) = self.deadline(key).and_then(|at| at.checked_sub(self.now))
            && self.processing.contains(&key)
            && pending
            && left > 0
        {
            return left;
        }
        if self.processing.contains(&key) && self.causes.get(&key) == Some(&DelayCause::Retry) {
            self.cancel(key);
        }
        let failures = self.failures.entry(key).or_default();
        *failures += 1;
        if *failures <= 2 { 3 } else { 8 }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0u8..6;
    prop_oneof![
        6 => key.clone().prop_map(Step::Add),
        3 => (key.clone(), 0u64..20).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        1 => (key.clone(), 1u64..20).prop_map(|(key, delay)| Step::Reschedule(key, delay)),
        1 => key.clone().prop_map(Step::Cancel),
        6 => Just(Step::Get),
        5 => (0usize..4).prop_map(Step::Done),
        2 => (0usize..4, 1u64..20).prop_map(|(item, delay)| Step::RequeueAfter(item, delay)),
        3 => (0usize..4).prop_map(Step::Retry),
        2 => (0usize..4).prop_map(Step::Succeed),
        3 => (0u64..15).prop_map(Step::Advance),
        2 => key.clone().prop_map(Step::Fail),
        1 => key.prop_map(Step::Forget),
        1 => Just(Step::ShutDown),
    ]
}

struct Run {
    queue: WorkQueue<u8>,
    model: Model,
    held: Vec<WorkItem<u8>>,
}

impl Run {
    fn new() -> Self {
        let limiter = FastSlow::new(Duration::from_millis(3), Duration::from_millis(8), 2);
        let queue = WorkQueue::with_options(QueueOptions::default().rate_limiter(limiter));
        Self { queue, model: Model::default(), held: Vec::new() }
    }

    async fn step(&mut self, step: Step, at: usize, steps: usize) {
        let Self { queue, model, held } = self;
        match step {
            Step::Add(key) => (queue.add(key), model.add(key)).0,
            Step::AddAfter(key, 0) => {
                queue.add_after(key, Duration::ZERO);
                model.add(key);
            }
            Step::AddAfter(key, delay) => {
                queue.add_after(key, Duration::from_millis(delay));
                model.after(key, delay, false, DelayCause::Timer);
            }
            Step::Reschedule(key, delay) => {
                queue.reschedule(key, Duration::from_millis(delay));
                model.after(key, delay, true, DelayCause::Timer);
            }
            Step::Cancel(key) => assert_eq!(queue.cancel(&key), model.cancel(key)),
            Step::Get => {
                let item = queue.try_get();
                assert_eq!(item.as_deref().copied(), model.get());
                held.extend(item);
            }
            Step::Done(item) if item < held.len() => {
                let item = held.swap_remove(item);
                model.done(*item);
            }
            Step::RequeueAfter(item, delay) if item < held.len() => {
                let item = held.swap_remove(item);
                model.succeed(*item);
                model.after(*item, delay, false, DelayCause::Timer);
                model.done(*item);
                item.requeue_after(Duration::from_millis(delay));
            }
            Step::Retry(item) if item < held.len() => {
                let item = held.swap_remove(item);
                let delay = model.fail(*item);
                model.after(*item, delay, false, DelayCause::Retry);
                model.done(*item);
                item.retry();
            }
            Step::Succeed(item) if item < held.len() => {
                let item = held.swap_remove(item);
                model.succeed(*item);
                model.done(*item);
                item.forget();
            }
            Step::Done(_) | Step::RequeueAfter(..) | Step::Retry(_) | Step::Succeed(_) => {}
            Step::Advance(time) => {
                tokio::time::advance(Duration::from_millis(time)).await;
                model.now += time;
            }
            Step::Fail(key) => {
                queue.add_rate_limited(key);
                if !model.over {
                    let delay = model.fail(key);
                    model.after(key, delay, false, DelayCause::RateLimit);
                }
            }
            Step::Forget(key) => {
                queue.forget(&key);
                model.failures.remove(&key);
            }
            // Only near the end: nothing happens after a shutdown.
            Step::ShutDown if at * 4 > steps * 3 => {
                queue.shut_down();
                (model.over, model.waiting) = (true, BTreeMap::new());
                model.causes.clear();
            }
            Step::ShutDown => {}
        }
    }

    fn check(&mut self) {
        let Self { queue, model, .. } = self;
        model.promote();
        assert_eq!(queue.len(), model.line.len());
        assert_eq!(queue.delayed(), model.waiting.len());
        assert_eq!(queue.in_process(), model.processing.len());
        let next = model.waiting.first_key_value().map(|(_, key)| *key);
        assert_eq!(queue.next_delayed().map(|(key, _)| key), next);
        if !model.over {
            (0..6).for_each(|key| assert_eq!(queue.failures(&key), *model.failures.get(&key).unwrap_or(&0)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn queue_matches_a_model(steps in prop::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut run = Run::new();
            let count = steps.len();
            for (at, step) in steps.into_iter().enumerate() {
                run.step(step, at, count).await;
                run.check();
            }
        });
    }

    #[test]
    fn done_keys_leave_no_state(keys in prop::collection::vec(0u8..20, 1..200)) {
        let queue = WorkQueue::new();
        for key in keys {
            queue.add(key);
            if key % 3 == 0 {
                drop(queue.try_get());
            }
        }
        taken(&queue);
        prop_assert_eq!(queue.stats(), QueueStats::default());
    }
}

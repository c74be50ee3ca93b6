//! Threads add, get, give up, end turns and shut down in any order; what the queue promises must hold in all of them.
//!
//! A wake-up that is lost leaves a thread waiting for ever, which shuttle reports as a deadlock.

use std::{
    future::poll_fn,
    task::{Poll, Waker},
};

use shuttle::{
    future::block_on,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};
use tokio::time::Instant;

use super::{
    core::{Core, Drainer, Getter},
    state::{Delay, DelayCause, Handed},
};

type Queue = Arc<Core<u8>>;

/// Tries a scenario with schedules at random, and with few but awkward switches.
fn explore(scenario: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(scenario, 1500);
    shuttle::check_pct(scenario, 1500, 3);
}

/// No time passes, so that every schedule gives the same when it is tried again.
fn no_time() -> Instant {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn queue() -> Queue {
    Arc::new(Core::new(false, no_time))
}

fn add(queue: &Queue, key: u8) {
    queue.add(key, None, 0);
}

async fn get(queue: &Queue) -> Option<Handed<u8>> {
    let mut getter = Getter::default();
    poll_fn(|context| queue.look(&mut getter, Some(context.waker()), |item, _| item, |_, _| {})).await
}

/// Looks once, and goes away if there is nothing.
fn glance(queue: &Queue) -> Option<Handed<u8>> {
    let mut getter = Getter::default();
    let mut look = |waker: &Waker| queue.look(&mut getter, Some(waker), |item, _| item, |_, _| {});
    let looked = block_on(poll_fn(|context| Poll::Ready(look(context.waker()))));
    thread::yield_now();
    queue.stop_getting(&mut getter);
    match looked {
        Poll::Ready(item) => item,
        Poll::Pending => None,
    }
}

async fn drained(queue: &Queue, mut drainer: Drainer) {
    poll_fn(|context| queue.poll_drained(&mut drainer, context)).await;
    queue.stop_draining(&mut drainer);
}

/// The keys in process, and the number of turns.
#[derive(Default)]
struct Watched {
    busy: [AtomicBool; 4],
    turns: AtomicUsize,
}

impl Watched {
    fn work(&self, queue: &Queue, item: &Handed<u8>) {
        assert!(!self.busy[item.key as usize].swap(true, SeqCst), "{} is in process twice", item.key);
        self.turns.fetch_add(1, SeqCst);
        thread::yield_now();
        self.busy[item.key as usize].store(false, SeqCst);
        queue.done(item.slot);
    }

    fn worker(self: &Arc<Self>, queue: &Queue) -> thread::JoinHandle<()> {
        let (watched, queue) = (Arc::clone(self), Arc::clone(queue));
        thread::spawn(move || {
            block_on(async {
                while let Some(item) = get(&queue).await {
                    watched.work(&queue, &item);
                }
            });
        })
    }
}

#[test]
fn keys_are_processed_one_at_a_time_and_all_before_the_end() {
    explore(|| {
        let (queue, watched) = (queue(), Arc::new(Watched::default()));
        let workers = [watched.worker(&queue), watched.worker(&queue)];
        let adder = thread::spawn({
            let queue = Arc::clone(&queue);
            move || [0, 1, 0].into_iter().for_each(|key| add(&queue, key))
        });
        for key in [1, 2] {
            add(&queue, key);
        }
        adder.join().unwrap();
        let drainer = queue.start_draining();
        block_on(drained(&queue, drainer));
        assert_eq!((queue.ready().0, queue.in_process()), (0, 0));
        for worker in workers {
            worker.join().unwrap();
        }
        let turns = watched.turns.load(SeqCst);
        assert!((3..=5).contains(&turns), "{turns}");
    });
}

#[test]
fn an_add_during_a_turn_makes_one_more() {
    explore(|| {
        let (queue, watched) = (queue(), Arc::new(Watched::default()));
        add(&queue, 0);
        let item = glance(&queue).unwrap();
        let workers = [watched.worker(&queue), watched.worker(&queue)];
        let adders = [0, 0].map(|key| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || add(&queue, key))
        });
        for adder in adders {
            adder.join().unwrap();
        }
        assert_eq!(watched.turns.load(SeqCst), 0);
        queue.shut_down();
        queue.done(item.slot);
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(watched.turns.load(SeqCst), 1);
    });
}

#[test]
fn those_who_give_up_pass_their_wake_up_on() {
    explore(|| {
        let (queue, watched) = (queue(), Arc::new(Watched::default()));
        let fickle = thread::spawn({
            let (queue, watched) = (Arc::clone(&queue), Arc::clone(&watched));
            move || {
                if let Some(item) = glance(&queue) {
                    watched.work(&queue, &item);
                }
            }
        });
        let steady = thread::spawn({
            let (queue, watched) = (Arc::clone(&queue), Arc::clone(&watched));
            move || {
                // One of the two keys is left for it in any case.
                let item = block_on(get(&queue)).unwrap();
                watched.work(&queue, &item);
            }
        });
        for key in [0, 1] {
            add(&queue, key);
        }
        fickle.join().unwrap();
        steady.join().unwrap();
        assert_eq!(watched.turns.load(SeqCst) + queue.ready().0, 2);
    });
}

#[test]
fn a_shutdown_reaches_everybody_whenever_it_comes() {
    explore(|| {
        let (queue, watched) = (queue(), Arc::new(Watched::default()));
        let workers = [watched.worker(&queue), watched.worker(&queue)];
        let adder = thread::spawn({
            let queue = Arc::clone(&queue);
            move || [0, 1, 0].into_iter().for_each(|key| add(&queue, key))
        });
        let drainer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let drainer = queue.start_draining();
                block_on(drained(&queue, drainer));
            }
        });
        adder.join().unwrap();
        drainer.join().unwrap();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!((queue.ready().0, queue.in_process()), (0, 0));
    });
}

#[test]
fn delayed_keys_are_handed_out_if_another_getter_is_dropped() {
    explore(|| {
        let queue = queue();
        // The key is due already, so that the getter that is woken finds it.
        let late = Delay { deadline: no_time(), priority: 0, cause: DelayCause::Timer, replace: false };
        let fickle = thread::spawn({
            let queue = Arc::clone(&queue);
            move || glance(&queue).map(|item| queue.done(item.slot)).is_some()
        });
        let steady = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let item = block_on(get(&queue)).unwrap();
                queue.done(item.slot);
            }
        });
        for key in [0, 1] {
            queue.delay(key, None, late);
        }
        fickle.join().unwrap();
        steady.join().unwrap();
    });
}

#[test]
fn a_retry_ends_the_turn_and_comes_back() {
    explore(|| {
        let (queue, watched) = (queue(), Arc::new(Watched::default()));
        add(&queue, 0);
        let retrying = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let item = block_on(get(&queue)).unwrap();
                let delay = Delay { deadline: no_time(), priority: 0, cause: DelayCause::Retry, replace: false };
                queue.done_and_delay(item.slot, delay);
            }
        });
        let other = thread::spawn({
            let (queue, watched) = (Arc::clone(&queue), Arc::clone(&watched));
            move || {
                let item = block_on(get(&queue)).unwrap();
                watched.work(&queue, &item);
            }
        });
        // Whichever comes first, the other one gets a turn: the retry, or this add.
        add(&queue, 0);
        thread::yield_now();
        add(&queue, 1);
        retrying.join().unwrap();
        other.join().unwrap();
    });
}

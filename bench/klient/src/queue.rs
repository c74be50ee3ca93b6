//! The work queue: keys that workers add, get and process, and a burst of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use bench_jobs::{Answer, Arguments, FLEET, Mark, Measured, name};
use klient::{
    ObjectKey, WorkQueue,
    workqueue::{ExponentialBackoff, QueueOptions},
};

/// Each worker adds a key and processes the next one. No key is added twice, because two adds could be merged.
pub(crate) async fn steady(arguments: &Arguments) -> Result<(Measured, Answer)> {
    let keys = keys(arguments.count);
    let queue: WorkQueue<ObjectKey> = WorkQueue::new();
    let worker = |share: Vec<usize>| {
        let (queue, keys) = (queue.clone(), Arc::clone(&keys));
        async move {
            let mut answer = Answer::default();
            for number in share {
                queue.add(keys[number].clone());
                let item = queue.get().await.context("the queue ended")?;
                process(item.key(), &mut answer);
            }
            anyhow::Ok(answer)
        }
    };
    let shares = arguments.shares();
    let mark = Mark::now()?;
    let workers: Vec<_> = shares.into_iter().map(|share| tokio::spawn(worker(share))).collect();
    let mut answer = Answer::default();
    for worker in workers {
        answer.merge(&worker.await??);
    }
    Ok((mark.measured()?, answer))
}

/// One task adds all keys as fast as it can, and workers process them.
pub(crate) async fn burst(arguments: &Arguments) -> Result<(Measured, Answer)> {
    let keys = keys(arguments.count);
    let mark = Mark::now()?;
    let queue: WorkQueue<ObjectKey> = WorkQueue::new();
    let worker = || {
        let queue = queue.clone();
        async move {
            let mut answer = Answer::default();
            while let Some(item) = queue.get().await {
                process(item.key(), &mut answer);
            }
            answer
        }
    };
    let workers: Vec<_> = (0..arguments.concurrency).map(|_| tokio::spawn(worker())).collect();
    let adder = tokio::spawn(async move {
        for key in keys.iter() {
            queue.add(key.clone());
        }
        queue.shut_down_and_drain().await;
    });
    adder.await?;
    let mut answer = Answer::default();
    for worker in workers {
        answer.merge(&worker.await?);
    }
    Ok((mark.measured()?, answer))
}

/// Each key waits up to 100 ms, fails once, and returns after the limiter's delay.
pub(crate) async fn delayed(arguments: &Arguments) -> Result<(Measured, Answer)> {
    let (keys, count) = (keys(arguments.count), arguments.count);
    let mark = Mark::now()?;
    let limiter = ExponentialBackoff::new(Duration::from_millis(5), Duration::from_secs(1000));
    let queue: WorkQueue<ObjectKey> = WorkQueue::with_options(QueueOptions::default().rate_limiter(limiter));
    let processed = Arc::new(AtomicUsize::new(0));
    let worker = || {
        let (queue, processed) = (queue.clone(), Arc::clone(&processed));
        async move {
            let mut answer = Answer::default();
            while let Some(item) = queue.get().await {
                if item.failures() == 0 {
                    item.retry();
                    continue;
                }
                process(item.key(), &mut answer);
                item.forget();
                if processed.fetch_add(1, Ordering::Relaxed) + 1 == count {
                    queue.shut_down();
                }
            }
            answer
        }
    };
    let workers: Vec<_> = (0..arguments.concurrency).map(|_| tokio::spawn(worker())).collect();
    for (key, delay) in keys.iter().zip((0..100).cycle()) {
        queue.add_after(key.clone(), Duration::from_millis(delay));
    }
    let mut answer = Answer::default();
    for worker in workers {
        answer.merge(&worker.await?);
    }
    Ok((mark.measured()?, answer))
}

fn keys(count: usize) -> Arc<[ObjectKey]> {
    (0..count).map(|number| ObjectKey::namespaced(FLEET, &name(number))).collect()
}

fn process(key: &ObjectKey, answer: &mut Answer) {
    answer.add_number(key.as_str().as_bytes().last().copied().unwrap_or_default().into());
}

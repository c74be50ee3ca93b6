//! The throughput of 1, 2 and 4 replicas in one run, on work that waits.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use tokio::time::sleep;

use super::{driver::Stage, history::History};

/// Compares the throughput of groups of different sizes.
pub(super) async fn run() -> Result<bool> {
    println!(
        "throughput: reconciles that wait {WAITS:?}, {WORKERS} workers per replica, {OBJECTS} objects, {WINDOW:?} each"
    );
    let mut stage = Stage::start(OBJECTS).await?;
    let mut first = None;
    let mut is_linear = true;
    for count in [1usize, 2, 4] {
        let missing = count - stage.replicas.len();
        stage.add_replicas(missing, WAITS, WORKERS)?;
        // The first table, or the settling of newcomers, and the moves.
        sleep(if count == 1 { Duration::from_secs(25) } else { Duration::from_secs(12) }).await;
        let began = now();
        sleep(WINDOW).await;
        let history = History::read(stage.folder.path())?;
        let shares = history.since(began);
        let rate = shares.values().sum::<usize>() as f64 / WINDOW.as_secs_f64();
        let base = *first.get_or_insert(rate);
        println!(
            "{count} replicas: {rate:.0} reconciles per second, {:.2} times as many; shares {shares:?}",
            rate / base
        );
        is_linear &= rate / base > 0.8 * count as f64;
        let overlaps = history.check(&[]).overlaps;
        overlaps.iter().take(5).for_each(|problem| println!("FAILED: {problem}"));
        is_linear &= overlaps.is_empty();
    }
    Ok(is_linear)
}

fn now() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos()
}

const OBJECTS: usize = 2000;
const WAITS: Duration = Duration::from_millis(50);
const WORKERS: usize = 8;
const WINDOW: Duration = Duration::from_secs(10);

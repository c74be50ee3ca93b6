//! The protocol of a group: its rules one by one, and whole groups in simulated worlds.

mod planning;
mod simulation;
mod world;

use std::time::Duration;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

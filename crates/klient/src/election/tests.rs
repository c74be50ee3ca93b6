//! One elector alone, and several of them in a simulated world.

mod rules;
mod simulation;
pub(crate) mod world;

use std::time::Duration;

use tokio::time::Instant;

use super::*;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

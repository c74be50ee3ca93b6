//! Time, CPU and memory of this process between two marks.

use std::time::Instant;

use anyhow::Result;
use nix::sys::{
    resource::{Usage, UsageWho, getrusage},
    time::TimeValLike as _,
};

/// A point in time.
pub struct Mark {
    at: Instant,
    usage: Usage,
}

/// What was used since a mark; memory is the peak of the whole process.
pub struct Measured {
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
    pub peak_rss_bytes: i64,
}

impl Mark {
    pub fn now() -> Result<Self> {
        Ok(Self { at: Instant::now(), usage: getrusage(UsageWho::RUSAGE_SELF)? })
    }

    pub fn measured(&self) -> Result<Measured> {
        let wall_seconds = self.at.elapsed().as_secs_f64();
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        Ok(Measured {
            wall_seconds,
            cpu_seconds: cpu_seconds(&usage) - cpu_seconds(&self.usage),
            // Linux counts in kilobytes.
            peak_rss_bytes: usage.max_rss() * 1024,
        })
    }
}

/// Of all threads, the kernel's work for them included.
fn cpu_seconds(usage: &Usage) -> f64 {
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    microseconds as f64 / 1e6
}

//! Time, CPU and memory of this process between two marks.

use std::time::Instant;

use anyhow::{Context as _, Result};
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
    /// What is resident now, where a job is about that.
    pub rss_bytes: Option<u64>,
}

/// How much of this process is in memory now.
pub fn resident() -> Result<u64> {
    status("VmRSS:")
}

/// Forgets the peak: what is resident now is the highest from here on.
pub fn forget_peak() -> Result<()> {
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

/// The highest since the peak was forgotten.
pub fn peak() -> Result<u64> {
    status("VmHWM:")
}

fn status(name: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
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
            rss_bytes: None,
        })
    }
}

/// Of all threads, the kernel's work for them included.
fn cpu_seconds(usage: &Usage) -> f64 {
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    microseconds as f64 / 1e6
}

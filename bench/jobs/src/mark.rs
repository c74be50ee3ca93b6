//! Time, CPU and memory of this process between two marks.

use std::{
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use nix::sys::{
    resource::{Usage, UsageWho, getrusage},
    time::TimeValLike as _,
};

/// A point in time.
pub struct Mark {
    at: Instant,
    /// CPU that was used before.
    cpu_seconds: f64,
    allocations: Option<Allocations>,
}

/// Resources used since a mark; memory is the peak of the whole process.
pub struct Measured {
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
    pub peak_rss_bytes: i64,
    /// Resident memory at the end, or at rest where a job is about that.
    pub rss_bytes: u64,
    /// Memory allocated and not freed at that time, where that is counted.
    pub heap_bytes: Option<u64>,
    /// The number of allocations, if they are counted.
    pub allocations: Option<u64>,
    /// The median and the 99th percentile, in microseconds.
    pub latency: Option<(f64, f64)>,
    /// The number of concurrent writes, for jobs that write.
    pub writes: Option<u64>,
}

/// The counts of an allocator since the process began.
#[derive(Clone, Copy)]
pub struct Allocations {
    /// The number of allocations.
    pub count: u64,
    /// The number of allocated bytes that are not freed.
    pub live_bytes: u64,
}

static COUNTER: OnceLock<fn() -> Allocations> = OnceLock::new();
static SLOWNESS: OnceLock<f64> = OnceLock::new();

/// Sets the function that counts allocations.
pub fn count_with(counter: fn() -> Allocations) {
    // A program has one allocator, so that only the first call has an effect.
    let _ = COUNTER.set(counter);
}

/// Slows all measured work down by a percentage, to check that the benchmark shows it.
pub(crate) fn slow_down(percent: f64) {
    let _ = SLOWNESS.set(percent);
}

/// Returns the resident memory of this process.
fn resident() -> Result<u64> {
    status("VmRSS:")
}

/// Resets the peak of resident memory to the current value.
pub fn forget_peak() -> Result<()> {
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

/// Returns the peak of resident memory since the last reset.
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
        Ok(Self { at: Instant::now(), cpu_seconds: cpu_seconds(&usage()?), allocations: allocations() })
    }

    /// Returns a mark at the start of this process, given as nanoseconds of Unix time.
    pub fn of_process(started: u64) -> Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?.saturating_sub(Duration::from_nanos(started));
        let at = Instant::now().checked_sub(since).context("the process has started before the machine")?;
        let none = COUNTER.get().map(|_| Allocations { count: 0, live_bytes: 0 });
        Ok(Self { at, cpu_seconds: 0.0, allocations: none })
    }

    pub fn measured(&self) -> Result<Measured> {
        self.idle()?;
        let wall_seconds = self.at.elapsed().as_secs_f64();
        let usage = usage()?;
        let made = |before: &Allocations| Some(allocations()?.count.saturating_sub(before.count));
        Ok(Measured {
            wall_seconds,
            cpu_seconds: cpu_seconds(&usage) - self.cpu_seconds,
            // Linux counts in kilobytes.
            peak_rss_bytes: usage.max_rss() * 1024,
            rss_bytes: resident()?,
            heap_bytes: None,
            allocations: self.allocations.as_ref().and_then(made),
            latency: None,
            writes: None,
        })
    }

    /// Wastes CPU, if this process is slowed down on purpose.
    fn idle(&self) -> Result<()> {
        let Some(percent) = SLOWNESS.get() else { return Ok(()) };
        let used = cpu_seconds(&usage()?) - self.cpu_seconds;
        let end = self.cpu_seconds + used * (1.0 + percent / 100.0);
        while cpu_seconds(&usage()?) < end {}
        Ok(())
    }
}

impl Measured {
    /// Measures memory again after a moment, when background work has ended.
    pub async fn rest(&mut self) -> Result<()> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.rss_bytes = resident()?;
        self.peak_rss_bytes = i64::try_from(peak()?)?;
        self.heap_bytes = allocations().map(|all| all.live_bytes);
        Ok(())
    }
}

fn allocations() -> Option<Allocations> {
    COUNTER.get().map(|counter| counter())
}

fn usage() -> Result<Usage> {
    Ok(getrusage(UsageWho::RUSAGE_SELF)?)
}

/// Returns the CPU time of all threads, including system time.
fn cpu_seconds(usage: &Usage) -> f64 {
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    microseconds as f64 / 1e6
}

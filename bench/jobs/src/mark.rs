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
    /// In microseconds: the middle, and what one in a hundred exceeds.
    pub latency: Option<(f64, f64)>,
    /// How many changes there were meanwhile, where a job makes some.
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
    // The first one stays: a program has one allocator.
    let _ = COUNTER.set(counter);
}

/// Makes everything that is measured take so many percent more CPU, to see that it shows.
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

    /// The start of this process, at a Unix time in nanoseconds.
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

    /// Uses CPU for nothing, if this process is to be slow.
    fn idle(&self) -> Result<()> {
        let Some(percent) = SLOWNESS.get() else { return Ok(()) };
        let used = cpu_seconds(&usage()?) - self.cpu_seconds;
        let end = self.cpu_seconds + used * (1.0 + percent / 100.0);
        while cpu_seconds(&usage()?) < end {}
        Ok(())
    }
}

impl Measured {
    /// Looks at memory a moment later, when what is done afterwards is done.
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

/// Of all threads, the kernel's work for them included.
fn cpu_seconds(usage: &Usage) -> f64 {
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    microseconds as f64 / 1e6
}

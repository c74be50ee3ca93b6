//! Runs a program that is measured: no longer than it may take, with no more memory than there is, and never beyond the end of this
//! process.

use std::{
    io::Read,
    os::unix::process::ExitStatusExt as _,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use signal_hook::consts::SIGKILL;

use super::memory;

/// How it ended, if it did not fail.
#[derive(Debug, PartialEq)]
pub(super) enum Ended {
    /// With this output.
    Printed(String),
    /// It was ended, so that the machine does not run out of memory.
    OutOfMemory,
}

/// The limits of a program.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) time: Duration,
    /// How much memory is left to the rest of the machine.
    pub(super) reserve_bytes: u64,
    /// How much of the machine's memory can be had now, where that is known.
    pub(super) available: fn() -> Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(1200), reserve_bytes: 1_000_000_000, available: memory::available }
    }
}

#[cfg(test)]
impl Limits {
    /// Whatever else runs on the machine has no part in it.
    pub(super) fn of_time_alone() -> Self {
        Self { available: || None, ..Self::default() }
    }
}

/// Runs a program to its end, with a standard input that lasts as long as this process: programs end with it.
pub(super) fn run(command: &mut Command, limits: Limits) -> Result<Ended> {
    let words = format!("{command:?}");
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().with_context(|| format!("cannot start {words}"))?;
    let mut running = Running(child);
    let printed = collect(running.0.stdout.take().context("no output")?);
    let complaints = collect(running.0.stderr.take().context("no output")?);
    let deadline = Instant::now() + limits.time;
    let status = loop {
        if let Some(status) = running.0.try_wait()? {
            break status;
        }
        if (limits.available)().is_some_and(|available| available < limits.reserve_bytes) {
            return Ok(Ended::OutOfMemory);
        }
        if Instant::now() > deadline {
            bail!("{words} does not end within {} seconds", limits.time.as_secs());
        }
        // Another process is at work: there is nothing to be told by.
        thread::sleep(LOOK);
    };
    let text = |reader: JoinHandle<Vec<u8>>| String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned();
    let (printed, complaints) = (text(printed), text(complaints));
    if status.signal() == Some(SIGKILL) {
        // Only the kernel does that: a failing program ends with an error instead.
        return Ok(Ended::OutOfMemory);
    }
    if !status.success() {
        bail!("{words} failed: {status}: {}", complaints.trim());
    }
    Ok(Ended::Printed(printed))
}

/// A child that ends with this, if it did not before.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // If it is gone already, so be it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        // What was read until it broke is all that there is.
        let _ = from.read_to_end(&mut all);
        all
    })
}

/// How often the program and the memory are looked at.
const LOOK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failure_is_told_with_what_the_program_said() {
        let ended = run(&mut shell("echo fine"), Limits::of_time_alone()).unwrap();
        assert_eq!(ended, Ended::Printed("fine\n".to_owned()));
        let error =
            run(&mut shell("echo the port is in use >&2; exit 3"), Limits::of_time_alone()).unwrap_err().to_string();
        assert!(error.contains("the port is in use") && error.contains("exit status: 3"), "{error}");
        let missing = run(&mut Command::new("/nowhere/program"), Limits::of_time_alone()).unwrap_err().to_string();
        assert!(missing.contains("cannot start") && missing.contains("/nowhere/program"), "{missing}");
    }

    #[test]
    fn a_program_is_ended_before_memory_is() {
        let limits = Limits { available: || Some(1000), ..Limits::default() };
        assert_eq!(run(&mut shell("exec sleep 1000"), limits).unwrap(), Ended::OutOfMemory);
        // The kernel was faster.
        assert_eq!(run(&mut shell("kill -9 $$"), Limits::of_time_alone()).unwrap(), Ended::OutOfMemory);
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let limits = Limits { time: Duration::ZERO, ..Limits::of_time_alone() };
        let error = run(&mut shell("exec sleep 1000"), limits).unwrap_err().to_string();
        assert!(error.contains("does not end"), "{error}");
    }

    #[test]
    fn standard_input_lasts_as_long_as_the_owner() {
        // It would print at once if there were none.
        let limits = Limits { time: Duration::from_millis(200), ..Limits::of_time_alone() };
        assert!(run(&mut shell("cat >/dev/null; echo over"), limits).is_err());
    }
}

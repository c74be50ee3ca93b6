//! Runs a measured program with limits of time and memory. The program ends with this process at the latest.

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

/// The outcome of a program that did not fail.
#[derive(Debug, PartialEq)]
pub(super) enum Ended {
    /// The program succeeded, with this standard output.
    Printed(String),
    /// The program was killed, before or because the machine ran out of memory.
    OutOfMemory,
}

/// The limits of a program.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) time: Duration,
    /// The amount of memory that must stay available to the rest of the machine.
    pub(super) reserve_bytes: u64,
    /// The function that returns the amount of memory that is available now, if known.
    pub(super) available: fn() -> Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(1200), reserve_bytes: 1_000_000_000, available: memory::available }
    }
}

#[cfg(test)]
impl Limits {
    /// Returns limits without a check of memory, so that other load on the machine cannot fail a test.
    pub(super) fn of_time_alone() -> Self {
        Self { available: || None, ..Self::default() }
    }
}

/// Runs a program until it exits. Its standard input stays open as long as this process runs, and the program ends with it.
pub(super) fn run(command: &mut Command, limits: Limits) -> Result<Ended> {
    let words = format!("{command:?}");
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().with_context(|| format!("cannot start {words}"))?;
    let mut running = Running(child);
    let printed = collect(running.0.stdout.take().context("standard output is not piped")?);
    let complaints = collect(running.0.stderr.take().context("standard error is not piped")?);
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
        // Neither the end of the program nor the use of memory can be awaited here, so both are polled.
        thread::sleep(LOOK);
    };
    let text = |reader: JoinHandle<Vec<u8>>| String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned();
    let (printed, complaints) = (text(printed), text(complaints));
    if status.signal() == Some(SIGKILL) {
        // Only the kernel's OOM killer sends SIGKILL. A failing program exits with an error.
        return Ok(Ended::OutOfMemory);
    }
    if !status.success() {
        bail!("{words} failed: {status}: {}", complaints.trim());
    }
    Ok(Ended::Printed(printed))
}

/// A child process that is killed on drop if it still runs.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that the child has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        // After a read error, the bytes so far are the best available output.
        let _ = from.read_to_end(&mut all);
        all
    })
}

/// The interval at which the program and the memory are polled.
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
        // SIGKILL is treated as the kernel's OOM killer.
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
        // With a closed standard input, the script would print and exit at once.
        let limits = Limits { time: Duration::from_millis(200), ..Limits::of_time_alone() };
        assert!(run(&mut shell("cat >/dev/null; echo over"), limits).is_err());
    }
}

//! Child processes that end with their owner, together with their own children, even if the owner is killed.
//!
//! A child runs below a shell that reads from a pipe. The pipe closes when the owner drops its end, exits or is killed.
//! The shell then kills the process group of the child.

use std::{
    ffi::OsStr,
    io,
    process::{Command, ExitStatus, Stdio},
};

/// Returns a command that runs a program until the program exits or the standard input of the command closes.
///
/// The owner holds the other end of that standard input. The program itself reads from `/dev/null`. `Child::wait` closes the
/// standard input: call `stdin.take()` first and keep the result if the program must continue.
pub fn kept(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", KEEPER, "keeper"]).arg(program).stdin(Stdio::piped());
    command
}

/// Runs a program until it exits, or until this process ends.
///
/// # Errors
///
/// Returns an error if the program cannot be started.
pub fn run_kept(command: &mut Command) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    let held = child.stdin.take();
    let status = child.wait()?;
    drop(held);
    // Shells use this code for a program that is not found.
    if status.code() == Some(127) { Err(io::ErrorKind::NotFound.into()) } else { Ok(status) }
}

/// A script that runs its arguments until they exit or standard input closes.
///
/// The shell ignores signals to all processes of a terminal or a job, because it must not end before its child. If `setsid`
/// is installed, such a signal does not reach the child either.
const KEEPER: &str = r#"
trap '' INT TERM HUP
exec 3<&0
own_group=$(command -v setsid)
$own_group "$@" </dev/null 3<&- &
child=$!
{ read -r line; kill -9 "-$child" || kill -9 "$child"; } <&3 2>/dev/null &
watcher=$!
exec 3<&-
wait "$child" 2>/dev/null
code=$?
kill -9 "$watcher" 2>/dev/null
exit "$code"
"#;

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use super::*;

    #[test]
    fn what_a_child_has_started_ends_with_it() {
        let script = "{ sleep 60; echo it goes on; } & echo started; wait";
        let mut child = kept("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "started");
        child.wait().unwrap();
        // The pipe closed before the background process printed its message.
        assert!(lines.next().is_none());
    }

    #[test]
    fn a_child_runs_to_its_end_where_it_is_told_to() {
        let status = run_kept(
            kept("sh").args(["-c", "test \"$PWD $WHAT\" = '/ x' && exit 3"]).current_dir("/").env("WHAT", "x"),
        );
        assert_eq!(status.unwrap().code(), Some(3));
        let missing = run_kept(kept("/nowhere/program").stderr(Stdio::null()));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

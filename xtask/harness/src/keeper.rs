//! Children that do not outlive their owner, even if that is killed, and neither does what they have started.
//!
//! A child runs below a shell that holds the end of a pipe. The pipe closes when the owner lets go of it or ends in any
//! other way, and the shell then kills the child with the rest of its group.

use std::{
    ffi::OsStr,
    io,
    process::{Command, ExitStatus, Stdio},
};

/// A program that ends when the standard input of what is started here does: that belongs to the owner, and is not the program's.
///
/// `Child::wait` closes it: take it out before, if the program is to go on.
pub fn kept(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", KEEPER, "keeper"]).arg(program).stdin(Stdio::piped());
    command
}

/// Runs a program to its end, or to that of this process.
///
/// # Errors
///
/// If it cannot be started.
pub fn run_kept(command: &mut Command) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    let held = child.stdin.take();
    let status = child.wait()?;
    drop(held);
    // As shells say it.
    if status.code() == Some(127) { Err(io::ErrorKind::NotFound.into()) } else { Ok(status) }
}

/// Runs its arguments until they end or standard input does.
///
/// A signal to all processes of a terminal or a job must not end it before its child, and where there is `setsid` it does not get
/// to the child at all.
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
        // The other end was closed without a message.
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

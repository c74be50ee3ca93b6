//! A server process that writes a log and ends with its owner.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
};

use anyhow::{Context, Result};

use crate::kept;

/// A started server. It ends when this value is dropped, and with this process.
pub(crate) struct Process {
    shell: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program, and appends its output to the log.
    pub(crate) fn spawn(program: &Path, arguments: &[String], log: &Path) -> Result<Self> {
        let file = fs::File::options().create(true).append(true).open(log)?;
        let shell = kept(program)
            .args(arguments)
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { shell, log: log.to_owned() })
    }

    /// Returns the exit status of the server, or `None` if it still runs.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.shell.try_wait()?)
    }

    /// Returns the last 20 lines of the log.
    pub(crate) fn last_lines(&self) -> Result<String> {
        let text = fs::read_to_string(&self.log)?;
        let lines: Vec<&str> = text.lines().collect();
        Ok(lines[lines.len().saturating_sub(20)..].join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // The shell exits after its child. An error means that the shell has already exited.
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        process::{Command, Stdio},
        time::{Duration, Instant},
    };

    use super::*;

    /// Starts a script, and waits for the first line that it prints.
    fn spawn(folder: &Path, script: &str) -> (Process, String) {
        let arguments = ["-c", script, "program", "--flag=x"].map(str::to_owned);
        let process = Process::spawn(Path::new("/bin/sh"), &arguments, &folder.join("log")).unwrap();
        (process, first_line(folder))
    }

    fn first_line(folder: &Path) -> String {
        let read = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        wait_until(|| read().contains('\n'));
        read().lines().next().unwrap().to_owned()
    }

    fn runs(pid: &str) -> bool {
        Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap().success()
    }

    fn wait_until(what: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !what() {
            assert!(Instant::now() < deadline, "the condition is not met within 30 seconds");
            // Other processes meet the condition without a notification, so it is polled.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_child_ends_with_its_owner_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let (mut process, pid) = spawn(folder.path(), "echo $$; exec sleep 1000");
        assert!(runs(&pid) && process.ended().unwrap().is_none());
        drop(process);
        assert!(!runs(&pid));
    }

    #[test]
    fn a_child_ends_when_its_owner_is_killed() {
        const FOLDER: &str = "KLIENT_HARNESS_TEST_FOLDER";
        if let Some(folder) = env::var_os(FOLDER) {
            // This branch is the owner: the test runs itself as another process.
            let _process = spawn(Path::new(&folder), "echo $$; exec sleep 1000");
            loop {
                std::thread::park();
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let mut owner = Command::new(env::current_exe().unwrap())
            .args(["--exact", "server::process::tests::a_child_ends_when_its_owner_is_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = first_line(folder.path());
        assert!(runs(&pid));
        owner.kill().unwrap();
        owner.wait().unwrap();
        wait_until(|| !runs(&pid));
    }

    #[test]
    fn child_in_a_group_ends_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let (process, pid) = spawn(folder.path(), "echo $$; exec sleep 1000");
        for signal in ["-INT", "-TERM", "-HUP"] {
            let status = Command::new("kill").args([signal, &process.shell.id().to_string()]).status().unwrap();
            assert!(status.success());
        }
        assert!(runs(&pid));
        drop(process);
        assert!(!runs(&pid));
    }

    #[test]
    fn an_end_of_its_own_is_told_with_its_code() {
        let folder = tempfile::tempdir().unwrap();
        let (mut process, line) = spawn(folder.path(), "echo \"sorry $1\"; exit 3");
        assert_eq!(line, "sorry --flag=x");
        assert_eq!(process.shell.wait().unwrap().code(), Some(3));
        assert_eq!(process.ended().unwrap().and_then(|status| status.code()), Some(3));
        assert_eq!(process.last_lines().unwrap(), line);
    }
}

//! One run of a program, with limits on its time and its output.

use std::{io, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStdout, Command},
};

use super::failed;
use crate::{Error, client::config::ExecPlugin};

/// Runs the program of a plugin and returns its standard output.
pub(super) async fn run(plugin: &ExecPlugin, program: &Path, info: &str, interactive: bool) -> Result<Vec<u8>, Error> {
    let mut command = Command::new(program);
    command
        .args(&plugin.args)
        .envs(plugin.env.iter().map(|variable| (&variable.name, variable.value.expose())))
        .env(EXEC_INFO, info)
        .stdin(if interactive { Stdio::inherit() } else { Stdio::null() })
        .stdout(Stdio::piped())
        // The user sees the program's messages, as with kubectl.
        .stderr(Stdio::inherit())
        // The runtime reaps the process, so that no zombie remains.
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| not_started(plugin, error))?;
    if interactive {
        // A login by a user may take any time.
        return finish(plugin, &mut child).await;
    }
    match tokio::time::timeout(plugin.timeout, finish(plugin, &mut child)).await {
        Ok(finished) => finished,
        Err(_) => {
            stop(&mut child).await;
            let why = format!("did not finish within {:?} and was stopped", plugin.timeout);
            Err(failed(plugin, &why))
        }
    }
}

async fn finish(plugin: &ExecPlugin, child: &mut Child) -> Result<Vec<u8>, Error> {
    let broke = |error| failed(plugin, "cannot be read from or waited for").with_source(error);
    let mut output = Vec::new();
    let stdout = child.stdout.take();
    let ended = {
        let mut reading = std::pin::pin!(read(stdout, &mut output));
        tokio::select! {
            read = &mut reading => read.map(|()| None),
            status = child.wait() => {
                // A child process may keep the pipe open after the program has exited. The response is complete anyway.
                let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
                status.map(Some)
            }
        }
    };
    let ended = ended.map_err(broke)?;
    if output.len() > MAX_OUTPUT {
        stop(child).await;
        return Err(failed(plugin, &format!("wrote more than {MAX_OUTPUT} bytes and was stopped")));
    }
    let status = match ended {
        Some(status) => status,
        None => child.wait().await.map_err(broke)?,
    };
    match status.success() {
        true => Ok(output),
        // `status` is "exit status: 1" or "signal: 9 (SIGKILL)".
        false => Err(failed(plugin, &format!("failed: {status}"))),
    }
}

/// Reads to the end, or slightly beyond the limit. `output` has the data that was read even if this future is dropped.
async fn read(stdout: Option<ChildStdout>, output: &mut Vec<u8>) -> io::Result<()> {
    let Some(mut stdout) = stdout else { return Ok(()) };
    while output.len() <= MAX_OUTPUT && stdout.read_buf(output).await? > 0 {}
    Ok(())
}

async fn stop(child: &mut Child) {
    // The program may have exited by itself meanwhile.
    if let Err(error) = child.kill().await {
        tracing::debug!(%error, "cannot stop credential plugin");
    }
}

fn not_started(plugin: &ExecPlugin, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::NotFound {
        return failed(plugin, "cannot be started").with_source(error);
    }
    let hint = plugin.install_hint.as_deref().map(|hint| format!(". {}", hint.trim())).unwrap_or_default();
    failed(plugin, &format!("is not installed{hint}")).with_source(error)
}

const EXEC_INFO: &str = "KUBERNETES_EXEC_INFO";
/// Certificates take a few kilobytes.
const MAX_OUTPUT: usize = 1 << 20;
/// How long to wait for output that was written before the program exited.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

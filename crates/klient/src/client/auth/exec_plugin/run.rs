//! One run of a program: start, read, wait, within limits.

use std::{io, process::Stdio, time::Duration};

use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStdout, Command},
};

use super::failed;
use crate::{Error, client::config::ExecPlugin};

/// What the program writes to standard output.
pub(super) async fn run(plugin: &ExecPlugin, info: &str, interactive: bool) -> Result<Vec<u8>, Error> {
    let mut command = Command::new(&plugin.command);
    command
        .args(&plugin.args)
        .envs(plugin.env.iter().map(|variable| (&variable.name, variable.value.expose())))
        .env(EXEC_INFO, info)
        .stdin(if interactive { Stdio::inherit() } else { Stdio::null() })
        .stdout(Stdio::piped())
        // What it has to say is for people, who expect it where kubectl shows it.
        .stderr(Stdio::inherit())
        // The runtime reaps it then, so that no zombie stays.
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| not_started(plugin, error))?;
    if interactive {
        // People take their time.
        return finish(plugin, &mut child).await;
    }
    match tokio::time::timeout(plugin.timeout, finish(plugin, &mut child)).await {
        Ok(finished) => finished,
        Err(_) => {
            stop(&mut child).await;
            let why = format!("did not answer within {:?}, and was stopped", plugin.timeout);
            Err(failed(plugin, &why))
        }
    }
}

async fn finish(plugin: &ExecPlugin, child: &mut Child) -> Result<Vec<u8>, Error> {
    let broke = |error| failed(plugin, "cannot be talked to").with_source(error);
    let mut output = Vec::new();
    let stdout = child.stdout.take();
    let ended = {
        let mut reading = std::pin::pin!(read(stdout, &mut output));
        tokio::select! {
            read = &mut reading => read.map(|()| None),
            status = child.wait() => {
                // A program of its own that it leaves behind may keep the pipe open; its answer is complete all the same.
                let _ = tokio::time::timeout(LAST_WORDS, reading).await;
                status.map(Some)
            }
        }
    };
    let ended = ended.map_err(broke)?;
    if output.len() > MAX_OUTPUT {
        stop(child).await;
        return Err(failed(plugin, &format!("wrote more than {MAX_OUTPUT} bytes, and was stopped")));
    }
    let status = match ended {
        Some(status) => status,
        None => child.wait().await.map_err(broke)?,
    };
    match status.success() {
        true => Ok(output),
        // "exit status: 1" or "signal: 9 (SIGKILL)"
        false => Err(failed(plugin, &format!("failed: {status}"))),
    }
}

/// Reads to the end, or a little beyond the limit. Whatever was read is in `output`, also if this is given up.
async fn read(stdout: Option<ChildStdout>, output: &mut Vec<u8>) -> io::Result<()> {
    let Some(mut stdout) = stdout else { return Ok(()) };
    while output.len() <= MAX_OUTPUT && stdout.read_buf(output).await? > 0 {}
    Ok(())
}

async fn stop(child: &mut Child) {
    // It may have ended by itself by now.
    if let Err(error) = child.kill().await {
        tracing::debug!(%error, "a credential plugin could not be stopped");
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
/// Certificates take some kilobytes.
const MAX_OUTPUT: usize = 1 << 20;
/// How long what a program wrote before its end may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

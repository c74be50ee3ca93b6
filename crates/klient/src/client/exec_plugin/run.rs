//! One run of a program: start, read, wait, within limits.

use std::{io, process::Stdio};

use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
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
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_OUTPUT + 1).read_to_end(&mut output).await.map_err(broke)?;
    }
    if output.len() as u64 > MAX_OUTPUT {
        stop(child).await;
        return Err(failed(plugin, &format!("wrote more than {MAX_OUTPUT} bytes, and was stopped")));
    }
    let status = child.wait().await.map_err(broke)?;
    match status.success() {
        true => Ok(output),
        // "exit status: 1" or "signal: 9 (SIGKILL)"
        false => Err(failed(plugin, &format!("failed: {status}"))),
    }
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
const MAX_OUTPUT: u64 = 1 << 20;

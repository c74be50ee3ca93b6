//! Copies from a container.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{
    Copied, Copy, CopyFrom, pipe,
    to::{finish, said},
    unpack,
};
use crate::{Error, ErrorKind};

pub(super) async fn copy(request: CopyFrom) -> Result<Copied, Error> {
    let CopyFrom { copy, source, target, retries } = request;
    let source = source.trim_end_matches('/');
    let (folder, name) = source.rsplit_once('/').unwrap_or((".", source));
    if matches!(name, "" | "." | "..") {
        return Err(copy.problem(ErrorKind::Invalid, format!("{source:?} is not the name of a file or directory")));
    }
    let folder = if folder.is_empty() { "/" } else { folder };
    let target = if target.is_dir() { target.join(name) } else { target };
    let (chunks, reader) = pipe::reader();
    let unpacking = {
        let (name, on_progress): (PathBuf, _) = (name.into(), Arc::clone(&copy.on_progress));
        tokio::task::spawn_blocking(move || unpack::unpack(reader, &name, &target, &*on_progress))
    };
    let received = receive(&copy, folder, name, retries, chunks).await;
    let unpacked = unpacking.await.map_err(|error| copy.problem(ErrorKind::Canceled, error))?;
    // An archive that is refused ends the transfer, and is the better reason.
    match (unpacked, received) {
        (Ok(copied), Ok(())) => Ok(copied),
        (Err(error), Ok(()) | Err(Received::Refused)) => {
            Err(copy.problem(ErrorKind::Invalid, &error).with_source(error))
        }
        (_, Err(Received::Failed(error))) => Err(error),
        (Ok(copied), Err(Received::Refused)) => Ok(copied),
    }
}

/// Why an archive was not received.
enum Received {
    /// The archive is refused, so that the rest of it has no reader.
    Refused,
    Failed(Error),
}

/// Receives an archive. After a broken connection, it goes on where it was.
async fn receive(
    copy: &Copy,
    folder: &str,
    name: &str,
    retries: u32,
    chunks: mpsc::Sender<Bytes>,
) -> Result<(), Received> {
    let (mut received, mut left) = (0_u64, retries);
    loop {
        let attempt = receive_once(copy, folder, name, &mut received, &chunks).await;
        match attempt {
            Err(Received::Failed(error)) if left > 0 && is_broken(&error) => {
                left -= 1;
                tracing::debug!(pod = copy.pod, received, %error, "copy resumes");
            }
            ended => return ended,
        }
    }
}

/// Returns whether the connection or the kubelet was lost. The command itself did not fail.
fn is_broken(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Transport | ErrorKind::Unavailable)
}

async fn receive_once(
    copy: &Copy,
    folder: &str,
    name: &str,
    received: &mut u64,
    chunks: &mpsc::Sender<Bytes>,
) -> Result<(), Received> {
    let from = (*received + 1).to_string();
    let whole = ["tar", "cf", "-", "-C", folder, "--", name];
    // The arguments are not part of the script, so that no name can be.
    let script = "tar cf - -C \"$1\" -- \"$2\" | tail -c \"+$3\"";
    let rest = ["sh", "-c", script, "sh", folder, name, &from];
    let command = if *received == 0 { &whole[..] } else { &rest[..] };
    let mut process = copy.run(command, false).await.map_err(Received::Failed)?;
    let (stdout, said) = (process.stdout(), said(process.stderr()));
    let receiving = async {
        let Some(mut stdout) = stdout else { return Ok(()) };
        let broken = |error| copy.problem(ErrorKind::Transport, &error).with_source(error);
        while let Some(chunk) = stdout.chunk().await.map_err(|error| Received::Failed(broken(error)))? {
            *received += chunk.len() as u64;
            chunks.send(chunk).await.map_err(|_| Received::Refused)?;
        }
        Ok(())
    };
    let (outcome, said) = tokio::join!(receiving, said);
    outcome?;
    // A stream that was cut off has no exit code.
    finish(copy, process, &said).await.map_err(Received::Failed)
}

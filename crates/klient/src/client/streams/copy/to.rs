//! Copies to a container.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::io::AsyncWriteExt as _;

use super::{
    Copied, Copy, CopyTo,
    pipe::{self, PipeWriter},
};
use crate::{
    Error, ErrorKind,
    client::streams::{Process, Stderr},
};

pub(super) async fn copy(request: CopyTo) -> Result<Copied, Error> {
    let CopyTo { copy, source, target } = request;
    let (folder, name) = place(&copy, &source, &target).await?;
    let mut process = copy.run(&["tar", "-xpmf", "-", "-C", &folder], true).await?;
    let (writer, mut chunks) = pipe::writer();
    let on_progress = Arc::clone(&copy.on_progress);
    let packing = tokio::task::spawn_blocking(move || pack(writer, &source, Path::new(&name), &*on_progress));
    let (stdin, said) = (process.stdin(), said(process.stderr()));
    let sending = async move {
        let Some(mut stdin) = stdin else { return Ok(()) };
        while let Some(chunk) = chunks.recv().await {
            stdin.write_all(&chunk).await?;
        }
        stdin.shutdown().await
    };
    // `tar` may end before it has read everything, and says why.
    let (sent, said) = tokio::join!(sending, said);
    let packed = packing.await.map_err(|error| copy.problem(ErrorKind::Canceled, error))?;
    let ended = finish(&copy, process, &said).await;
    let copied = match packed {
        // `tar` has ended before everything was written.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return ended.and_then(|()| Err(copy.problem(ErrorKind::Transport, error)));
        }
        packed => packed.map_err(|error| copy.problem(ErrorKind::Invalid, &error).with_source(error))?,
    };
    ended?;
    sent.map_err(|error| copy.problem(ErrorKind::Transport, &error).with_source(error))?;
    Ok(copied)
}

/// Returns the directory in the container, and the name of the copy in it.
async fn place(copy: &Copy, source: &Path, target: &str) -> Result<(String, String), Error> {
    let is_folder = copy.run(&["test", "-d", target], false).await?.wait().await?.success();
    let invalid = |what: String| copy.problem(ErrorKind::Invalid, what);
    if is_folder {
        let resolved = source.canonicalize().map_err(|error| invalid(format!("{}: {error}", source.display())))?;
        let name = resolved.file_name().ok_or_else(|| invalid(format!("{} has no name", source.display())))?;
        return Ok((target.to_owned(), name.to_string_lossy().into_owned()));
    }
    let target = target.trim_end_matches('/');
    let (folder, name) = target.rsplit_once('/').unwrap_or((".", target));
    if name.is_empty() || name == ".." {
        return Err(invalid(format!("{target:?} is not the name of a file")));
    }
    Ok((if folder.is_empty() { "/" } else { folder }.to_owned(), name.to_owned()))
}

/// Writes an archive. Links stay links, and other special files are refused.
fn pack(writer: PipeWriter, source: &Path, name: &Path, on_progress: &dyn Fn(&Copied)) -> io::Result<Copied> {
    let mut archive = tar::Builder::new(writer);
    archive.follow_symlinks(false);
    let mut copied = Copied::default();
    // The source itself may be a link to what is meant.
    let mut left: Vec<(PathBuf, PathBuf)> = vec![(source.canonicalize()?, name.to_owned())];
    while let Some((path, name)) = left.pop() {
        let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let metadata = fs::symlink_metadata(&path).map_err(at)?;
        if metadata.is_dir() {
            let mut inner: Vec<_> = fs::read_dir(&path).map_err(at)?.collect::<Result<_, _>>().map_err(at)?;
            inner.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
            left.extend(inner.into_iter().map(|entry| (entry.path(), name.join(entry.file_name()))));
        } else if metadata.is_file() {
            copied.bytes += metadata.len();
        } else if !metadata.is_symlink() {
            return Err(at(io::Error::new(io::ErrorKind::Unsupported, "neither a file, nor a directory, nor a link")));
        }
        archive.append_path_with_name(&path, &name).map_err(at)?;
        copied.entries += 1;
        on_progress(&copied);
    }
    let mut writer = archive.into_inner()?;
    io::Write::flush(&mut writer)?;
    Ok(copied)
}

/// Waits for the end of `tar`. Its error output explains a failure.
pub(super) async fn finish(copy: &Copy, mut process: Process, said: &[u8]) -> Result<(), Error> {
    let status = process.wait().await?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(said);
    let said = if said.trim().is_empty() { status.to_string() } else { format!("{status}: {}", said.trim()) };
    Err(copy.problem(ErrorKind::Invalid, format!("tar failed: {said}")))
}

/// Reads the error output to its end, and keeps the first part.
pub(super) async fn said(stderr: Option<Stderr>) -> Vec<u8> {
    let mut said = Vec::new();
    let Some(mut stderr) = stderr else { return said };
    // What cannot be read explains nothing.
    while let Ok(Some(chunk)) = stderr.chunk().await {
        let room = SAID.saturating_sub(said.len());
        said.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    said
}

/// The length of error output that is kept.
const SAID: usize = 4096;

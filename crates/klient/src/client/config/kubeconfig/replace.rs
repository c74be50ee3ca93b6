//! Atomic replacement of a file: readers see the old text or the new one, never a part.
//!
//! The new text is written to a temporary file, which is then renamed. A new file is readable by its owner only. An
//! existing one keeps its mode and owner, and remains a link if it is one.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// Replaces a file, or creates it.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let existing = match fs::canonicalize(path) {
        Ok(real) => Some((fs::metadata(&real)?, real)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let target = existing.as_ref().map_or(path, |(_, real)| real);
    if existing.is_some() {
        // A read-only file must not be replaced by renaming another file.
        File::options().write(true).open(target)?;
    }
    let temporary = Temporary { path: beside(target) };
    let mut file = temporary.create()?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let moved = existing
        .as_ref()
        .map_or(Ok(()), |(metadata, _)| keep_owner_and_mode(&file, metadata))
        .and_then(|()| fs::rename(&temporary.path, target));
    match moved {
        // The file has another owner or is a mount point, so it is overwritten in place, as client-go does.
        Err(_) if existing.is_some() => fs::write(target, text),
        other => other,
    }
}

/// Creates the directory of a file, accessible to its owner only.
pub(super) fn create_directory_of(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// A temporary file that is removed on drop, unless it was renamed.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn create(&self) -> io::Result<File> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn beside(path: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{count}.tmp", process::id()))
}

#[cfg(unix)]
fn keep_owner_and_mode(file: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(_: &File, _: &fs::Metadata) -> io::Result<()> {
    // Permissions are inherited from the directory there.
    Ok(())
}

//! The lock of a kubeconfig: a file beside it with the suffix `.lock`, which only one process can create.
//!
//! It is the same as client-go's, so that kubectl and this crate exclude each other. Dropping the lock removes the
//! file.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// A held lock.
#[derive(Debug)]
pub(super) struct FileLock {
    path: PathBuf,
}

impl FileLock {
    /// Acquires the lock of that file. The file may be missing, but its directory must exist.
    pub(super) fn acquire(file: &Path, deadline: Instant) -> io::Result<Self> {
        let path = lock_path(file);
        loop {
            match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(_) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let message = format!(
                    "{} exists: another program is writing, or exited while writing; remove the file if none is running",
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            thread::sleep(left.min(POLL));
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If the file cannot be removed, the next writer reports it by name.
        let _ = fs::remove_file(&self.path);
    }
}

fn lock_path(file: &Path) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(".lock");
    path.into()
}

const POLL: Duration = Duration::from_millis(10);

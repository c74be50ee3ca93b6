//! The lock of a kubeconfig: a file beside it, named `.lock` in addition, that only one process can create.
//!
//! The same as client-go's, so that kubectl and this crate keep out of each other's way. Dropping it removes the file.

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
    /// Takes the lock of that file, which need not exist; its directory must.
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
                let message = format!("{} is there: another program is writing, or died while it was", path.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            thread::sleep(left.min(POLL));
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If it cannot be removed, the next writer says so, by name.
        let _ = fs::remove_file(&self.path);
    }
}

fn lock_path(file: &Path) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(".lock");
    path.into()
}

const POLL: Duration = Duration::from_millis(10);

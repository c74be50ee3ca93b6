//! A temporary folder that is removed with its owner, even if the owner is killed.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

/// A temporary folder. It is removed when this value is dropped, and when its process exits or is killed.
pub struct Folder {
    path: PathBuf,
    shell: Child,
}

impl Folder {
    /// Creates a folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be created, or if the shell that removes it cannot be started.
    pub fn new() -> Result<Self> {
        let path = tempfile::Builder::new().prefix("klient-kube-").tempdir()?.keep();
        let shell = Command::new("sh")
            .args(["-c", REMOVER, "remover"])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot start sh")?;
        Ok(Self { path, shell })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // An error means that the shell has already exited.
        let _ = self.shell.wait();
    }
}

/// A script that removes its argument when standard input closes.
///
/// The script retries, because a process that writes to the folder may still be about to end.
const REMOVER: &str = r#"
trap '' INT TERM HUP
read -r line
for try in 1 2 3 4 5; do rm -rf "$1" 2>/dev/null && break; sleep 1; done
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_owner() {
        let folder = Folder::new().unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("file"), "text").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}

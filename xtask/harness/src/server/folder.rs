//! A temporary folder that does not outlive its owner, even if that is killed.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

/// It is removed when this is dropped, and when its process ends in whatever way.
pub struct Folder {
    path: PathBuf,
    shell: Child,
}

impl Folder {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// If it cannot be made, or what removes it cannot be started.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // If it cannot be waited for, it is gone already.
        let _ = self.shell.wait();
    }
}

/// Removes its argument when standard input ends. The process that writes to it may be about to end.
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

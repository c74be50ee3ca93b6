//! `klient serve` for other projects' tests.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

/// A server in another process. Dropping it ends the process.
pub(super) struct Server {
    child: Child,
    kubeconfig: PathBuf,
}

impl Server {
    /// Starts a server whose kubeconfig is in a folder.
    pub(super) fn start(root: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let kubeconfig = folder.join("kubeconfig");
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let mut child = Command::new(target.join("debug/klient"))
            // The tests are written for an API server without controller manager.
            .args(["serve", "--bare", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start klient serve")?;
        let stdout = child.stdout.take().context("klient serve has no output")?;
        let server = Self { child, kubeconfig };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if !line.starts_with("serving on ") {
            bail!("klient serve did not start: {line}");
        }
        Ok(server)
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A kubelet for tests: Kubernetes' own streaming server in front of local processes and ports (`xtask/kubelet`).

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash as _, Hasher as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    kept,
    programs::cache,
    run_kept,
    server::{Folder, process::Process},
};

/// A running kubelet. It ends when this value is dropped, and when its process exits or is killed.
pub struct Kubelet {
    process: Option<Process>,
    port: u16,
    // Dropped after the process, which writes to it.
    _folder: Folder,
}

impl Kubelet {
    /// Starts a kubelet, or returns `None` if it was never built and `KLIENT_E2E` is not `required`.
    ///
    /// # Errors
    ///
    /// Returns an error if the kubelet does not start, or if it is required and was never built.
    pub fn start_for_tests() -> Result<Option<Self>> {
        let wanted = env::var("KLIENT_E2E").unwrap_or_default();
        let program = program()?;
        match program.is_file() {
            true if wanted != "skip" => Ok(Some(Self::start(&program)?)),
            false if wanted == "required" => bail!("there is no kubelet: `cargo xtask e2e` builds it"),
            _ => Ok(None),
        }
    }

    fn start(program: &Path) -> Result<Self> {
        let folder = Folder::new()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut process = Process::spawn(program, &[port.to_string()], &folder.path().join("kubelet.log"))?;
        let deadline = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = process.ended()? {
                bail!("kubelet ended ({status}):\n{}", process.last_lines()?);
            }
            if Instant::now() > deadline {
                bail!("kubelet does not listen:\n{}", process.last_lines()?);
            }
            // The kubelet sends no notification when it is ready, so its readiness is polled.
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self { process: Some(process), port, _folder: folder })
    }

    /// Returns the port of the kubelet, for the status of its node.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills the kubelet as `kill -9` does, with the processes that it started.
    pub fn kill(&mut self) {
        self.process = None;
    }
}

/// Returns the path of the program, which may not be built.
fn program() -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    (env::consts::OS, env::consts::ARCH).hash(&mut hasher);
    for name in ["go.mod", "go.sum", "main.go"] {
        let path = sources().join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?.hash(&mut hasher);
    }
    Ok(cache()?.join(format!("kubelet-{:016x}", hasher.finish())))
}

/// Builds the program, unless it is built.
pub(crate) fn build() -> Result<()> {
    let program = program()?;
    if program.is_file() {
        return Ok(());
    }
    let cache = cache()?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let work = tempfile::Builder::new().prefix(".building-").tempdir_in(&cache)?;
    let built = work.path().join("kubelet");
    let mut go = kept("go");
    go.args(["build", "-ldflags", "-s -w", "-o"]).arg(&built).arg(".").current_dir(sources());
    let status = run_kept(&mut go).context("cannot start go: the kubelet is built with Go 1.26 or newer")?;
    if !status.success() {
        bail!("go build failed: {status}");
    }
    // Another process may have been faster, with the same result.
    fs::rename(&built, &program).with_context(|| format!("cannot create {}", program.display()))
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kubelet")
}

/// The time limit for a start, on a loaded machine.
const START: Duration = Duration::from_secs(60);

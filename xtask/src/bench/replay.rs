//! The replay server: a separate process that serves responses of a real server, recorded once, for any number of objects.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use klient_harness::Folder;

use super::{
    options::Profile,
    program,
    sample::{self, Call},
};
use crate::e2e;

/// The number of recorded objects. All others are copied from these.
const RECORDED: usize = 100;

/// The program of the replay server, and the recording that it serves.
pub(super) struct Replay {
    program: PathBuf,
    folder: Folder,
}

impl Replay {
    /// Builds the program, and records the responses of a real server that runs only for the recording.
    pub(super) fn record(root: &Path, profile: Profile, fleet: &Path) -> Result<Self> {
        let program = program::build_rust(&root.join("bench"), "bench-replay", &["bench-replay"], profile)?;
        let folder = Folder::new()?;
        let server = e2e::start()?;
        let (kubeconfig, object) = (server.kubeconfig(), root.join("bench/pod.json"));
        let ask = |job: &str, since: &str| {
            let mut call = Call { job, kubeconfig: &kubeconfig, object: &object, since, ..Call::default() };
            (call.count, call.size, call.recording) = (RECORDED, RECORDED, folder.path());
            sample::run(fleet, &call)
        };
        ask("fill", "").context("cannot fill the server")?;
        ask("fill-custom", "").context("cannot fill the server")?;
        let touched = ask("touch", "")?;
        ask("record", touched["since"].as_str().context("expected a string `since` in the output of `touch`")?)
            .context("cannot record the server")?;
        Ok(Self { program, folder })
    }

    /// Starts a server of `size` objects, of which `events` change when a client requests it.
    pub(super) fn serve(&self, size: usize, events: usize, pace: Option<u32>, port: u16) -> Result<Replaying> {
        let mut child = Command::new(&self.program)
            .arg("--recording")
            .arg(self.folder.path())
            .args(["--size", &size.to_string(), "--events", &events.to_string()])
            .args(["--pace", &pace.unwrap_or_default().to_string(), "--port", &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the replay server")?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("standard output is not piped")?).read_line(&mut address)?;
        if address.is_empty() {
            let mut why = String::new();
            child.stderr.take().context("standard error is not piped")?.read_to_string(&mut why)?;
            child.wait()?;
            bail!("cannot start the replay server: {}", why.trim());
        }
        let address = address.trim().to_owned();
        let kubeconfig = self.folder.path().join("kubeconfig");
        fs::write(&kubeconfig, kubeconfig_for(&address))?;
        Ok(Replaying { child, address, kubeconfig })
    }
}

/// A running replay server. It ends when this value is dropped, and with this process.
pub(super) struct Replaying {
    child: Child,
    pub(super) address: String,
    pub(super) kubeconfig: PathBuf,
}

impl Drop for Replaying {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // An error means that the server has already exited.
        let _ = self.child.wait();
    }
}

fn kubeconfig_for(address: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Config", "current-context": "replay",
"clusters": [{{"name": "replay", "cluster": {{"server": "http://{address}"}}}}],
"users": [{{"name": "anonymous", "user": {{}}}}],
"contexts": [{{"name": "replay", "context": {{"cluster": "replay", "user": "anonymous"}}}}]}}
"#
    )
}

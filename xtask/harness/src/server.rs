//! One etcd and one kube-apiserver on loopback, with their files in a temporary folder that is removed with them.

mod files;
mod folder;
pub(crate) mod process;
mod readiness;

use std::{
    net::TcpListener,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use self::{files::Files, process::Process};
pub use self::{
    files::{SECOND_TOKEN, TOKEN},
    folder::Folder,
};
use crate::{Authority, Programs};

/// A running etcd and kube-apiserver. Both end when this value is dropped, and when its process exits or is killed.
pub struct Server {
    // Fields are dropped in this order: first the API server, which needs etcd, and last the folder that both write to.
    apiserver: Option<Process>,
    etcd: Process,
    files: Files,
    folder: Folder,
    program: PathBuf,
    port: u16,
    etcd_url: String,
    flags: Vec<(&'static str, String)>,
}

impl Server {
    /// Starts both servers and waits until they are ready.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the servers does not start. The message ends with the last lines of its log.
    pub fn start(programs: &Programs) -> Result<Self> {
        Self::start_with(programs, &[])
    }

    /// Starts both servers as [`start`](Self::start) does, with more flags for the API server, such as
    /// `("watch-cache", "false")`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`start`](Self::start).
    pub fn start_with(programs: &Programs, more: &[(&'static str, &str)]) -> Result<Self> {
        let mut started = Self::try_start(programs, more);
        for _ in 0..2 {
            // Another program may take a port before etcd or kube-apiserver listens on it.
            let is_taken = |error: &anyhow::Error| format!("{error:#}").contains("address already in use");
            if started.as_ref().err().is_some_and(is_taken) {
                started = Self::try_start(programs, more);
            }
        }
        started
    }

    fn try_start(programs: &Programs, more: &[(&'static str, &str)]) -> Result<Self> {
        let folder = Folder::new()?;
        let [etcd_port, peer_port, port] = free_ports()?;
        let files = Files::write(folder.path(), port)?;
        let etcd_url = format!("http://127.0.0.1:{etcd_port}");
        let peer_url = format!("http://127.0.0.1:{peer_port}");
        let etcd = Process::spawn(
            &programs.path("etcd"),
            &flags(&[
                ("data-dir", folder.path().join("etcd").display().to_string()),
                ("listen-client-urls", etcd_url.clone()),
                ("advertise-client-urls", etcd_url.clone()),
                ("listen-peer-urls", peer_url.clone()),
                ("initial-advertise-peer-urls", peer_url.clone()),
                ("initial-cluster", format!("default={peer_url}")),
                ("unsafe-no-fsync", "true".to_owned()),
            ]),
            &folder.path().join("etcd.log"),
        )?;
        let program = programs.path("kube-apiserver");
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut server = Self { apiserver: None, etcd, files, folder, program, port, etcd_url, flags: more };
        server.restart()?;
        Ok(server)
    }

    /// Returns the path of a kubeconfig. The users of its contexts `token`, `second-token` and `certificate` are administrators.
    pub fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// Returns the path of the certificate of the authority that signed the API server's certificate.
    pub fn authority_file(&self) -> PathBuf {
        self.file("ca.crt")
    }

    /// Returns the address of etcd. Its HTTP gateway can compact the data.
    pub fn etcd_url(&self) -> String {
        self.etcd_url.clone()
    }

    /// Returns the authority that signs the certificates of users.
    pub fn user_authority(&self) -> &Authority {
        self.files.user_authority()
    }

    /// Returns the log of the API server.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.file("apiserver.log"))?)
    }

    /// Kills the API server as `kill -9` does. Its port stays free until the API server is restarted.
    pub fn kill(&mut self) {
        self.apiserver = None;
    }

    /// Restarts the API server on the same port and data, and waits until it is ready. A running API server is killed first.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`start`](Self::start).
    pub fn restart(&mut self) -> Result<()> {
        self.kill();
        let in_folder = |name: &str| self.file(name).display().to_string();
        let mut all = vec![
            ("etcd-servers", self.etcd_url.clone()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", self.port.to_string()),
            ("tls-cert-file", in_folder("server.crt")),
            ("tls-private-key-file", in_folder("server.key")),
            ("client-ca-file", in_folder("user-ca.crt")),
            ("token-auth-file", in_folder("tokens.csv")),
            // As in most clusters: the default refuses privileged containers.
            ("allow-privileged", "true".to_owned()),
            ("authorization-mode", "RBAC".to_owned()),
            ("service-account-issuer", "https://klient.invalid".to_owned()),
            ("service-account-key-file", in_folder("service-account.pub")),
            ("service-account-signing-key-file", in_folder("service-account.key")),
            ("service-cluster-ip-range", "10.0.0.0/16".to_owned()),
        ];
        all.extend_from_slice(&self.flags);
        let mut apiserver = Process::spawn(&self.program, &flags(&all), &self.file("apiserver.log"))?;
        self.wait_until_ready(&mut apiserver)?;
        self.apiserver = Some(apiserver);
        Ok(())
    }

    /// Replaces the authority of the API server's certificate, and restarts the API server with a certificate of the new
    /// authority.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`start`](Self::start).
    pub fn replace_authority(&mut self) -> Result<()> {
        self.kill();
        self.files.write_authority()?;
        self.restart()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn wait_until_ready(&mut self, apiserver: &mut Process) -> Result<()> {
        let deadline = Instant::now() + START;
        let mut last = String::new();
        while Instant::now() < deadline {
            if let Some(status) = apiserver.ended()? {
                bail!("kube-apiserver ended ({status}):\n{}", apiserver.last_lines()?);
            }
            if let Some(status) = self.etcd.ended()? {
                bail!("etcd ended ({status}):\n{}", self.etcd.last_lines()?);
            }
            match readiness::check(self.port, &self.authority_file()) {
                Ok(()) => return Ok(()),
                Err(error) => last = format!("{error:#}"),
            }
            // The server sends no notification when it is ready, so its readiness is polled.
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("kube-apiserver is not ready ({last}):\n{}", apiserver.last_lines()?);
    }
}

/// Formats flags for etcd and kube-apiserver.
fn flags(all: &[(&str, String)]) -> Vec<String> {
    all.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

/// Returns ports that were free a moment ago.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::new();
    for _ in 0..N {
        listeners.push(TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?);
    }
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// The time limit for a start. Servers start slowly on a loaded machine.
const START: Duration = Duration::from_secs(120);

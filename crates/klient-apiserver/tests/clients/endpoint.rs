//! A server with an address, for clients in other processes.

use std::{
    io::Write as _,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use klient_apiserver::{ApiServer, Listening};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A server that listens, and a folder with its kubeconfig. It ends when this is dropped.
pub(crate) struct Endpoint {
    pub(crate) server: ApiServer,
    pub(crate) folder: TempDir,
    _listening: Listening,
    /// Dropped last: the others are used on it.
    _runtime: Runtime,
}

impl Endpoint {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (server, listening) = runtime.block_on(async {
            let server = ApiServer::start().await.unwrap();
            let listening = server.listen_tls(0).await.unwrap();
            (server, listening)
        });
        listening.write_kubeconfig(folder.path().join("kubeconfig"), None).unwrap();
        Self { server, folder, _listening: listening, _runtime: runtime }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

/// Says that a test does nothing, once for each reason; where tests are required to run, this is an error.
pub(crate) fn skip(why: &'static str) {
    static SAID: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    assert!(std::env::var_os("KLIENT_E2E").is_none(), "{why}");
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&why) {
        said.push(why);
        // Not with `eprintln!`, which tests show only if they fail.
        std::io::stderr().write_all(format!("skipped: {why}; `cargo xtask clients` builds it\n").as_bytes()).unwrap();
    }
}

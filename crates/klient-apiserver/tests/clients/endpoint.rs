//! A listening server for clients in other processes.

use std::{
    io::Write as _,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use klient_apiserver::{ApiServer, ApiServerBuilder, Listening};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A listening server and a folder with its kubeconfig. Dropping it stops the server.
pub(crate) struct Endpoint {
    pub(crate) server: ApiServer,
    pub(crate) folder: TempDir,
    _listening: Listening,
    /// Dropped last, because tasks of the other fields run on it.
    _runtime: Runtime,
}

impl Endpoint {
    pub(crate) fn start() -> Self {
        Self::start_with(ApiServer::builder())
    }

    /// Starts a server with settings of its own.
    pub(crate) fn start_with(builder: ApiServerBuilder) -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (server, listening) = runtime.block_on(async {
            let server = builder.start().await.unwrap();
            let listening = server.listen(0).await.unwrap();
            (server, listening)
        });
        listening.write_kubeconfig(folder.path().join("kubeconfig"), None).unwrap();
        Self { server, folder, _listening: listening, _runtime: runtime }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

/// Prints once per reason that a test is skipped, or fails if tests are required.
pub(crate) fn skip(why: &'static str) {
    static SAID: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    assert!(std::env::var_os("KLIENT_E2E").is_none_or(|wanted| wanted != "required"), "{why}");
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&why) {
        said.push(why);
        // The output of `eprintln!` is shown only if the test fails.
        std::io::stderr().write_all(format!("skipped: {why}; `cargo xtask clients` builds it\n").as_bytes()).unwrap();
    }
}

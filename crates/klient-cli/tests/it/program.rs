//! The command, started as users start it.

use std::{path::Path, process::Stdio, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client,
    client::config::{Config, Kubeconfig, Overrides},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// `klient serve` or `klient demo --keep`, while it runs.
pub(crate) struct Serving {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) client: Client,
    pub(crate) url: String,
}

impl Serving {
    /// Starts the command in a folder, and reads its first lines.
    pub(crate) async fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = klient(folder, arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = async || timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        let url = line().await.strip_prefix("serving on ").unwrap().to_owned();
        let path = line().await.strip_prefix("export KUBECONFIG=").unwrap().to_owned();
        assert_eq!(line().await, "kubectl get namespaces");
        let kubeconfig = Kubeconfig::from_file(path).unwrap();
        let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap().no_proxy();
        Self { child, lines, client: Client::from_config(&config).unwrap(), url }
    }

    /// Stops the command with a signal, as Ctrl-C or a supervisor does.
    pub(crate) async fn end(mut self, signal: &str) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
        assert_eq!(timeout(PATIENCE, self.lines.next_line()).await.unwrap().unwrap().as_deref(), Some("stopped"));
        assert_eq!(timeout(PATIENCE, self.child.wait()).await.unwrap().unwrap().code(), Some(0));
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }
}

/// Returns the command, to be run in a folder.
pub(crate) fn klient(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_klient"));
    command.args(arguments).current_dir(folder).kill_on_drop(true);
    command
}

/// Runs a command, and returns its exit code, standard output and standard error.
pub(crate) async fn outcome(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = timeout(PATIENCE, klient(folder, arguments).output()).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Longer than any step takes, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

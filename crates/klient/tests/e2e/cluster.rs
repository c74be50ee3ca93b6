//! The real server: one for all tests, started by the first that needs it. Tests that break theirs start their own.
//!
//! Without programs to start, every test passes without doing anything, which is reported once.

use std::{
    io::Write as _,
    path::Path,
    sync::{LazyLock, Once},
};

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use klient::{
    Api, Client,
    client::config::{Config, KubeconfigFiles, Overrides},
};
use klient_harness::{Programs, Server};
use serde_json::json;

/// Returns from a test that has no server.
macro_rules! or_skip {
    ($found:expr) => {
        match $found {
            Some(found) => found,
            None => return,
        }
    };
}
pub(crate) use or_skip;

/// Returns the programs to start; `None` if there are none and that is allowed.
pub(crate) fn programs() -> Option<Programs> {
    let found = Programs::for_tests().unwrap();
    if found.is_none() {
        static SAID: Once = Once::new();
        // Not with `eprintln!`, whose output tests show only on failure.
        SAID.call_once(|| std::io::stderr().write_all(SKIPPED.as_bytes()).unwrap());
    }
    found
}

/// Returns the server that all tests share. It ends with this process.
pub(crate) fn server() -> Option<&'static Server> {
    // Every test reports why there is no server, not only the first.
    static SERVER: LazyLock<Result<Option<Server>, String>> =
        LazyLock::new(|| programs().map(|programs| Server::start(&programs)).transpose().map_err(|e| format!("{e:#}")));
    SERVER.as_ref().unwrap().as_ref()
}

/// Returns settings for the shared server.
pub(crate) fn config() -> Option<Config> {
    context("token")
}

/// Returns settings for the shared server, from a context of its kubeconfig.
pub(crate) fn context(name: &str) -> Option<Config> {
    Some(config_of(&server()?.kubeconfig(), name))
}

/// Returns settings from a context of a kubeconfig.
pub(crate) fn config_of(kubeconfig: &Path, context: &str) -> Config {
    Config::load(&KubeconfigFiles::explicit(kubeconfig), &Overrides::default().context(context)).unwrap()
}

/// Returns a client of the shared server, with its own connections.
pub(crate) fn client() -> Option<Client> {
    Some(Client::from_config(&config()?).unwrap())
}

/// Returns a client of the shared server that never requests protobuf.
pub(crate) fn json_client() -> Option<Client> {
    Some(Client::builder_from_config(&config()?).unwrap().json_only().build())
}

/// Returns a client for each encoding, with its name.
pub(crate) fn both_clients() -> Option<[(&'static str, Client); 2]> {
    Some([("protobuf", client()?), ("json", json_client()?)])
}

/// Creates a namespace for one test, with the objects that a controller would create for pods to run.
pub(crate) async fn namespace(client: &Client, name: &str) -> String {
    let namespaces: Api<Namespace> = Api::cluster(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    namespaces.create(&namespace).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    let account = serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
    accounts.create(&account).await.unwrap();
    name.to_owned()
}

const SKIPPED: &str = "\
skipped: the tests of klient against the real kube-apiserver, since there is none. `cargo xtask e2e` builds it with Go and
runs them; or set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd.
";

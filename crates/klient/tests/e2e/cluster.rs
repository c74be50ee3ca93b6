//! The server that `cargo xtask e2e` has started.

use std::{path::PathBuf, sync::OnceLock, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use klient::client::{Client, Config, KubeconfigFiles, Overrides};
use klient::{CreateOptions, client::Api};

/// Settings for the server.
pub(crate) fn config() -> Config {
    context("token")
}

/// Settings for the server, by a context of its kubeconfig.
pub(crate) fn context(name: &str) -> Config {
    let path = PathBuf::from(std::env::var_os("KLIENT_E2E_KUBECONFIG").expect("run this with `cargo xtask e2e`"));
    Config::load(&KubeconfigFiles::explicit(&path), &Overrides::default().context(name)).unwrap()
}

/// A client of its own connections, once the server is ready.
pub(crate) async fn client() -> Client {
    static READY: OnceLock<()> = OnceLock::new();
    let client = Client::from_config(&config()).unwrap();
    for _ in 0..300 {
        if READY.get().is_some() {
            return client;
        }
        let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
        match client.send(request).await {
            Ok(_) => READY.get_or_init(|| ()),
            // Another process is starting up: there is nothing to be told by.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
    }
    panic!("the API server does not become ready");
}

/// A namespace that no other test uses.
pub(crate) async fn namespace(client: &Client, name: &str) -> String {
    let namespaces: Api<Namespace> = Api::cluster(client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    namespaces.create(&CreateOptions::default(), &namespace).await.unwrap();
    name.to_owned()
}

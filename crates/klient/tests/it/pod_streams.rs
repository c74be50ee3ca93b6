//! exec, attach and port-forward against the embedded server: in process, over TLS and over plain HTTP.

mod exec;
mod faults;
mod leaks;
mod port_forward;
mod transport;

use k8s_openapi::api::core::v1::Pod;
use klient::{
    Api, Client,
    client::config::{Config, Kubeconfig, Overrides},
};
use klient_apiserver::{ApiServer, Listening, pod_streams::PodStreams};
use serde_json::json;

/// A server with the pod `default/web`, which has the container `app`.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    listening: Listening,
}

impl World {
    pub(crate) async fn new(streams: PodStreams) -> Self {
        let server = ApiServer::builder().pod_streams(streams).start().await.unwrap();
        let pods: Api<Pod> = Api::namespaced(Client::from_service(server.service()), "default");
        pods.create(&pod("web", &["app"])).await.unwrap();
        let listening = server.listen(0).await.unwrap();
        Self { server, listening }
    }

    /// Returns the settings of a client over TLS.
    pub(crate) fn config(&self) -> Config {
        let kubeconfig = Kubeconfig::parse(self.listening.kubeconfig(None)).unwrap();
        Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap()
    }

    /// Returns the pods as a client over TLS sees them.
    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(Client::from_config(&self.config()).unwrap(), "default")
    }

    /// Returns the pods as a client in the same process sees them.
    pub(crate) fn pods_in_process(&self) -> Api<Pod> {
        Api::namespaced(Client::from_service(self.server.service()), "default")
    }
}

/// Returns a pod with containers of these names.
pub(crate) fn pod(name: &str, containers: &[&str]) -> Pod {
    let containers: Vec<_> = containers.iter().map(|name| json!({"name": name, "image": "app"})).collect();
    serde_json::from_value(
        json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": containers}}),
    )
    .unwrap()
}

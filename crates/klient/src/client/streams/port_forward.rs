//! Port-forward: connections to ports of pods, through the API server.
//!
//! All connections share one upgraded connection to the server, with a pair of SPDY streams each. When it breaks, the next
//! connection opens another one; a service or a workload then may get another pod. A connection that fails ends alone.

mod connection;
mod listener;
mod session;
mod statistics;
mod target;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    core::v1::{Pod, Service},
};
use klient_core::Resource;
use klient_streams::KeepAlive;

pub use self::{
    connection::ForwardedConnection, listener::ForwardListener, session::PortForward, statistics::ForwardStatistics,
};
use self::{session::Settings, target::TargetKind};
use super::support::StreamProtocol;
use crate::{
    Api, Error,
    client::{endpoint::Endpoint, verbs::ResponseFuture},
};

/// A request to forward connections to a port. See [`Api::port_forward`].
///
/// Awaited, it opens the connection to the server and returns the [`PortForward`].
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct PortForwardRequest {
    settings: Settings,
}

impl Api<Pod> {
    /// Forwards connections to a port of a pod.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn forward(pods: klient::Api<Pod>) -> Result<(), Box<dyn std::error::Error>> {
    /// use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    ///
    /// let forward = pods.port_forward("web", 80).await?;
    /// let mut connection = forward.connect().await?;
    /// connection.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    /// let mut response = String::new();
    /// connection.read_to_string(&mut response).await?;
    ///
    /// let listener = forward.listen("127.0.0.1:0").await?;
    /// println!("forwarding {} to web:80", listener.local_addr());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The user needs the verbs `get` and `create` on `pods/portforward`.
    #[doc(alias = "portforward")]
    pub fn port_forward(&self, name: &str, port: u16) -> PortForwardRequest {
        PortForwardRequest::new(self, TargetKind::Pod, name, port)
    }
}

impl Api<Service> {
    /// Forwards connections to a port of a service: to a ready pod that it selects, and to another one when that is gone.
    ///
    /// The user needs the verb `get` on services and `list` on pods, besides those of [`Api::<Pod>::port_forward`].
    pub fn port_forward(&self, name: &str, port: u16) -> PortForwardRequest {
        PortForwardRequest::new(self, TargetKind::Service, name, port)
    }
}

macro_rules! workloads {
    ($($kind:ident)*) => {$(
        impl Api<$kind> {
            /// Forwards connections to a port of a ready pod of the workload, and to another one when that is gone.
            ///
            /// The user needs the verb `get` on the workload and `list` on pods, besides those of
            /// [`Api::<Pod>::port_forward`].
            pub fn port_forward(&self, name: &str, port: u16) -> PortForwardRequest {
                PortForwardRequest::new(self, TargetKind::$kind, name, port)
            }
        }
    )*};
}
workloads!(Deployment ReplicaSet StatefulSet DaemonSet);

impl PortForwardRequest {
    fn new<K: Resource>(api: &Api<K>, kind: TargetKind, name: &str, port: u16) -> Self {
        let endpoint: &Arc<Endpoint> = api.endpoint();
        Self {
            settings: Settings {
                client: endpoint.client.clone(),
                namespace: endpoint.namespace().unwrap_or_default().to_owned(),
                kind,
                name: name.to_owned(),
                port,
                protocol: StreamProtocol::default(),
                keep_alive: KeepAlive::default().interval(PING_INTERVAL),
            },
        }
    }

    /// Sets the protocol.
    pub fn protocol(mut self, protocol: StreamProtocol) -> Self {
        self.settings.protocol = protocol;
        self
    }

    /// Sets how often the server is pinged, and for how long it may be silent.
    pub fn keep_alive(mut self, interval: Duration, limit: Duration) -> Self {
        self.settings.keep_alive = KeepAlive::default().interval(interval).limit(limit);
        self
    }
}

impl IntoFuture for PortForwardRequest {
    type Output = Result<PortForward, Error>;
    type IntoFuture = ResponseFuture<'static, PortForward>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(PortForward::open(self.settings))
    }
}

/// As in client-go.
const PING_INTERVAL: Duration = Duration::from_secs(10);

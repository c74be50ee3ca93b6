//! Connections to webhooks: HTTP/1.1 over TLS, used again while they are open.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::TlsConnector;

use super::{problem, trust::Bundle};

/// Where a connection goes, and what it trusts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Route {
    host: String,
    port: u16,
    /// The name that the peer's certificate must have.
    server: String,
    trust: Arc<[u8]>,
}

/// An open connection, on which no request is in flight.
pub(super) struct Idle {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

/// A failed exchange.
pub(super) struct Problem {
    pub(super) text: String,
    /// Whether the request was never sent.
    pub(super) was_unsent: bool,
}

impl Route {
    pub(super) fn new(host: String, port: u16, server: String, trust: Arc<[u8]>) -> Self {
        Self { host, port, server, trust }
    }
}

impl Idle {
    /// Connects to a peer.
    pub(super) async fn open(route: &Route) -> Result<Self, String> {
        let Route { host, port, server, trust } = route;
        let tcp = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| {
            let shown = if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.clone() };
            format!("dial tcp {shown}:{port}: {}", problem::of_dial(&error))
        })?;
        // Reviews are small, and wait for nothing.
        let _ = tcp.set_nodelay(true);
        let name = match server.parse::<IpAddr>() {
            Ok(address) => ServerName::IpAddress(address.into()),
            Err(_) => ServerName::try_from(server.clone()).map_err(|error| error.to_string())?,
        };
        let config = config(trust).map_err(|error| error.to_string())?;
        let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp);
        // Go has a limit of ten seconds, too.
        let tls = tokio::time::timeout(Duration::from_secs(10), tls).await;
        let tls = tls.map_err(|_| "net/http: TLS handshake timeout".to_owned())?;
        let tls = tls.map_err(|error| problem::of_tls(&error, server))?;
        let (sender, connection) = http1::handshake(TokioIo::new(tls)).await.map_err(|error| error.to_string())?;
        // The task ends with the connection, at the latest when the sender is dropped.
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, task })
    }

    /// Returns whether the peer has not closed the connection.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed() && self.sender.is_ready()
    }

    /// Sends a request, and reads the response.
    pub(super) async fn send(&mut self, request: Request<Bytes>) -> Result<Response<Bytes>, Problem> {
        let sent = self.sender.try_send_request(request.map(Full::new)).await;
        let response = sent.map_err(|mut failed| {
            let was_unsent = failed.take_message().is_some();
            Problem { text: problem::of_exchange(failed.error()), was_unsent }
        })?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE).collect().await;
        let body = body.map_err(|error| Problem { text: error.to_string(), was_unsent: false })?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn config(trust: &[u8]) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Bundle::new(trust, provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The size limit of responses.
const MAX_RESPONSE: usize = 16 << 20;

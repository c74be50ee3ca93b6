//! Sockets: HTTP or HTTPS on the loopback address, for clients in other processes.

mod certificates;

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use klient_core::Status;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

use self::certificates::Certificates;
use crate::{ApiServer, auth::Certified, body::ResponseBody, negotiate::ResponseFormat, response, server::MAX_BODY};

/// A listening socket of a server. Dropping it stops listening and closes all connections.
pub struct Listening {
    address: SocketAddr,
    certificates: Option<Certificates>,
    task: JoinHandle<()>,
}

/// An error of a server that cannot listen.
#[derive(Debug)]
pub struct ServeError {
    message: String,
    source: io::Error,
}

impl ApiServer {
    /// Listens for HTTP on a port of the loopback address. Port 0 chooses a free port.
    ///
    /// # Errors
    ///
    /// Returns an error if the port is not available.
    pub async fn listen(&self, port: u16) -> Result<Listening, ServeError> {
        self.listen_with(port, None).await
    }

    /// Listens for HTTPS on a port of the loopback address, with self-made certificates: see [`Listening::kubeconfig`].
    ///
    /// # Errors
    ///
    /// Returns an error if the port is not available.
    pub async fn listen_tls(&self, port: u16) -> Result<Listening, ServeError> {
        let certificates = Certificates::new()
            .map_err(|source| ServeError { message: "cannot create certificates".to_owned(), source })?;
        self.listen_with(port, Some(certificates)).await
    }

    async fn listen_with(&self, port: u16, certificates: Option<Certificates>) -> Result<Listening, ServeError> {
        let failed = |source| ServeError { message: format!("cannot listen on 127.0.0.1:{port}"), source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let acceptor = certificates
            .as_ref()
            .map(Certificates::acceptor)
            .transpose()
            .map_err(|source| ServeError { message: "cannot use the certificates".to_owned(), source })?;
        let task = tokio::spawn(accept(self.clone(), listener, acceptor));
        Ok(Listening { address, certificates, task })
    }
}

impl Listening {
    /// Returns the address of the socket.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns a kubeconfig for this server, with a token, or with the client certificate if the server uses TLS.
    pub fn kubeconfig(&self, token: Option<&str>) -> String {
        let mut cluster = json!({"server": self.url()});
        let mut user = json!({});
        if let Some(certificates) = &self.certificates {
            cluster["certificate-authority-data"] = json!(certificates.authority_base64());
            if token.is_none() {
                user["client-certificate-data"] = json!(certificates.client_base64());
                user["client-key-data"] = json!(certificates.client_key_base64());
            }
        }
        if let Some(token) = token {
            user["token"] = json!(token);
        }
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "klient",
            "clusters": [{"name": "klient", "cluster": cluster}],
            "users": [{"name": "klient", "user": user}],
            "contexts": [{"name": "klient", "context": {"cluster": "klient", "user": "klient"}}],
        });
        // Every JSON document is a YAML document.
        serde_json::to_string_pretty(&config).unwrap_or_default()
    }

    /// Writes the kubeconfig to a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>, token: Option<&str>) -> Result<PathBuf, ServeError> {
        use std::io::Write as _;
        let message = format!("cannot write the kubeconfig {}", path.as_ref().display());
        let failed = |source| ServeError { message: message.clone(), source };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path.as_ref()).map_err(failed)?;
        // The mode above applies to new files only.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(failed)?;
        file.write_all(self.kubeconfig(token).as_bytes()).map_err(failed)?;
        Ok(path.as_ref().to_owned())
    }
}

async fn accept(server: ApiServer, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(server.clone(), stream, acceptor.clone()))),
                // The process may be out of file descriptors for a moment.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(server: ApiServer, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
    // Watch events are small and must not wait for more data.
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => http(server, stream, false).await,
        Some(acceptor) => {
            let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
            match handshake {
                Ok(Ok(stream)) => {
                    let certified = stream.get_ref().1.peer_certificates().is_some_and(|shown| !shown.is_empty());
                    http(server, stream, certified).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake timed out"),
            }
        }
    }
}

async fn http(server: ApiServer, stream: impl AsyncRead + AsyncWrite + Unpin + 'static, certified: bool) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HANDSHAKE);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(1000).adaptive_window(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let server = server.clone();
        async move { Ok::<_, io::Error>(respond(&server, request, certified).await) }
    });
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(error, "connection closed");
    }
}

async fn respond(server: &ApiServer, request: Request<Incoming>, certified: bool) -> Response<ResponseBody> {
    let (mut parts, body) = request.into_parts();
    if certified {
        parts.extensions.insert(Certified);
    }
    let gzip = parts.headers.get(http::header::ACCEPT_ENCODING).is_some_and(|value| {
        value.to_str().is_ok_and(|value| value.split(',').any(|encoding| encoding.trim() == "gzip"))
    });
    let body = match read(body).await {
        Ok(body) => body,
        Err(error) => {
            let status = Status::bad_request(format!("the request's body could not be read: {error}"));
            return response::failure(&status, ResponseFormat::JSON);
        }
    };
    let response = server.handle(Request::from_parts(parts, body)).await;
    if gzip { response::compressed(response) } else { response }
}

/// Reads a body up to the size limit. The rest is read and discarded: a client that is still
/// sending when the connection is closed may never see the response.
async fn read(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut kept = BytesMut::new();
    let mut forgotten = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if kept.len() <= MAX_BODY {
            kept.extend_from_slice(&data);
        } else {
            forgotten += data.len();
        }
        if forgotten > MAX_FORGOTTEN {
            break;
        }
    }
    Ok(kept.freeze())
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The number of bytes of a too large body that are read and discarded.
const MAX_FORGOTTEN: usize = 64 << 20;
const HANDSHAKE: Duration = Duration::from_secs(10);

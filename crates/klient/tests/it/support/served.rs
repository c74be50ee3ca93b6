//! Real HTTP servers on the loopback, with or without TLS, that respond as a test says.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use klient::{
    client::config::{Config, Pem, Tls, Trust},
    request::media_type,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Mutex,
};
use tokio_rustls::TlsAcceptor;

/// Signs certificates, for servers and clients.
pub(crate) struct Authority {
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) der: Vec<u8>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        Self { issuer: rcgen::CertifiedIssuer::self_signed(params, key).unwrap() }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn sign(&self, name: &str) -> Pair {
        self.sign_until(name, 4096)
    }

    /// A certificate that ends with a year.
    pub(crate) fn sign_until(&self, name: &str, year: i32) -> Pair {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair { certificate: certificate.pem(), key: key.serialize_pem(), der: certificate.der().to_vec() }
    }

    /// Trusts this authority, and expects the name that servers here have.
    pub(crate) fn trusted(&self) -> Tls {
        Tls::default().trust(Trust::Authority(Pem::Data(self.pem().into_bytes()))).server_name("localhost")
    }

    /// Takes TLS connections as `localhost`; with client certificates of this authority where they are offered.
    pub(crate) fn acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        self.acceptor_with(&self.sign("localhost"), protocols)
    }

    pub(crate) fn acceptor_with(&self, pair: &Pair, protocols: &[&str]) -> TlsAcceptor {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
            .with_single_cert(
                vec![pair.der.clone().into()],
                PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A request as a server got it.
pub(crate) struct Asked {
    /// The number of its connection.
    pub(crate) connection: usize,
    /// The certificate that the client showed on it.
    pub(crate) shown: Option<Vec<u8>>,
    pub(crate) request: Request<Bytes>,
}

impl Asked {
    pub(crate) fn authorization(&self) -> &str {
        self.request.headers().get(AUTHORIZATION).map_or("", |value| value.to_str().unwrap())
    }
}

/// A server, and what it was asked.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) accepted: Arc<AtomicUsize>,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

impl Served {
    /// Responds to each request with the result of `respond`; over TLS if there is an acceptor.
    pub(crate) async fn start(
        acceptor: Option<TlsAcceptor>,
        respond: impl Fn(&Asked) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), acceptor, respond)
    }

    pub(crate) fn on(
        listener: TcpListener,
        acceptor: Option<TlsAcceptor>,
        respond: impl Fn(&Asked) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        let served = Self { address: listener.local_addr().unwrap(), accepted: Arc::default(), asked: Arc::default() };
        let (accepted, asked) = (Arc::clone(&served.accepted), Arc::clone(&served.asked));
        let respond: Respond = Arc::new(respond);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let connection = accepted.fetch_add(1, Ordering::SeqCst);
                let (acceptor, asked, respond) = (acceptor.clone(), Arc::clone(&asked), Arc::clone(&respond));
                tokio::spawn(async move {
                    let Some(acceptor) = acceptor else {
                        return talk(tcp, false, Arc::new(Desk { connection, shown: None, asked, respond })).await;
                    };
                    let Ok(stream) = acceptor.accept(tcp).await else { return };
                    let session = stream.get_ref().1;
                    let shown = session.peer_certificates().map(|certificates| certificates[0].to_vec());
                    let http2 = session.alpn_protocol() == Some(b"h2");
                    talk(stream, http2, Arc::new(Desk { connection, shown, asked, respond })).await;
                });
            }
        });
        served
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Settings for this server, which is expected to have TLS.
    pub(crate) fn config(&self, authority: &Authority) -> Config {
        Config::new(&format!("https://127.0.0.1:{}", self.port())).unwrap().tls(authority.trusted())
    }
}

type Respond = Arc<dyn Fn(&Asked) -> Response<Full<Bytes>> + Send + Sync>;

/// The state of one connection.
struct Desk {
    connection: usize,
    shown: Option<Vec<u8>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    respond: Respond,
}

impl Desk {
    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let request = Request::from_parts(parts, body);
        let asked = Asked { connection: self.connection, shown: self.shown.clone(), request };
        let response = (self.respond)(&asked);
        self.asked.lock().await.push(asked);
        Ok(response)
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, http2: bool, desk: Arc<Desk>) {
    let service = service_fn(move |request| Arc::clone(&desk).respond(request));
    // What is wrong with the connection is for the client to tell.
    if http2 {
        let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    } else {
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }
}

pub(crate) fn json_response(code: u16, value: &Value) -> Response<Full<Bytes>> {
    let body = Full::new(Bytes::from(value.to_string()));
    Response::builder().status(code).header("content-type", media_type::JSON).body(body).unwrap()
}

pub(crate) fn unauthorized() -> Response<Full<Bytes>> {
    json_response(401, &json!({"kind": "Status", "apiVersion": "v1", "code": 401, "reason": "Unauthorized"}))
}

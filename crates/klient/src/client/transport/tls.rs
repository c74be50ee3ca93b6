//! TLS with an explicit crypto provider; nothing is taken from, or left in, the process.
//!
//! Certificates and keys that are files are looked at again while the program runs. Once they have changed, new
//! connections use the new ones and old connections take no new requests. While they cannot be read, nothing changes.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::{
    Error, ErrorKind,
    client::config::{Pem, Tls, Trust},
};

/// Makes TLS connections.
pub(super) struct TlsConnector {
    settings: Tls,
    server_name: ServerName<'static>,
    /// How long files count as unchanged.
    check_after: Duration,
    current: Mutex<Current>,
    generation: AtomicU64,
}

/// What connections are made with, and the files it was read from.
struct Current {
    config: Arc<ClientConfig>,
    stamps: Vec<Stamp>,
    checked: Instant,
}

/// When a file was changed, and how long it is: cheap to ask, and different after every rotation.
type Stamp = Option<(SystemTime, u64)>;

impl TlsConnector {
    pub(super) fn new(settings: &Tls, host: &str, check_after: Duration) -> Result<Self, Error> {
        let name = settings.server_name.as_deref().unwrap_or(host).to_owned();
        let server_name = ServerName::try_from(name.clone())
            .map_err(|error| wrong(format!("{name:?} is not a server name"), error))?;
        let current = Current { stamps: stamps(settings), config: client_config(settings)?, checked: Instant::now() };
        Ok(Self {
            settings: settings.clone(),
            server_name,
            check_after,
            current: Mutex::new(current),
            generation: AtomicU64::new(0),
        })
    }

    /// Changes whenever new connections are made with other certificates than old ones.
    pub(super) fn generation(&self) -> u64 {
        drop(self.config());
        self.generation.load(Ordering::Acquire)
    }

    pub(super) async fn handshake(&self, tcp: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let connector = tokio_rustls::TlsConnector::from(self.config());
        connector.connect(self.server_name.clone(), tcp).await
    }

    /// The newest certificates that could be read.
    fn config(&self) -> Arc<ClientConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.stamps.is_empty() || current.checked.elapsed() < self.check_after {
            return Arc::clone(&current.config);
        }
        current.checked = Instant::now();
        let found = stamps(&self.settings);
        if found != current.stamps {
            match client_config(&self.settings) {
                Ok(config) => {
                    current.config = config;
                    current.stamps = found;
                    self.generation.fetch_add(1, Ordering::AcqRel);
                    tracing::debug!("certificates were replaced; making new connections");
                }
                // Half of a rotation, perhaps: the stamps stay old, so that the next look tries again.
                Err(error) => tracing::warn!(%error, "keeping the last certificates"),
            }
        }
        Arc::clone(&current.config)
    }
}

/// The state of every file that the settings name.
fn stamps(settings: &Tls) -> Vec<Stamp> {
    let authority = match &settings.trust {
        Trust::Authority(pem) => Some(pem),
        _ => None,
    };
    let identity = settings.client_certificate.iter().flat_map(|identity| [&identity.certificate, &identity.key]);
    let files = authority.into_iter().chain(identity).filter_map(|pem| match pem {
        Pem::File(path) => Some(path.as_path()),
        Pem::Data(_) => None,
    });
    files.map(stamp).collect()
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn client_config(settings: &Tls) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("the crypto provider has no usable TLS version".to_owned(), error))?;
    let builder = match &settings.trust {
        Trust::System => builder.with_root_certificates(native_roots()?),
        Trust::Authority(pem) => builder.with_root_certificates(roots(&pem.load()?)?),
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyServer { provider })),
    };
    let mut config = match &settings.client_certificate {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates_of(&identity.certificate.load()?, "client certificate")?;
            let key = PrivateKeyDer::from_pem_slice(&identity.key.load()?)
                .map_err(|error| wrong("client key is not a PEM private key".to_owned(), error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| wrong("client certificate and key do not fit".to_owned(), error))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates_of(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(Error::new(ErrorKind::Config, format!("{what} holds no PEM certificate"))),
        Err(error) => Err(wrong(format!("{what} is not PEM"), error)),
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for certificate in certificates_of(pem, "certificate authority")? {
        store.add(certificate).map_err(|error| wrong("certificate authority is malformed".to_owned(), error))?;
    }
    Ok(store)
}

fn native_roots() -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(loaded.certs);
    if store.is_empty() {
        let what = "this machine has no certificate authorities; name one in the kubeconfig";
        return Err(Error::new(ErrorKind::Config, what));
    }
    Ok(store)
}

fn wrong(message: String, source: impl Into<crate::error::BoxError>) -> Error {
    Error::new(ErrorKind::Config, message).with_source(source)
}

/// Believes any certificate, but still checks that the peer has its key.
#[derive(Debug)]
struct AcceptAnyServer {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

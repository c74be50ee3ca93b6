//! TLS with an explicit crypto provider, without using or changing the process-wide default.
//!
//! Certificate and key files are checked for changes while the program runs. After a change, new connections use the
//! new ones, old connections get no new requests, and watches on them end. While files cannot be read, the last ones are used.

use std::{
    fs, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    sign::CertifiedKey,
};
use tokio_rustls::client::TlsStream;

use super::{HttpSettings, broken, identity::IdentitySlot, stream::Stream};
use crate::{
    Error, ErrorKind,
    client::config::{ClientCertificate, Pem, Tls, Trust},
};

/// The peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// The server, with HTTP/2 offered.
    Server,
    /// The server, without HTTP/2.
    Http1Server,
    /// A proxy. It need not have a certificate of the cluster's authority: those that the system trusts are accepted,
    /// too.
    Proxy,
}

/// A connector for TLS connections.
pub(super) struct TlsConnector {
    settings: Tls,
    peer: Peer,
    server_name: ServerName<'static>,
    identity: Option<IdentitySlot>,
    /// How long files are considered unchanged.
    check_after: Duration,
    current: Mutex<Current>,
}

/// The current TLS configuration, and the state of its sources.
struct Current {
    config: Arc<ClientConfig>,
    generation: u64,
    stamps: Vec<Stamp>,
    checked: Instant,
    /// The number of identity changes that were processed, usable or not.
    identity_changes: u64,
}

/// The modification time and the length of a file: cheap to read, and different after every rotation.
type Stamp = Option<(SystemTime, u64)>;

impl TlsConnector {
    pub(super) fn new(
        tls: &Tls,
        host: &str,
        peer: Peer,
        settings: &HttpSettings,
        identity: Option<IdentitySlot>,
    ) -> Result<Self, Error> {
        let name = tls.server_name.as_deref().unwrap_or(host).to_owned();
        let server_name = ServerName::try_from(name.clone())
            .map_err(|error| wrong(format!("invalid server name {name:?}"), error))?;
        let (identity_changes, certificate) = identity.as_ref().map(IdentitySlot::current).unwrap_or_default();
        let current = Current {
            stamps: stamps(tls),
            config: client_config(tls, certificate.as_ref(), peer)?,
            generation: 0,
            checked: Instant::now(),
            identity_changes,
        };
        let check_after = settings.file_check;
        Ok(Self { settings: tls.clone(), peer, server_name, identity, check_after, current: Mutex::new(current) })
    }

    /// Returns a number that changes when new connections use other certificates than old ones.
    pub(super) fn generation(&self) -> u64 {
        self.refreshed().generation
    }

    pub(super) async fn handshake<T: Stream>(&self, stream: T) -> io::Result<TlsStream<T>> {
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&self.refreshed().config));
        connector.connect(self.server_name.clone(), stream).await
    }

    /// Opens a stream on which the server must speak HTTP/1.1.
    #[cfg(feature = "streams")]
    pub(super) async fn handshake_http1<T: Stream>(&self, stream: T) -> io::Result<TlsStream<T>> {
        let mut config = ClientConfig::clone(&self.refreshed().config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        connector.connect(self.server_name.clone(), stream).await
    }

    /// Returns the newest configuration that could be read.
    fn refreshed(&self) -> MutexGuard<'_, Current> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let look_at_files = !current.stamps.is_empty() && current.checked.elapsed() >= self.check_after;
        let identity_changes = self.identity.as_ref().map_or(0, IdentitySlot::changes);
        if !look_at_files && identity_changes == current.identity_changes {
            return current;
        }
        current.checked = Instant::now();
        let found = stamps(&self.settings);
        if found == current.stamps && identity_changes == current.identity_changes {
            return current;
        }
        let (identity_changes, certificate) = self.identity.as_ref().map(IdentitySlot::current).unwrap_or_default();
        current.identity_changes = identity_changes;
        match client_config(&self.settings, certificate.as_ref(), self.peer) {
            Ok(config) => {
                current.config = config;
                current.stamps = found;
                current.generation += 1;
                tracing::debug!("certificates changed, opening new connections");
            }
            // A rotation may be incomplete. The recorded stamps stay old, so that the next check reads the files again.
            Err(error) => tracing::warn!(%error, "cannot read certificates, using the last ones"),
        }
        current
    }
}

/// Checks that a certificate and a key are valid and belong together.
pub(crate) fn check_identity(identity: &ClientCertificate) -> Result<(), Error> {
    certified_key(identity).map(drop)
}

/// Returns the error of a failed handshake. An untrusted peer has its own kind, because a retry cannot succeed.
pub(super) fn refused_handshake(peer: &str, error: io::Error) -> Error {
    let below = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(why)) = below else {
        return broken(format!("TLS handshake with {peer} failed"), error);
    };
    let what = match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "is not valid yet",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "is for another host name"
        }
        // A bad signature means that the authority only has the name of a trusted one, such as its predecessor.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => "was signed by an unknown authority",
        CertificateError::Revoked => "was revoked",
        _ => "is not valid",
    };
    Error::new(ErrorKind::Untrusted, format!("{peer} is not trusted: its certificate {what}")).with_source(error)
}

/// Returns the state of every file in the settings.
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

fn client_config(settings: &Tls, identity: Option<&ClientCertificate>, peer: Peer) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("crypto provider has no supported TLS version".to_owned(), error))?;
    let builder = match &settings.trust {
        Trust::System => builder.with_root_certificates(native_roots()?),
        Trust::Authority(pem) => {
            let mut trusted = roots(&pem.load()?)?;
            if peer == Peer::Proxy {
                trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            builder.with_root_certificates(trusted)
        }
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyServer { provider })),
    };
    let mut config = match identity.or(settings.client_certificate.as_ref()) {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let key = Arc::new(certified_key(identity)?);
            builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(key)))
        }
    };
    config.alpn_protocols = match peer {
        Peer::Server => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Peer::Http1Server | Peer::Proxy => vec![b"http/1.1".to_vec()],
    };
    Ok(Arc::new(config))
}

fn certified_key(identity: &ClientCertificate) -> Result<CertifiedKey, Error> {
    let chain = certificates_of(&identity.certificate.load()?, "client certificate")?;
    let key = PrivateKeyDer::from_pem_slice(&identity.key.load()?)
        .map_err(|error| wrong("client key is not a PEM private key".to_owned(), error))?;
    CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(|error| wrong("client certificate and key do not match".to_owned(), error))
}

fn certificates_of(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(Error::new(ErrorKind::Config, format!("{what} contains no PEM certificate"))),
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
        let what = "the system has no certificate authorities: set certificate-authority in the kubeconfig";
        return Err(Error::new(ErrorKind::Config, what));
    }
    Ok(store)
}

fn wrong(message: String, source: impl Into<crate::error::BoxError>) -> Error {
    Error::new(ErrorKind::Config, message).with_source(source)
}

/// A verifier that accepts any certificate, but still checks that the peer has its key.
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

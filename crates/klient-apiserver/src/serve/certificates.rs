//! Self-made certificates: an authority, a server certificate and a client certificate.

use std::{io, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use tokio_rustls::TlsAcceptor;

/// The certificates of one server.
pub(super) struct Certificates {
    authority: CertificateDer<'static>,
    authority_pem: String,
    server: CertificateDer<'static>,
    server_key: Vec<u8>,
    client_pem: String,
    client_key_pem: String,
}

impl Certificates {
    pub(super) fn new() -> io::Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "klient embedded API server");
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let authority = CertifiedIssuer::self_signed(params, key).map_err(io::Error::other)?;

        let server_key = KeyPair::generate().map_err(io::Error::other)?;
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "kubernetes.default.svc".to_owned()];
        let params = CertificateParams::new(names).map_err(io::Error::other)?;
        let server = params.signed_by(&server_key, &authority).map_err(io::Error::other)?;

        let client_key = KeyPair::generate().map_err(io::Error::other)?;
        let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        params.distinguished_name.push(DnType::CommonName, crate::auth::ADMINISTRATOR);
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client = params.signed_by(&client_key, &authority).map_err(io::Error::other)?;
        Ok(Self {
            authority: authority.der().clone(),
            authority_pem: authority.pem(),
            server: server.der().clone(),
            server_key: server_key.serialize_der(),
            client_pem: client.pem(),
            client_key_pem: client_key.serialize_pem(),
        })
    }

    /// Returns the certificate of the authority, as PEM.
    pub(super) fn authority(&self) -> &str {
        &self.authority_pem
    }

    /// Returns a TLS configuration that accepts clients without a certificate, and verifies those that have one.
    pub(super) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).map_err(io::Error::other)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.server_key.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.server.clone()], key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    pub(super) fn authority_base64(&self) -> String {
        STANDARD.encode(&self.authority_pem)
    }

    pub(super) fn client_base64(&self) -> String {
        STANDARD.encode(&self.client_pem)
    }

    pub(super) fn client_key_base64(&self) -> String {
        STANDARD.encode(&self.client_key_pem)
    }
}

//! Self-made certificates: an authority, a server certificate and a client certificate.

use std::{io, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use tokio_rustls::TlsAcceptor;

use crate::access::{AUTHENTICATED, User};

/// The certificates of one server.
pub(super) struct Certificates {
    authority: CertifiedIssuer<'static, KeyPair>,
    server: CertificateDer<'static>,
    server_key: Vec<u8>,
    administrator: Identity,
}

/// The client certificate of a user, and its key, as PEM.
pub(super) struct Identity {
    certificate: String,
    key: String,
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

        let administrator = identity(&authority, &User::administrator())?;
        Ok(Self { authority, server: server.der().clone(), server_key: server_key.serialize_der(), administrator })
    }

    /// Creates a client certificate of a user, whose groups are its organizations.
    pub(super) fn identity(&self, user: &User) -> io::Result<Identity> {
        identity(&self.authority, user)
    }

    /// Returns the client certificate of the administrator.
    pub(super) fn administrator(&self) -> &Identity {
        &self.administrator
    }

    /// Returns the certificate of the authority, as PEM.
    pub(super) fn authority(&self) -> String {
        self.authority.pem()
    }

    /// Returns a TLS configuration that accepts clients without a certificate, and verifies those that have one.
    pub(super) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).map_err(io::Error::other)?;
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
        STANDARD.encode(self.authority.pem())
    }
}

impl Identity {
    pub(super) fn certificate_base64(&self) -> String {
        STANDARD.encode(&self.certificate)
    }

    pub(super) fn key_base64(&self) -> String {
        STANDARD.encode(&self.key)
    }
}

fn identity(authority: &CertifiedIssuer<'static, KeyPair>, user: &User) -> io::Result<Identity> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user.name());
    // Every authenticated user is in this group. An identity has one organization at most.
    let mut groups = user.groups().filter(|group| *group != AUTHENTICATED);
    if let Some(group) = groups.next() {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    if groups.next().is_some() {
        return Err(io::Error::other("a client certificate can have one group only"));
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, authority).map_err(io::Error::other)?;
    Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
}

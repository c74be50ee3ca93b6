//! TLS settings: the trusted certificate authorities and the client certificate.
//!
//! Files are referenced, not read once, because they are replaced while a program runs.

use std::{borrow::Cow, fmt, fs, path::PathBuf};

use crate::{Error, ErrorKind};

/// TLS settings.
#[doc(alias = "TLSClientConfig")]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tls {
    /// The servers to trust.
    pub trust: Trust,
    /// The name to expect in the server's certificate, if it is not the host's.
    pub server_name: Option<String>,
    /// The client certificate.
    pub client_certificate: Option<ClientCertificate>,
    /// The `https` proxies to trust, if not the default: those that the system or `trust` trusts.
    ///
    /// A proxy is verified even if the server is not ([`Trust::Anyone`], `insecure-skip-tls-verify`), because it may
    /// receive a password. `Some(Trust::Anyone)` turns that off.
    pub proxy_trust: Option<Trust>,
}

impl Tls {
    /// Sets the servers to trust.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the name to expect in the server's certificate.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sets the client certificate.
    #[must_use]
    pub fn client_certificate(mut self, certificate: Pem, key: Pem) -> Self {
        self.client_certificate = Some(ClientCertificate { certificate, key });
        self
    }
}

impl Tls {
    /// Sets the `https` proxies to trust. Those that the system trusts are always trusted.
    #[must_use]
    pub fn proxy_trust(mut self, trust: Trust) -> Self {
        self.proxy_trust = Some(trust);
        self
    }

    /// Returns the `https` proxies to trust.
    pub(in crate::client) fn trust_of_proxies(&self) -> Trust {
        match (&self.proxy_trust, &self.trust) {
            (Some(trust), _) => trust.clone(),
            // The setting is about the server's certificate, and users may not know of the proxy.
            (None, Trust::Anyone) => Trust::System,
            (None, trust) => trust.clone(),
        }
    }
}

/// The servers to trust.
#[doc(alias = "CAData")]
#[doc(alias = "root_cert")]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Trust {
    /// Servers whose certificates the system trusts.
    #[default]
    System,
    /// Servers whose certificates are signed by one of these authorities, and no others.
    Authority(Pem),
    /// All servers. An attacker on the network can then read and change all traffic, credentials included.
    Anyone,
}

/// A certificate and its private key.
#[doc(alias = "CertData")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientCertificate {
    /// The certificate, followed by intermediate certificates to send, if any.
    pub certificate: Pem,
    /// The private key of the certificate.
    pub key: Pem,
}

impl ClientCertificate {
    /// Creates the pair of a certificate and its private key.
    pub fn new(certificate: Pem, key: Pem) -> Self {
        Self { certificate, key }
    }
}

/// Certificates or a key in PEM.
#[derive(Clone, PartialEq)]
// Exhaustive on purpose: a kubeconfig supports exactly these two.
pub enum Pem {
    /// A file that is read when needed.
    File(PathBuf),
    /// The text itself.
    Data(Vec<u8>),
}

impl Pem {
    /// Returns the text, reading the file if necessary.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn load(&self) -> Result<Cow<'_, [u8]>, Error> {
        match self {
            Self::Data(data) => Ok(data.into()),
            Self::File(path) => fs::read(path).map(Cow::Owned).map_err(|error| {
                Error::new(ErrorKind::Config, format!("cannot read {}", path.display())).with_source(error)
            }),
        }
    }
}

/// Shows the name of a file, but never the text.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Data(data) => write!(f, "Data([{} bytes])", data.len()),
        }
    }
}

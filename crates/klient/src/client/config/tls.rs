//! How a server is trusted, and which certificate it is shown.
//!
//! Files stay files, because they are replaced while a program runs.

use std::{borrow::Cow, fmt, fs, path::PathBuf};

use crate::{Error, ErrorKind};

/// Settings for TLS.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tls {
    /// Whom to trust.
    pub trust: Trust,
    /// The name to expect in the server's certificate, if it is not the host's.
    pub server_name: Option<String>,
    /// The certificate to show.
    pub client_certificate: Option<ClientCertificate>,
}

impl Tls {
    /// Sets whom to trust.
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

    /// Sets the certificate to show.
    #[must_use]
    pub fn client_certificate(mut self, certificate: Pem, key: Pem) -> Self {
        self.client_certificate = Some(ClientCertificate { certificate, key });
        self
    }
}

/// Which servers to trust.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Trust {
    /// Those whose certificates the system trusts.
    #[default]
    System,
    /// Those whose certificates come from these, and no others.
    Authority(Pem),
    /// All of them. Whoever is on the way then reads and changes everything, credentials included.
    Anyone,
}

/// A certificate and its private key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientCertificate {
    /// The certificate, with those above it if they have to be sent.
    pub certificate: Pem,
    /// Its private key.
    pub key: Pem,
}

impl ClientCertificate {
    /// A certificate and its private key.
    pub fn new(certificate: Pem, key: Pem) -> Self {
        Self { certificate, key }
    }
}

/// Certificates or a key in PEM.
#[derive(Clone, PartialEq)]
// Exhaustive on purpose: a kubeconfig has these two.
pub enum Pem {
    /// A file, to be read when needed.
    File(PathBuf),
    /// The text itself.
    Data(Vec<u8>),
}

impl Pem {
    /// The text; reads the file if it is one.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn load(&self) -> Result<Cow<'_, [u8]>, Error> {
        match self {
            Self::Data(data) => Ok(data.into()),
            Self::File(path) => fs::read(path).map(Cow::Owned).map_err(|error| {
                Error::new(ErrorKind::Config, format!("{} cannot be read", path.display())).with_source(error)
            }),
        }
    }
}

/// Shows a file's name, but never the text.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Data(data) => write!(f, "Data([{} bytes])", data.len()),
        }
    }
}

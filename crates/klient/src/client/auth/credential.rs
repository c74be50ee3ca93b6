//! An issued credential: a token, a certificate or both, with an expiry.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use http::HeaderValue;

use crate::client::config::ClientCertificate;

/// A credential that may expire.
pub(crate) struct Credential {
    /// The value of the `Authorization` header.
    pub(crate) header: Option<HeaderValue>,
    /// The client certificate for TLS.
    pub(crate) certificate: Option<ClientCertificate>,
    /// When the credential expires, if known.
    pub(crate) expires: Option<SystemTime>,
}

impl Credential {
    /// Returns how long the credential is still valid, or `None` if its expiry is unknown.
    pub(super) fn time_left(&self) -> Option<Duration> {
        Some(self.expires?.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Returns whether both authenticate with the same header and certificate.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.header == other.header && self.certificate == other.certificate
    }
}

// `Debug` never prints the secrets.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("header", &self.header.is_some())
            .field("certificate", &self.certificate.is_some())
            .field("expires", &self.expires)
            .finish()
    }
}

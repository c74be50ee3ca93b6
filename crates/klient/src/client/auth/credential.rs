//! What an issuer of credentials gives: a token, a certificate or both, and until when.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use http::HeaderValue;

use crate::client::config::ClientCertificate;

/// A credential that does not last for ever.
pub(crate) struct Credential {
    /// For the `Authorization` of requests.
    pub(crate) header: Option<HeaderValue>,
    /// For TLS.
    pub(crate) certificate: Option<ClientCertificate>,
    /// Until when it is good, if that is known.
    pub(crate) expires: Option<SystemTime>,
}

impl Credential {
    /// How much longer it is good; `None` if nothing is known about that.
    pub(super) fn time_left(&self) -> Option<Duration> {
        Some(self.expires?.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Whether a server cannot tell them apart.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.header == other.header && self.certificate == other.certificate
    }
}

// Never prints the secrets.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("header", &self.header.is_some())
            .field("certificate", &self.certificate.is_some())
            .field("expires", &self.expires)
            .finish()
    }
}

//! Certificates of a webhook server: its own, stored in a Secret, or those of files.

mod files;
mod pair;
mod rotation;
mod state;

use std::{path::PathBuf, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

pub(super) use self::{
    files::Files,
    pair::{Pair, provider, verify},
    rotation::{Facts, Step},
    state::State,
};

/// Where the certificates of a webhook server come from.
///
/// ```
/// use std::time::Duration;
/// use klient::webhook::Certificates;
///
/// let own = Certificates::managed("shop", "webhook-certificates").lifetime(Duration::from_secs(30 * 24 * 3600));
/// let of_cert_manager = Certificates::files("/certs/tls.crt", "/certs/tls.key");
/// ```
#[derive(Clone, Debug)]
pub struct Certificates {
    pub(super) source: Source,
}

#[derive(Clone, Debug)]
pub(super) enum Source {
    Managed(Managed),
    Files { certificate: PathBuf, key: PathBuf, authority: Option<PathBuf> },
}

/// The settings of certificates that the server creates by itself.
#[derive(Clone, Debug)]
pub(super) struct Managed {
    pub(super) namespace: String,
    pub(super) secret: String,
    pub(super) lifetime: Duration,
    pub(super) settle: Duration,
}

impl Certificates {
    /// Creates certificates, stores them in a Secret, and renews them.
    ///
    /// Each renewal has two steps. The new authority is announced in all registrations beside the old one. Once they show it and the
    /// [settle time](Self::settle) has passed, all replicas switch to the new certificate, and the old authority is removed later. So
    /// a certificate that any replica serves is trusted at any moment. Any replica may take a step; the Secret's resource version
    /// decides between them.
    ///
    /// The key of an authority is thrown away once its certificate is signed: it is stored nowhere. A Secret that expired, was deleted or
    /// was edited is repaired.
    pub fn managed(namespace: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            source: Source::Managed(Managed {
                namespace: namespace.into(),
                secret: secret.into(),
                lifetime: Duration::from_secs(90 * 24 * 3600),
                settle: Duration::from_secs(60),
            }),
        }
    }

    /// Reads certificates from files, such as those of cert-manager, and reads them again when they change. Files that cannot be used are
    /// ignored until they can.
    ///
    /// The registrations get no authority, so that another program can inject it, unless [`authority`](Self::authority) names a file.
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { source: Source::Files { certificate: certificate.into(), key: key.into(), authority: None } }
    }

    /// Sets the file of the authority that registrations get, for [`files`](Self::files).
    #[must_use]
    pub fn authority(mut self, path: impl Into<PathBuf>) -> Self {
        if let Source::Files { authority, .. } = &mut self.source {
            *authority = Some(path.into());
        }
        self
    }

    /// Sets the lifetime of managed certificates; 90 days by default. They are renewed after two thirds of it.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        if let Source::Managed(managed) = &mut self.source {
            managed.lifetime = lifetime;
        }
        self
    }

    /// Sets how long each step of a renewal waits for all API servers and replicas; 60 seconds by default.
    #[must_use]
    pub fn settle(mut self, settle: Duration) -> Self {
        if let Source::Managed(managed) = &mut self.source {
            managed.settle = settle;
        }
        self
    }
}

/// The certificate that is served, which changes while connections are accepted.
#[derive(Debug, Default)]
pub(super) struct Served {
    current: ArcSwapOption<CertifiedKey>,
}

impl Served {
    pub(super) fn set(&self, key: Arc<CertifiedKey>) {
        self.current.store(Some(key));
    }

    pub(super) fn is_set(&self) -> bool {
        self.current.load().is_some()
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}

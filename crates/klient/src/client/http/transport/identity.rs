//! A client certificate that is set while the program runs, such as one from a plugin.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::client::config::ClientCertificate;

/// A client certificate that can be replaced at any time, shared by its source and the transport.
///
/// It takes precedence over the certificate of the TLS settings. After a change, new requests use new connections.
/// Watches on old connections end between two events, after [`HttpSettings::file_check`](super::HttpSettings::file_check)
/// at the latest; informers and [`RetryWatch`](crate::client::RetryWatch) resume them on new ones. Other responses in
/// progress are read to their end.
///
/// ```
/// use klient::client::{config::{ClientCertificate, Pem}, http::{HttpSettings, IdentitySlot}};
///
/// let identity = IdentitySlot::default();
/// let mut settings = HttpSettings::new("https://127.0.0.1:6443".parse()?);
/// settings.identity = Some(identity.clone());
/// // Later, and whenever there is a new certificate:
/// # let (certificate, key) = (b"".to_vec(), b"".to_vec());
/// identity.set(Some(ClientCertificate::new(Pem::Data(certificate), Pem::Data(key))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct IdentitySlot {
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    certificate: Option<ClientCertificate>,
    changes: u64,
}

impl IdentitySlot {
    /// Sets the certificate for new connections. Setting the same one again has no effect.
    pub fn set(&self, certificate: Option<ClientCertificate>) {
        let mut held = self.lock();
        if held.certificate != certificate {
            held.certificate = certificate;
            held.changes += 1;
        }
    }

    /// Returns the number of changes, and the current certificate.
    pub(super) fn current(&self) -> (u64, Option<ClientCertificate>) {
        let held = self.lock();
        (held.changes, held.certificate.clone())
    }

    pub(super) fn changes(&self) -> u64 {
        self.lock().changes
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// `Debug` never prints the key.
impl fmt::Debug for IdentitySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lock().certificate.is_some() { "IdentitySlot(set)" } else { "IdentitySlot(empty)" })
    }
}

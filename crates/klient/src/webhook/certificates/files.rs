//! Certificates from files, which are read again when they change.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::sign::CertifiedKey;

use super::pair;

/// The files of a certificate, and their last contents.
pub(in crate::webhook) struct Files {
    certificate: PathBuf,
    key: PathBuf,
    last: Option<(Vec<u8>, Vec<u8>)>,
}

impl Files {
    pub(in crate::webhook) fn new(certificate: &Path, key: &Path) -> Self {
        Self { certificate: certificate.to_owned(), key: key.to_owned(), last: None }
    }

    /// Returns the certificate if the files changed.
    ///
    /// # Errors
    ///
    /// Returns an error if the files cannot be read, or do not fit together. They may be half-written, and are read again later.
    pub(in crate::webhook) fn changed(&mut self) -> Result<Option<Arc<CertifiedKey>>, String> {
        let read = |path: &Path| fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
        let found = (read(&self.certificate)?, read(&self.key)?);
        if self.last.as_ref() == Some(&found) {
            return Ok(None);
        }
        let certified = pair::certified(&found.0, &found.1)?;
        self.last = Some(found);
        Ok(Some(certified))
    }

    /// Returns the certificate as PEM.
    pub(in crate::webhook) fn certificate(&self) -> Option<&[u8]> {
        self.last.as_ref().map(|(certificate, _)| certificate.as_slice())
    }
}

//! A certificate with its key, and its authority.

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    sign::CertifiedKey,
};

/// A certificate, its key, and the certificate of the authority that signed it, all as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::webhook) struct Pair {
    pub(in crate::webhook) authority: String,
    pub(in crate::webhook) certificate: String,
    pub(in crate::webhook) key: String,
}

impl Pair {
    /// Creates an authority and a certificate of it. The authority's key is not kept.
    pub(in crate::webhook) fn create(
        owner: &str,
        names: &[String],
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<Self, rcgen::Error> {
        // Clocks of API servers may be behind.
        let (from, until) = (now - BACKDATED, now + lifetime);
        // Authorities need different subjects, so that a bundle of two is searched by subject.
        let number = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, format!("{owner} webhook authority {number}"));
        (params.not_before, params.not_after) = (from.into(), until.into());
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name.push(DnType::CommonName, names.first().cloned().unwrap_or_default());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (from.into(), until.into());
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        Ok(Self { authority: authority.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// Returns the pair as rustls serves it. The key must be that of the certificate.
    pub(in crate::webhook) fn certified(&self) -> Result<Arc<CertifiedKey>, String> {
        certified(self.certificate.as_bytes(), self.key.as_bytes())
    }

    /// Returns why the certificate would not be trusted at a time, if so.
    pub(in crate::webhook) fn problem(&self, bundle: &str, name: &str, at: SystemTime) -> Option<String> {
        if let Err(problem) = self.certified() {
            return Some(problem);
        }
        verify(&self.certificate, bundle, name, at).err()
    }
}

/// Returns a certificate chain and its key as rustls serves them.
pub(super) fn certified(chain: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, String> {
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.map_err(|_| "the certificate is not PEM".to_owned())?;
    if chain.is_empty() {
        return Err("there is no certificate".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| "the key is not PEM".to_owned())?;
    let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| error.to_string())?;
    Ok(Arc::new(certified))
}

/// Checks that a certificate is trusted by a bundle, for a name and at a time.
pub(in crate::webhook) fn verify(chain: &str, bundle: &str, name: &str, at: SystemTime) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()).flatten() {
        // What is no certificate trusts nothing.
        let _ = roots.add(certificate);
    }
    let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(chain.as_bytes()).flatten().collect();
    let (leaf, others) = chain.split_first().ok_or_else(|| "there is no certificate".to_owned())?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| error.to_string())?;
    let name = match name.parse::<IpAddr>() {
        Ok(address) => ServerName::IpAddress(address.into()),
        Err(_) => ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?,
    };
    let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap_or_default());
    verifier.verify_server_cert(leaf, others, &name, &[], at).map(drop).map_err(|error| error.to_string())
}

/// Returns the crypto provider, which is never the default of the process.
pub(in crate::webhook) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

/// How long before now certificates become valid.
const BACKDATED: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_is_trusted_by_its_own_authority_alone() {
        let now = SystemTime::now();
        let names = ["s.ns.svc".to_owned(), "127.0.0.1".to_owned()];
        let day = Duration::from_secs(86_400);
        let pair = Pair::create("a", &names, now, day).unwrap();
        let other = Pair::create("a", &names, now, day).unwrap();
        assert_eq!(pair.problem(&pair.authority, "s.ns.svc", now), None);
        assert_eq!(pair.problem(&pair.authority, "127.0.0.1", now), None);
        assert_eq!(pair.problem(&format!("{}{}", other.authority, pair.authority), "s.ns.svc", now), None);
        assert!(pair.problem(&other.authority, "s.ns.svc", now).is_some());
        assert!(pair.problem(&pair.authority, "t.ns.svc", now).is_some());
        assert!(pair.problem(&pair.authority, "s.ns.svc", now + 2 * day).is_some());
        let mixed = Pair { key: other.key, ..pair };
        assert!(mixed.certified().is_err());
    }
}

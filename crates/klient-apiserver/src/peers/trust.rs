//! Verification of a webhook's certificate by the bundle of its configuration.
//!
//! Go accepts a certificate that is in the bundle itself, with any issuer, and envtest relies on that. webpki accepts only what an authority of
//! the bundle has signed, so that such certificates are verified here: their time, their names and their usage.

use std::sync::Arc;

use jiff::{civil::DateTime, tz::TimeZone};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
    server::ParsedCertificate,
};

use crate::der::{EXTENSIONS, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE, VERSION};

/// The certificates that verify a webhook.
#[derive(Debug)]
pub(super) struct Bundle {
    certificates: Vec<CertificateDer<'static>>,
    /// The verifier for what they have signed, if any of them can be an authority.
    signed: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Bundle {
    /// Reads PEM.
    pub(super) fn new(pem: &[u8], provider: Arc<CryptoProvider>) -> Self {
        let certificates = certificates(pem);
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().ok();
        Self { certificates, signed, provider }
    }
}

/// Returns the certificates of a bundle.
pub(super) fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).flatten().collect()
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.iter().any(|trusted| trusted == certificate) {
            return verify(certificate, name, now).map(|()| ServerCertVerified::assertion());
        }
        let Some(signed) = &self.signed else { return Err(CertificateError::UnknownIssuer.into()) };
        signed.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifies a certificate that is trusted as it is.
fn verify(certificate: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> Result<(), Error> {
    let read = Contents::read(certificate).ok_or(CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < read.begin {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > read.end {
        return Err(CertificateError::Expired.into());
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    if read.is_for_servers { Ok(()) } else { Err(CertificateError::InvalidPurpose.into()) }
}

/// The validity of a certificate.
struct Contents {
    /// In seconds since 1970, as the end is.
    begin: i64,
    end: i64,
    is_for_servers: bool,
}

impl Contents {
    fn read(certificate: &[u8]) -> Option<Self> {
        let certificate = Reader(certificate).value(SEQUENCE)?;
        let mut fields = Reader(Reader(certificate).value(SEQUENCE)?);
        if fields.tag()? == VERSION {
            fields.next()?;
        }
        // Serial number, algorithm and issuer.
        for _ in 0..3 {
            fields.next()?;
        }
        let mut validity = Reader(fields.value(SEQUENCE)?);
        let (begin, end) = (seconds(validity.next()?)?, seconds(validity.next()?)?);
        let mut is_for_servers = true;
        while !fields.0.is_empty() {
            let (tag, content) = fields.next()?;
            if tag == EXTENSIONS {
                is_for_servers = usages(content)?.is_none_or(|usages| usages.iter().any(|usage| is_of_servers(usage)));
            }
        }
        Some(Self { begin, end, is_for_servers })
    }
}

/// Returns the extended key usages among extensions. A certificate without this extension has all usages.
fn usages(extensions: &[u8]) -> Option<Option<Vec<&[u8]>>> {
    let mut extensions = Reader(Reader(extensions).value(SEQUENCE)?);
    while !extensions.0.is_empty() {
        let mut extension = Reader(extensions.value(SEQUENCE)?);
        if extension.value(OBJECT_IDENTIFIER)? != EXTENDED_KEY_USAGE {
            continue;
        }
        let (mut tag, mut content) = extension.next()?;
        if tag != OCTET_STRING {
            // Whether it is critical.
            (tag, content) = extension.next()?;
        }
        if tag != OCTET_STRING {
            return None;
        }
        let mut usages = Reader(Reader(content).value(SEQUENCE)?);
        let mut found = Vec::new();
        while !usages.0.is_empty() {
            found.push(usages.value(OBJECT_IDENTIFIER)?);
        }
        return Some(Some(found));
    }
    Some(None)
}

fn is_of_servers(usage: &[u8]) -> bool {
    usage == SERVER_AUTHENTICATION || usage == ANY_USAGE
}

/// Returns a time in seconds since 1970.
fn seconds((tag, text): (u8, &[u8])) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTHENTICATION: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const ANY_USAGE: &[u8] = &[0x55, 0x1d, 0x25, 0];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
    };

    use super::*;

    fn params() -> CertificateParams {
        let mut params = CertificateParams::new(vec!["hook.shop.svc".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2060, 1, 1);
        params
    }

    /// Returns a certificate of an authority that is in no bundle.
    fn signed_by_other(params: &CertificateParams) -> rcgen::Certificate {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "other");
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap()
    }

    fn verified(bundle: &str, shown: &CertificateDer<'_>, name: &'static str, year: u64) -> Result<(), Error> {
        let bundle = Bundle::new(bundle.as_bytes(), Arc::new(rustls::crypto::ring::default_provider()));
        let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_557_600 + 1_000_000));
        bundle.verify_server_cert(shown, &[], &ServerName::try_from(name).unwrap(), &[], now).map(drop)
    }

    #[test]
    fn certificate_in_the_bundle_is_trusted_with_any_issuer() {
        for year in [2025, 2055] {
            let certificate = signed_by_other(&params());
            assert_eq!(verified(&certificate.pem(), certificate.der(), "hook.shop.svc", year), Ok(()));
            assert_eq!(verified(&certificate.pem(), certificate.der(), "127.0.0.1", year), Ok(()));
        }
    }

    #[test]
    fn certificate_outside_the_bundle_needs_an_authority() {
        let (trusted, shown) = (signed_by_other(&params()), signed_by_other(&params()));
        let unknown = Err(CertificateError::UnknownIssuer.into());
        assert_eq!(verified(&trusted.pem(), shown.der(), "hook.shop.svc", 2025), unknown);
        assert_eq!(verified("", shown.der(), "hook.shop.svc", 2025), unknown);
    }

    #[test]
    fn trusted_certificate_is_refused_outside_its_time() {
        let certificate = signed_by_other(&params());
        let at = |year| verified(&certificate.pem(), certificate.der(), "hook.shop.svc", year);
        assert_eq!(at(2019), Err(CertificateError::NotValidYet.into()));
        assert_eq!(at(2061), Err(CertificateError::Expired.into()));
    }

    #[test]
    fn trusted_certificate_is_refused_for_another_name() {
        let certificate = signed_by_other(&params());
        let problem = verified(&certificate.pem(), certificate.der(), "other.shop.svc", 2025).unwrap_err();
        assert!(
            matches!(problem, Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })),
            "{problem}"
        );
    }

    #[test]
    fn trusted_certificate_is_refused_if_not_for_servers() {
        let mut params = params();
        let with = |params: &CertificateParams| {
            let certificate = signed_by_other(params);
            verified(&certificate.pem(), certificate.der(), "hook.shop.svc", 2025)
        };
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        assert_eq!(with(&params), Err(CertificateError::InvalidPurpose.into()));
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        assert_eq!(with(&params), Ok(()));
    }

    #[test]
    fn damaged_certificate_is_read_without_panic() {
        let certificate = signed_by_other(&params());
        let der = certificate.der().as_ref();
        for length in 0..der.len() {
            assert!(Contents::read(&der[..length]).is_none(), "of {length} bytes");
        }
        for at in 0..der.len() {
            let mut damaged = der.to_vec();
            damaged[at] ^= 0xff;
            let _ = Contents::read(&damaged);
        }
    }
}

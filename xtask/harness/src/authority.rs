//! A certificate authority for servers and users, created for one test.

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub struct CertifiedKey {
    /// The certificate.
    pub certificate: String,
    /// The private key of the certificate.
    pub key: String,
}

impl Authority {
    /// Creates an authority with a new key.
    ///
    /// # Errors
    ///
    /// Returns an error if the key or the certificate cannot be created.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    /// Returns the certificate of the authority, in PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Creates a key and a certificate for a server on loopback.
    ///
    /// # Errors
    ///
    /// Returns an error if the key or the certificate cannot be created.
    pub fn server(&self) -> Result<CertifiedKey> {
        self.certify(&CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?)
    }

    /// Creates a key and a client certificate for a user.
    ///
    /// # Errors
    ///
    /// Returns an error if the key or the certificate cannot be created.
    pub fn user(&self, name: &str, group: &str) -> Result<CertifiedKey> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.certify(&params)
    }

    fn certify(&self, params: &CertificateParams) -> Result<CertifiedKey> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(CertifiedKey { certificate, key: key.serialize_pem() })
    }
}

//! The user of a client certificate: its common name, and its organizations as groups.
//!
//! TLS has verified the certificate already. What cannot be read here has no user.

use super::User;
use crate::der::{OBJECT_IDENTIFIER, Reader, SEQUENCE, SET, VERSION};

/// Returns the user that a certificate in DER names.
pub(crate) fn subject(certificate: &[u8]) -> Option<User> {
    let certificate = Reader(certificate).value(SEQUENCE)?;
    let mut fields = Reader(Reader(certificate).value(SEQUENCE)?);
    if fields.tag()? == VERSION {
        fields.next()?;
    }
    // Serial number, algorithm, issuer and validity.
    for _ in 0..4 {
        fields.next()?;
    }
    let mut names = Reader(fields.value(SEQUENCE)?);
    let mut user = User::default();
    while !names.0.is_empty() {
        let mut set = Reader(names.value(SET)?);
        while !set.0.is_empty() {
            let mut pair = Reader(set.value(SEQUENCE)?);
            let kind = pair.value(OBJECT_IDENTIFIER)?;
            let (_, text) = pair.next()?;
            match kind {
                COMMON_NAME => user.name = String::from_utf8(text.to_vec()).ok()?,
                ORGANIZATION => user.groups.push(String::from_utf8(text.to_vec()).ok()?),
                _ => {}
            }
        }
    }
    (!user.name.is_empty()).then_some(user)
}

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn subject_has_common_name_and_organizations() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CountryName, "CH");
        params.distinguished_name.push(DnType::OrganizationName, "devs");
        params.distinguished_name.push(DnType::CommonName, "bób");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(subject(certificate.der()), Some(User::new("bób").group("devs")));
    }

    #[test]
    fn subject_of_damaged_certificate_is_none_or_a_user() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "bob");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let der = certificate.der().as_ref();
        for length in 0..der.len() {
            assert_eq!(subject(&der[..length]), None, "of {length} bytes");
        }
        for at in 0..der.len() {
            let mut damaged = der.to_vec();
            damaged[at] ^= 0xff;
            let _ = subject(&damaged);
        }
    }
}

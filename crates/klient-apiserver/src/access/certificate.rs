//! The user of a client certificate: its common name, and its organizations as groups.
//!
//! TLS has verified the certificate already. What cannot be read here has no user.

use super::User;

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

/// The rest of a DER document.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn tag(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Returns the tag and content of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk::<2>()?;
        let mut length = usize::from(first);
        if first & 0x80 != 0 {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > size_of::<u32>() {
                return None;
            }
            let (bytes, after) = rest.split_at_checked(count)?;
            length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            rest = after;
        }
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// Returns the content of the next value, if it has a tag.
    fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const VERSION: u8 = 0xa0;
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

//! Warnings about secrets of type `kubernetes.io/tls`: the errors of Go's reader of key pairs.
//!
//! Certificates are read only as far as their public key. An ECDSA key without its public point is not compared.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::Value;

use super::{Told, pem};
use crate::der::{OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE, VERSION};

/// Adds a warning about a secret whose certificate and key are not a pair.
pub(in crate::builtin) fn secret(object: &Value, _: Option<&Value>, told: &mut Told) {
    if object["type"] != "kubernetes.io/tls" {
        return;
    }
    let data = |name: &str| STANDARD.decode(object["data"][name].as_str().unwrap_or_default()).unwrap_or_default();
    told.extend(problem(&data("tls.crt"), &data("tls.key")));
}

/// The public part of a key.
#[derive(PartialEq, Eq)]
enum Public {
    /// The modulus and the exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// The point on the curve, if it is known.
    Ecdsa(Option<Vec<u8>>),
    Ed25519(Vec<u8>),
    Other,
}

/// Returns why a certificate and a key in PEM are not a pair.
fn problem(certificate: &[u8], key: &[u8]) -> Option<String> {
    let (certificates, others): (Vec<_>, Vec<_>) =
        pem::blocks(certificate).into_iter().partition(|block| block.label == "CERTIFICATE");
    let Some(certificate) = certificates.first() else {
        let labels: Vec<&str> = others.iter().map(|block| block.label.as_str()).collect();
        return Some(no_certificate(&labels));
    };
    let blocks = pem::blocks(key);
    let is_key = |label: &str| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY");
    let Some(key) = blocks.iter().find(|block| is_key(&block.label)) else {
        let labels: Vec<&str> = blocks.iter().map(|block| block.label.as_str()).collect();
        return Some(no_key(&labels));
    };
    let public = match certified(&certificate.contents) {
        Ok(public) => public,
        Err(why) => return Some(format!("x509: {why}")),
    };
    let Some(own) = private(&key.contents) else { return Some("tls: failed to parse private key".to_owned()) };
    let why = match (public, own) {
        (Public::Other, _) => "unknown public key algorithm",
        (_, Public::Other) => "found unknown private key type in PKCS#8 wrapping",
        (Public::Ecdsa(_), Public::Ecdsa(None)) => return None,
        (public, own) if public == own => return None,
        (public, own) if std::mem::discriminant(&public) == std::mem::discriminant(&own) => {
            "private key does not match public key"
        }
        _ => "private key type does not match public key type",
    };
    Some(format!("tls: {why}"))
}

fn no_certificate(found: &[&str]) -> String {
    match found {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [only] if only.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()
        }
        _ => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            found.join(" ")
        ),
    }
}

fn no_key(found: &[&str]) -> String {
    match found {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        ["CERTIFICATE"] => "tls: found a certificate rather than a key in the PEM for the private key".to_owned(),
        _ => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            found.join(" ")
        ),
    }
}

/// Returns the public key of a certificate, or which part of it is malformed.
fn certified(der: &[u8]) -> Result<Public, &'static str> {
    let mut document = Reader(der);
    let mut certificate = Reader(document.value(SEQUENCE).ok_or("malformed certificate")?);
    let mut fields = Reader(certificate.value(SEQUENCE).ok_or("malformed tbs certificate")?);
    if fields.tag() == Some(VERSION) {
        fields.next().ok_or("malformed version")?;
    }
    fields.value(INTEGER).ok_or("malformed serial number")?;
    for part in
        ["malformed signature algorithm identifier", "malformed issuer", "malformed validity", "malformed issuer"]
    {
        fields.value(SEQUENCE).ok_or(part)?;
    }
    let mut key = Reader(fields.value(SEQUENCE).ok_or("malformed spki")?);
    let algorithm = key.value(SEQUENCE).ok_or("malformed public key algorithm identifier")?;
    let bits = key.value(BIT_STRING).ok_or("malformed subjectPublicKey")?;
    if !document.0.is_empty() {
        return Err("trailing data");
    }
    // The first byte is the number of unused bits.
    let bits = bits.get(1..).unwrap_or_default();
    match Reader(algorithm).value(OBJECT_IDENTIFIER) {
        Some(RSA) => rsa_public(bits).ok_or("invalid RSA public key"),
        Some(ECDSA) => Ok(Public::Ecdsa(Some(bits.to_vec()))),
        Some(ED25519) => Ok(Public::Ed25519(bits.to_vec())),
        _ => Ok(Public::Other),
    }
}

fn rsa_public(der: &[u8]) -> Option<Public> {
    let mut numbers = Reader(Reader(der).value(SEQUENCE)?);
    Some(Public::Rsa(numbers.value(INTEGER)?.to_vec(), numbers.value(INTEGER)?.to_vec()))
}

/// Returns the public part of a private key: of PKCS #1, PKCS #8 or SEC 1.
fn private(der: &[u8]) -> Option<Public> {
    let key = Reader(der).value(SEQUENCE)?;
    let mut fields = Reader(key);
    let version = fields.value(INTEGER)?;
    match fields.next()? {
        (INTEGER, modulus) => rsa_private(modulus, fields),
        (SEQUENCE, algorithm) => {
            let inner = fields.value(OCTET_STRING)?;
            match Reader(algorithm).value(OBJECT_IDENTIFIER)? {
                RSA => {
                    let mut numbers = Reader(Reader(inner).value(SEQUENCE)?);
                    numbers.value(INTEGER)?;
                    let modulus = numbers.value(INTEGER)?;
                    rsa_private(modulus, numbers)
                }
                ECDSA => ecdsa_private(inner),
                ED25519 => {
                    let pair = Ed25519KeyPair::from_seed_unchecked(Reader(inner).value(OCTET_STRING)?).ok()?;
                    Some(Public::Ed25519(pair.public_key().as_ref().to_vec()))
                }
                X25519 => Some(Public::Other),
                _ => None,
            }
        }
        (OCTET_STRING, _) if version == [1] => ecdsa_private(der),
        _ => None,
    }
}

/// Returns the public part of an RSA key, given its modulus and the numbers after it.
fn rsa_private(modulus: &[u8], mut rest: Reader<'_>) -> Option<Public> {
    let public = Public::Rsa(modulus.to_vec(), rest.value(INTEGER)?.to_vec());
    // The private exponent and the primes.
    for _ in 0..3 {
        rest.value(INTEGER)?;
    }
    Some(public)
}

fn ecdsa_private(der: &[u8]) -> Option<Public> {
    let mut fields = Reader(Reader(der).value(SEQUENCE)?);
    fields.value(INTEGER)?;
    fields.value(OCTET_STRING)?;
    let mut point = None;
    while !fields.0.is_empty() {
        if let (POINT, content) = fields.next()? {
            point = Some(Reader(content).value(BIT_STRING)?.get(1..)?.to_vec());
        }
    }
    Some(Public::Ecdsa(point))
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
/// The public key in a private one.
const POINT: u8 = 0xa1;
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const X25519: &[u8] = &[0x2b, 0x65, 0x6e];

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};

    use super::*;

    fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> (String, String) {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn why(certificate: &str, key: &str) -> Option<String> {
        problem(certificate.as_bytes(), key.as_bytes())
    }

    #[test]
    fn certificate_and_key_must_be_a_pair() {
        for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ED25519] {
            let (certificate, key) = pair(algorithm);
            assert_eq!(why(&certificate, &key), None);
            let (_, other) = pair(algorithm);
            assert_eq!(why(&certificate, &other).unwrap(), "tls: private key does not match public key");
        }
        let (certificate, _) = pair(&PKCS_ECDSA_P256_SHA256);
        let (_, key) = pair(&PKCS_ED25519);
        assert_eq!(why(&certificate, &key).unwrap(), "tls: private key type does not match public key type");
    }

    #[test]
    fn damaged_pairs_have_a_problem_or_none() {
        let (certificate, key) = pair(&PKCS_ED25519);
        let [certificate, key] = [certificate, key].map(|text| pem::blocks(text.as_bytes()).swap_remove(0).contents);
        for length in 0..certificate.len() {
            assert!(certified(&certificate[..length]).is_err(), "of {length} bytes");
        }
        for length in 0..key.len() {
            assert!(private(&key[..length]).is_none(), "of {length} bytes");
        }
        for at in 0..certificate.len() {
            let mut damaged = certificate.clone();
            damaged[at] ^= 0xff;
            let _ = certified(&damaged);
        }
    }

    #[test]
    fn switched_blocks_are_named() {
        let (certificate, key) = pair(&PKCS_ED25519);
        let switched = "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched";
        assert_eq!(why(&key, &certificate).unwrap(), switched);
        let found = "tls: found a certificate rather than a key in the PEM for the private key";
        assert_eq!(why(&certificate, &certificate).unwrap(), found);
        assert_eq!(why("", "").unwrap(), "tls: failed to find any PEM data in certificate input");
        assert_eq!(why(&certificate, "").unwrap(), "tls: failed to find any PEM data in key input");
        let both = format!("{key}{key}");
        assert!(why(&both, &key).unwrap().ends_with("of the following types: [PRIVATE KEY PRIVATE KEY]"));
    }
}

//! Signed tokens: JSON web tokens with ECDSA on the curve P-256, and the key that signs them.
//!
//! No other algorithm is accepted, so that a token cannot choose how it is verified.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
    },
};
use serde::Deserialize;
use serde_json::{Value, json};

/// A key that signs tokens and verifies them.
pub(crate) struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
}

/// The claims of a token.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) sub: String,
    pub(crate) jti: String,
    #[serde(deserialize_with = "audiences")]
    pub(crate) aud: Vec<String>,
    pub(crate) exp: Option<f64>,
    pub(crate) nbf: Option<f64>,
    pub(crate) iat: Option<f64>,
    #[serde(rename = "kubernetes.io")]
    pub(crate) kubernetes: Kubernetes,
}

/// The claims about the service account and the object that a token is bound to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Kubernetes {
    pub(crate) namespace: String,
    pub(crate) serviceaccount: Named,
    pub(crate) pod: Option<Named>,
    pub(crate) secret: Option<Named>,
    pub(crate) node: Option<Named>,
}

/// An object by name and UID.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) uid: String,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    /// Extensions that a verifier must know. None are known.
    #[serde(default)]
    crit: Option<Value>,
}

impl SigningKey {
    /// Generates a key, and returns it with its private form in PKCS #8.
    pub(crate) fn generate() -> Option<(Self, Vec<u8>)> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).ok()?;
        Some((Self::read(document.as_ref())?, document.as_ref().to_vec()))
    }

    /// Reads a key in PKCS #8.
    pub(crate) fn read(document: &[u8]) -> Option<Self> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, &SystemRandom::new()).ok()?;
        let public = [PUBLIC_KEY_INFO, pair.public_key().as_ref()].concat();
        let id = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, &public));
        Some(Self { pair, id })
    }

    /// Returns a token with claims.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": ALGORITHM, "kid": self.id}).to_string();
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).ok()?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Verifies the signature of a token. The error is the real server's message.
    pub(crate) fn verify(&self, token: &str) -> Result<Claims, &'static str> {
        let parts: Vec<&str> = token.split('.').collect();
        let [header, payload, signature] = parts.as_slice() else { return Err(BAD_SIGNATURE) };
        let decoded: Header = decode(header).ok_or(BAD_SIGNATURE)?;
        if !decoded.kid.is_empty() && decoded.kid != self.id {
            return Err("invalid signature, no keys found");
        }
        if decoded.alg != ALGORITHM || decoded.crit.is_some() {
            return Err(BAD_SIGNATURE);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| BAD_SIGNATURE)?;
        let signed = &token[..header.len() + 1 + payload.len()];
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        key.verify(signed.as_bytes(), &signature).map_err(|_| BAD_SIGNATURE)?;
        decode(payload).ok_or(BAD_SIGNATURE)
    }

    /// Returns the public key as a JSON web key.
    pub(crate) fn public(&self) -> Value {
        // A point is a byte for its form, and two coordinates.
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(COORDINATE);
        json!({"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": ALGORITHM,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)})
    }
}

/// Returns the issuer that a token claims, if it is in the form of a signed token. Nothing is verified.
pub(crate) fn claimed_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Issued {
        iss: String,
    }
    let mut parts = token.split('.');
    let (header, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let is_text = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_three = parts.next().is_none() && signature.bytes().all(is_text);
    let _: Header = decode(header)?;
    let issued: Issued = decode(payload)?;
    is_three.then_some(issued.iss)
}

fn decode<'de, T: Deserialize<'de>>(part: &str) -> Option<T> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    // Through a value, so that nothing borrows from the bytes.
    T::deserialize(serde_json::from_slice::<Value>(&bytes).ok()?).ok()
}

/// Reads one audience or a list.
fn audiences<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audiences {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Audiences::deserialize(deserializer)? {
        Audiences::One(audience) => vec![audience],
        Audiences::Several(audiences) => audiences,
    })
}

/// The only algorithm.
pub(crate) const ALGORITHM: &str = "ES256";
const BAD_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";
const COORDINATE: usize = 32;
/// The bytes before the point in the DER form of a public key on P-256.
const PUBLIC_KEY_INFO: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &Value) -> String {
        URL_SAFE_NO_PAD.encode(value.to_string())
    }

    #[test]
    fn signed_token_is_verified_by_its_key_only() {
        let (key, document) = SigningKey::generate().unwrap();
        let token = key.sign(&json!({"iss": "me", "sub": "a", "aud": "b", "exp": 1.5})).unwrap();
        let claims = key.verify(&token).unwrap();
        assert_eq!((claims.iss.as_str(), claims.aud.as_slice()), ("me", ["b".to_owned()].as_slice()));
        assert!(SigningKey::read(&document).unwrap().verify(&token).is_ok());
        let other = SigningKey::generate().unwrap().0;
        assert_eq!(other.verify(&token).unwrap_err(), "invalid signature, no keys found");
    }

    #[test]
    fn tampered_tokens_are_refused() {
        let (key, _) = SigningKey::generate().unwrap();
        let token = key.sign(&json!({"iss": "me", "sub": "a"})).unwrap();
        let (header, rest) = token.split_once('.').unwrap();
        let (payload, signature) = rest.split_once('.').unwrap();
        let other = encoded(&json!({"iss": "me", "sub": "b"}));
        let none = encoded(&json!({"alg": "none"}));
        let hs256 = encoded(&json!({"alg": "HS256"}));
        let extended = encoded(&json!({"alg": "ES256", "crit": ["exp"]}));
        for forged in [
            format!("{header}.{other}.{signature}"),
            format!("{none}.{payload}."),
            format!("{none}.{payload}.{signature}"),
            format!("{hs256}.{payload}.{signature}"),
            format!("{extended}.{payload}.{signature}"),
            format!("{header}.{payload}."),
            format!("{header}.{payload}"),
            format!("{token}.{signature}"),
            String::new(),
            "..".to_owned(),
        ] {
            assert!(key.verify(&forged).is_err(), "{forged}");
        }
        for at in 0..token.len() {
            let mut damaged = token.clone().into_bytes();
            damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
            assert!(key.verify(std::str::from_utf8(&damaged).unwrap()).is_err(), "byte {at}");
        }
    }
}

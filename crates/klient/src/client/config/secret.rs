//! Values that must not be printed by accident: tokens, passwords, keys.
//!
//! Neither type prints its value. Reading it requires an explicit call.

use std::fmt;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// A string that `Debug` does not show.
///
/// ```
/// use klient::client::config::Secret;
///
/// let token = Secret::new("s3cret");
/// assert_eq!(format!("{token:?}"), "[redacted]");
/// assert_eq!(token.expose(), "s3cret");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret {
    text: String,
}

impl Secret {
    /// Wraps a string.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Returns the string.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// Base64 data in a kubeconfig: a certificate or a key. `Debug` shows only its size.
///
/// The text is stored as read, so that invalid base64 in one entry does not make the rest of its file unusable.
///
/// ```
/// use klient::client::config::EmbeddedData;
///
/// let data = EmbeddedData::from_bytes(b"-----BEGIN CERTIFICATE-----");
/// assert_eq!(data.decode().as_deref(), Some(&b"-----BEGIN CERTIFICATE-----"[..]));
/// assert_eq!(EmbeddedData::from_base64("not base64").decode(), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddedData {
    base64: String,
}

impl EmbeddedData {
    /// Encodes bytes as base64.
    pub fn from_bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self { base64: BASE64.encode(bytes) }
    }

    /// Wraps base64 text without checking it.
    pub fn from_base64(text: impl Into<String>) -> Self {
        Self { base64: text.into() }
    }

    /// Returns the base64 text.
    pub fn as_base64(&self) -> &str {
        &self.base64
    }

    /// Returns the decoded bytes, or `None` if the text is not base64. Line breaks are ignored.
    pub fn decode(&self) -> Option<Vec<u8>> {
        decode_base64(&self.base64)
    }
}

impl fmt::Debug for EmbeddedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes of base64]", self.base64.len())
    }
}

/// Decodes base64 that may have line breaks.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    BASE64.decode(joined).ok()
}

/// Returns a URL without its user and password, for messages and `Debug`.
pub(crate) fn without_userinfo(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => format!("{scheme}{}[redacted]{}", if scheme.is_empty() { "" } else { "://" }, &rest[at..]),
        None => url.to_owned(),
    }
}

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_with_line_breaks_is_decoded() {
        assert_eq!(decode_base64("aGVs\nbG8=\r\n").as_deref(), Some(&b"hello"[..]));
        for text in ["aGVsbG8", "aGVsbG8==", "a b=", "*"] {
            assert_eq!(decode_base64(text), None, "{text:?}");
        }
    }

    #[test]
    fn url_is_shown_without_user_and_password() {
        for (url, shown) in [
            ("http://user:pass@proxy:3128/x", "http://[redacted]@proxy:3128/x"),
            ("socks5://user@[::1]:1080", "socks5://[redacted]@[::1]:1080"),
            ("user:pass@proxy", "[redacted]@proxy"),
            ("http://a:b@c@proxy", "http://[redacted]@proxy"),
            ("https://host:6443/a@b", "https://host:6443/a@b"),
            ("", ""),
        ] {
            assert_eq!(without_userinfo(url), shown);
        }
    }
}

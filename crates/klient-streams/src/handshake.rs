//! The values of a WebSocket handshake.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    digest::{SHA1_FOR_LEGACY_USE_ONLY, digest},
    rand::{SecureRandom as _, SystemRandom},
};

/// Returns a new value of the header `Sec-WebSocket-Key`.
///
/// # Errors
///
/// Returns an error if the system has no random numbers.
pub fn new_key() -> std::io::Result<String> {
    let mut nonce = [0; 16];
    SystemRandom::new().fill(&mut nonce).map_err(|_| std::io::Error::other("the system has no random numbers"))?;
    Ok(STANDARD.encode(nonce))
}

/// Returns the value of the header `Sec-WebSocket-Accept` for a key.
pub fn accept_value(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()))
}

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_value_is_that_of_the_standard() {
        assert_eq!(accept_value("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_ne!(new_key().unwrap(), new_key().unwrap());
        assert_eq!(new_key().unwrap().len(), 24);
    }
}

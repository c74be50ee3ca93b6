//! A first check of PEM text: whether it contains a complete block of the expected type.
//!
//! It is enough to name the field that is wrong. The TLS library checks the rest.

use crate::client::config::secret::decode_base64;

/// The expected type of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Certificate,
    PrivateKey,
}

/// Returns the reason why the text is invalid, if it is.
pub(crate) fn check(bytes: &[u8], expected: Expected) -> Result<(), &'static str> {
    let text = String::from_utf8_lossy(bytes);
    let mut blocks = blocks(&text).filter(|(label, _)| match expected {
        Expected::Certificate => matches!(*label, "CERTIFICATE" | "TRUSTED CERTIFICATE" | "X509 CERTIFICATE"),
        Expected::PrivateKey => label.ends_with("PRIVATE KEY"),
    });
    let Some((label, body)) = blocks.next() else {
        return Err(match expected {
            Expected::Certificate => "contains no PEM certificate",
            Expected::PrivateKey => "contains no PEM private key",
        });
    };
    if label.starts_with("ENCRYPTED") || body.contains("ENCRYPTED") {
        return Err("is encrypted with a password, which is not supported");
    }
    match decode_base64(&body.replace([' ', '\t'], "")) {
        Some(der) if !der.is_empty() => Ok(()),
        _ => Err("contains a PEM block that is not base64"),
    }
}

/// Iterates over the labels and bodies of the complete blocks.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("-----BEGIN ").skip(1).filter_map(|block| {
        let (label, rest) = block.split_once("-----")?;
        let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
        Some((label, body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_names_the_problem_of_a_block() {
        let certificate = "# mine\n-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN EC PRIVATE KEY-----\naGVsbG8=\n-----END EC PRIVATE KEY-----\n";
        for (text, expected, result) in [
            (certificate, Expected::Certificate, Ok(())),
            (key, Expected::PrivateKey, Ok(())),
            (certificate, Expected::PrivateKey, Err("contains no PEM private key")),
            (key, Expected::Certificate, Err("contains no PEM certificate")),
            ("", Expected::Certificate, Err("contains no PEM certificate")),
            ("-----BEGIN CERTIFICATE-----\naGVs", Expected::Certificate, Err("contains no PEM certificate")),
            (
                "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----",
                Expected::Certificate,
                Err("contains a PEM block that is not base64"),
            ),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\naGVsbG8=\n-----END ENCRYPTED PRIVATE KEY-----",
                Expected::PrivateKey,
                Err("is encrypted with a password, which is not supported"),
            ),
        ] {
            assert_eq!(check(text.as_bytes(), expected), result, "{text}");
        }
    }
}

//! The formats of texts and numbers in schemas of custom kinds. Other formats have no effect.

use serde_json::Value;

/// Returns the format of a schema, if it has an effect.
pub(super) fn supported(schema: &Value) -> Option<&str> {
    let format = schema["format"].as_str()?;
    let is_supported = match schema["type"].as_str() {
        None | Some("string") => TEXTS.contains(&format),
        Some("integer") => matches!(format, "int32" | "int64"),
        Some("number") => matches!(format, "float" | "double"),
        _ => false,
    };
    is_supported.then_some(format)
}

/// Returns whether a text has a format.
pub(super) fn fits(text: &str, format: &str) -> bool {
    match format {
        "date-time" | "datetime" => klient_core::parse_time(text).is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "byte" => base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).is_ok(),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        _ => true,
    }
}

/// Returns whether a text is a UUID of a version. Its dashes are optional.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let dashes = text.char_indices().filter(|(_, c)| *c == '-').map(|(at, _)| at);
    digits.len() == 32
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && dashes.enumerate().all(|(before, at)| [8, 12, 16, 20].contains(&(at - before)))
        && version.is_none_or(|version| digits.chars().nth(12) == Some(version))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The formats of texts. Those that `fits` does not know accept all texts here.
const TEXTS: [&str; 27] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "date-time",
    "k8s-short-name",
    "k8s-long-name",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_their_formats() {
        for (format, text, expected) in [
            ("uuid", "123E4567-e89b-12d3-a456-426614174000", true),
            ("uuid", "123e4567e89b12d3a456426614174000", true),
            ("uuid", "123e456-7e89b12d3a456426614174000", false),
            ("uuid4", "123e4567-e89b-12d3-a456-426614174000", false),
            ("cidr", "10.0.0.0/8", true),
            ("cidr", "10.0.0.0/33", false),
            ("mac", "00:00:5e:00:53:01", true),
            ("mac", "00:00:5e", false),
            ("date", "2024-02-30", false),
            ("date", "2024-02-29", true),
            ("hexcolor", "#fff", true),
            ("byte", "!", false),
            ("ipv4", "1.2.3", false),
        ] {
            assert_eq!(fits(text, format), expected, "{format} {text}");
        }
    }
}

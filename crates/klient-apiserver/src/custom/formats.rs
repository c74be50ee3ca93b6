//! The formats of texts and numbers in schemas of custom kinds. Other formats have no effect.

mod letters;
mod locations;
mod numbers;

use klient_core::{
    GoDuration,
    names::{is_label, is_subdomain},
};
use serde_json::Value;

/// Returns the format of a schema, if it has an effect.
pub(crate) fn supported(schema: &Value) -> Option<&str> {
    let format = schema["format"].as_str()?;
    let is_supported = match schema["type"].as_str() {
        None | Some("" | "string") => TEXTS.contains(&format.replace('-', "").as_str()),
        Some("integer") => matches!(format, "int32" | "int64"),
        Some("number") => matches!(format, "float" | "double"),
        _ => false,
    };
    is_supported.then_some(format)
}

/// Returns whether a text has a format.
pub(super) fn fits(text: &str, format: &str) -> bool {
    match format.replace('-', "").as_str() {
        "datetime" => is_time(text),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "byte" => is_base64(text),
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "uri" => locations::is_uri(text),
        "email" => locations::is_email(text),
        "hostname" => locations::is_hostname(text),
        "ipv4" => text.contains('.') && locations::address(text).is_some(),
        "ipv6" => text.contains(':') && locations::address(text).is_some(),
        "cidr" => locations::is_cidr(text),
        "mac" => locations::is_mac(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && is_hex(digits)
        }
        "rgbcolor" => is_color(text),
        "isbn" => numbers::is_isbn10(text) || numbers::is_isbn13(text),
        "isbn10" => numbers::is_isbn10(text),
        "isbn13" => numbers::is_isbn13(text),
        "creditcard" => numbers::is_card(text),
        "ssn" => numbers::is_social_security(text),
        "k8sshortname" => text.len() <= 63 && is_label(text),
        "k8slongname" => text.len() <= 253 && is_subdomain(text),
        _ => true,
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// Returns whether a text is a date with a time and a zone. Any character may begin the fraction of a second.
fn is_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    let mut fields = clock.split(':');
    let mut is_below =
        |limit: &str| fields.next().is_some_and(|field| field.len() == 2 && is_digits(field) && field <= limit);
    let is_clock = is_below("23") && is_below("59") && is_below("59");
    let zone = rest.strip_suffix('z').or_else(|| {
        let (before, zone) = rest.split_at_checked(rest.len().checked_sub(6)?)?;
        let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
        (hours.len() == 2 && is_digits(hours) && is_digits(minutes)).then_some(before)
    });
    let is_fraction = |text: &str| {
        let mut characters = text.chars();
        characters.next().is_none() || is_digits(characters.as_str())
    };
    is_date(date) && is_clock && zone.is_some_and(is_fraction)
}

/// Returns whether a text is a duration in Go's notation, or contains a number with a unit of time.
fn is_duration(text: &str) -> bool {
    if text.parse::<GoDuration>().is_ok() {
        return true;
    }
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let unit = after.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let length = unit.find(|c: char| !c.is_ascii_alphabetic() && c != '\u{b5}').unwrap_or(unit.len());
        let (unit, next) = unit.split_at(length);
        rest = if unit.is_empty() { after } else { next };
        if unit.is_empty() {
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.to_ascii_lowercase();
        let has_word = |(short, word): &(&[&str], &str)| short.contains(&unit.as_str()) || unit.starts_with(word);
        found |= UNITS.iter().any(has_word);
    }
    found
}

/// The units of durations: their abbreviations, and the word that longer forms begin with.
const UNITS: [(&[&str], &str); 8] = [
    (&["ns"], "nano"),
    (&["us", "\u{b5}s"], "micro"),
    (&["ms"], "milli"),
    (&["s"], "sec"),
    (&["m"], "min"),
    (&["h", "hr"], "hour"),
    (&["d"], "day"),
    (&["w", "wk"], "week"),
];

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty() && text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

/// Returns whether a text is a UUID of a version. Its dashes are optional.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let dashes = text.char_indices().filter(|(_, c)| *c == '-').map(|(at, _)| at);
    let digit = |at: usize| digits.as_bytes().get(at).map(|byte| char::from(byte.to_ascii_lowercase()));
    let is_variant = || version == Some('3') || matches!(digit(16), Some('8' | '9' | 'a' | 'b'));
    digits.len() == 32
        && is_hex(&digits)
        && dashes.enumerate().all(|(before, at)| [8, 12, 16, 20].contains(&(at - before)))
        && version.is_none_or(|version| digit(12) == Some(version) && is_variant())
}

/// Returns whether a text is a color such as `rgb(0, 128, 255)`.
fn is_color(text: &str) -> bool {
    let Some(parts) = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')')) else { return false };
    let is_part = |part: &str| {
        let part = part.trim_matches([' ', '\t', '\n', '\r', '\u{c}']);
        is_digits(part) && (part == "0" || !part.starts_with('0')) && part.parse::<u8>().is_ok()
    };
    parts.split(',').count() == 3 && parts.split(',').all(is_part)
}

/// The formats of texts, without dashes.
const TEXTS: [&str; 26] = [
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
    "k8sshortname",
    "k8slongname",
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
            ("duration", "1.99999999999999999999s", true),
            ("duration", "1.5\u{3bc}s", true),
            ("duration", "1 \u{b5}s", true),
            ("duration", "1 \u{3bc}s", false),
            ("duration", "1 DAY, 2 Hours", true),
            ("duration", "1 \u{212a}", false),
            ("duration", "99999999999999999999 s", false),
        ] {
            assert_eq!(fits(text, format), expected, "{format} {text}");
        }
    }
}

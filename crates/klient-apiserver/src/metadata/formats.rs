//! Formats of names and other texts, with the real server's messages.
//!
//! Each function returns the problems of a text. A valid text costs no allocation.

use klient_core::names::{MAX_SUBDOMAIN, longer_than};
pub(crate) use klient_core::names::{
    Problems, is_label, is_subdomain, label_problems, label_value_problems, letter_label_problems, masked_prefix,
    qualified_name_problems, subdomain_problems,
};

/// Returns the problems of a DNS subdomain whose labels may have underscores.
pub(crate) fn underscored_subdomain_problems(text: &str) -> Problems {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let is_inner = |byte: &u8| is_edge(byte) || matches!(byte, b'-' | b'_');
        label.iter().all(is_inner) && label.first().is_some_and(is_edge) && label.last().is_some_and(is_edge)
    };
    let mut problems = longer_than(text, MAX_SUBDOMAIN);
    if !text.split('.').all(is_label) {
        problems.push(UNDERSCORED_SUBDOMAIN.to_owned());
    }
    problems
}

/// Returns the problems of a DNS subdomain that begins with a wildcard.
pub(crate) fn wildcard_problems(text: &str) -> Problems {
    let mut problems = longer_than(text, MAX_SUBDOMAIN);
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        problems.push(WILDCARD.to_owned());
    }
    problems
}

/// Returns the problems of a segment of a path.
pub(crate) fn segment_problems(text: &str) -> Problems {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"].iter().filter(|part| text.contains(**part)).map(|part| format!("may not contain '{part}'")).collect()
}

/// Returns the problems of the name of a port.
pub(crate) fn port_name_problems(text: &str) -> Problems {
    let mut problems = longer_than(text, MAX_PORT_NAME);
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || !text.bytes().all(is_known) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// Returns the problem of the name of an environment variable.
pub(crate) fn variable_problems(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.is_empty() {
        problems.push("environment variable name must be non-empty".to_owned());
    }
    if text.contains('=') || !text.chars().all(|c| (' '..='~').contains(&c)) {
        problems.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    problems
}

/// Returns the problems of a key of a config map or secret.
pub(crate) fn key_problems(text: &str) -> Problems {
    let mut problems = longer_than(text, MAX_SUBDOMAIN);
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_known) {
        problems.push(KEY.to_owned());
    }
    match text {
        "." | ".." => problems.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// Returns the problem of the name of an HTTP header.
pub(crate) fn header_problems(text: &str) -> Problems {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    vec![HEADER.to_owned()]
}

/// Returns the problem of a percentage.
pub(crate) fn percent_problems(text: &str) -> Problems {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if text.strip_suffix('%').is_some_and(is_number) { Vec::new() } else { vec![PERCENT.to_owned()] }
}

/// Returns the problem of a number outside of a range.
pub(crate) fn range_problems(number: i64, least: i64, most: i64) -> Problems {
    if (least..=most).contains(&number) {
        return Vec::new();
    }
    vec![format!("must be between {least} and {most}, inclusive")]
}

const MAX_PORT_NAME: usize = 15;
const UNDERSCORED_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

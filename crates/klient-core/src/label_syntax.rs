//! The syntax of label keys and label values.
//!
//! A key is `name` or `prefix/name`, where the prefix is a DNS subdomain. Annotation keys follow the same rule.
//! In client-go: `IsQualifiedName` and `IsValidLabelValue` of `k8s.io/apimachinery/pkg/util/validation`.

use std::fmt;

/// Checks the syntax of a label key.
///
/// ```
/// use klient_core::validate_label_key;
///
/// assert_eq!(validate_label_key("app.kubernetes.io/name"), Ok(()));
/// let error = validate_label_key("app/").unwrap_err();
/// assert_eq!(error.to_string(), "label key \"app/\" at byte 4: expected a name");
/// ```
///
/// # Errors
///
/// Returns an error if the key is not a qualified name.
#[doc(alias = "IsQualifiedName")]
#[doc(alias = "IsLabelKey")]
pub fn validate_label_key(key: &str) -> Result<(), LabelSyntaxError> {
    check_key(key).map_err(|(at, why)| LabelSyntaxError { what: "key", text: key.to_owned(), at, why })
}

/// Checks the syntax of a label value.
///
/// # Errors
///
/// Returns an error if the value is longer than 63 bytes or contains characters other than letters, digits, `-`, `_`
/// and `.`.
#[doc(alias = "IsValidLabelValue")]
pub fn validate_label_value(value: &str) -> Result<(), LabelSyntaxError> {
    check_value(value).map_err(|(at, why)| LabelSyntaxError { what: "value", text: value.to_owned(), at, why })
}

/// Returns the position and the reason if a key is invalid.
pub(crate) fn check_key(key: &str) -> Result<(), Fault> {
    let Some((prefix, name)) = key.split_once('/') else { return check_name(key) };
    check_subdomain(prefix)?;
    let name_at = prefix.len() + 1;
    if let Some(slash) = name.find('/') {
        return Err((name_at + slash, "expected at most one `/`"));
    }
    check_name(name).map_err(|(at, why)| (name_at + at, why))
}

/// Returns the position and the reason if a value is invalid.
pub(crate) fn check_value(value: &str) -> Result<(), Fault> {
    if value.is_empty() { Ok(()) } else { check_name(value) }
}

fn check_name(name: &str) -> Result<(), Fault> {
    if name.is_empty() {
        return Err((0, "expected a name"));
    }
    if name.len() > MAX_NAME {
        return Err((MAX_NAME, "longer than 63 bytes"));
    }
    if let Some(at) = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Err((at, "expected a letter, a digit, `-`, `_` or `.`"));
    }
    check_ends(name, "must start and end with a letter or digit")
}

fn check_subdomain(prefix: &str) -> Result<(), Fault> {
    if prefix.len() > MAX_PREFIX {
        return Err((MAX_PREFIX, "prefix is longer than 253 bytes"));
    }
    let mut at = 0;
    for label in prefix.split('.') {
        if label.is_empty() {
            return Err((at, "expected a part of a DNS name"));
        }
        if let Some(bad) = label.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')) {
            return Err((at + bad, "expected a lower-case letter, a digit, `-` or `.` in the prefix"));
        }
        check_ends(label, "each part of the prefix must start and end with a letter or digit")
            .map_err(|(bad, why)| (at + bad, why))?;
        at += label.len() + 1;
    }
    Ok(())
}

fn check_ends(text: &str, why: &'static str) -> Result<(), Fault> {
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err((0, why));
    }
    if !text.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err((text.len() - 1, why));
    }
    Ok(())
}

/// An error of checking a label key or value, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSyntaxError {
    what: &'static str,
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for LabelSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "label {} {:?} at byte {}: {}", self.what, self.text, self.at, self.why)
    }
}

impl std::error::Error for LabelSyntaxError {}

/// Byte offset and reason.
type Fault = (usize, &'static str);

const MAX_NAME: usize = 63;
const MAX_PREFIX: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names_are_valid_keys() {
        for key in
            ["a", "A_b-c.d", "1", "example.com/MyName", "a-b.c/x", &format!("{}/x", "a".repeat(253)), &"x".repeat(63)]
        {
            assert_eq!(validate_label_key(key), Ok(()));
        }
        for value in ["", "a", "MyValue", "my_value", "12345", &"x".repeat(63)] {
            assert_eq!(validate_label_value(value), Ok(()));
        }
    }

    #[test]
    fn key_error_has_position_and_reason() {
        for (key, at, why) in [
            ("", 0, "expected a name"),
            ("a/", 2, "expected a name"),
            ("/a", 0, "expected a part of a DNS name"),
            ("a/b/c", 3, "expected at most one `/`"),
            ("a..b/c", 2, "expected a part of a DNS name"),
            ("a.-b/c", 2, "each part of the prefix must start and end with a letter or digit"),
            ("a.B/c", 2, "expected a lower-case letter, a digit, `-` or `.` in the prefix"),
            ("-a", 0, "must start and end with a letter or digit"),
            ("x/a.", 3, "must start and end with a letter or digit"),
            ("aé", 1, "expected a letter, a digit, `-`, `_` or `.`"),
            ("a\n", 1, "expected a letter, a digit, `-`, `_` or `.`"),
            (&"x".repeat(64), 63, "longer than 63 bytes"),
            (&format!("{}/x", "a".repeat(254)), 253, "prefix is longer than 253 bytes"),
        ] {
            let error = validate_label_key(key).unwrap_err();
            assert_eq!((error.at, error.why), (at, why), "{key}");
        }
    }

    #[test]
    fn invalid_values_are_rejected() {
        for value in ["a b", "/", "-", "a_", &"x".repeat(64)] {
            assert!(validate_label_value(value).is_err(), "{value}");
        }
    }
}

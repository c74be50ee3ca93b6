//! Formats of the names of objects and labels, with the real server's messages.
//!
//! Each function returns the problems of a text. A valid text costs no allocation.

/// The reasons why a text is invalid.
pub type Problems = Vec<String>;

/// Returns the problems of a DNS label, such as the name of a container.
#[must_use]
pub fn label_problems(text: &str) -> Problems {
    let mut problems = longer_than(text, MAX_LABEL);
    if !is_label(text) {
        problems.push(if is_subdomain(text) { "must not contain dots" } else { LABEL }.to_owned());
    }
    problems
}

/// Returns the problems of a DNS label that begins with a letter, such as the plural of a custom kind.
#[must_use]
pub fn letter_label_problems(text: &str) -> Problems {
    let mut problems = longer_than(text, MAX_LABEL);
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        problems.push(LETTER_LABEL.to_owned());
    }
    problems
}

/// Returns the problems of a DNS subdomain, such as the name of most objects.
#[must_use]
pub fn subdomain_problems(text: &str) -> Problems {
    let mut problems = longer_than(text, MAX_SUBDOMAIN);
    if !is_subdomain(text) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

/// Returns the problems of a qualified name: a name with an optional domain, as labels, annotations and finalizers have.
#[must_use]
pub fn qualified_name_problems(text: &str) -> Problems {
    let mut problems = Vec::new();
    let (prefix, name) = match text.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {NAME_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            if prefix.len() > MAX_SUBDOMAIN {
                problems.push(format!("prefix part must be no more than {MAX_SUBDOMAIN} bytes"));
            }
            if !is_subdomain(prefix) {
                problems.push(format!("prefix part {SUBDOMAIN}"));
            }
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL {
        problems.push(format!("name part must be no more than {MAX_LABEL} bytes"));
    }
    if !is_name_part(name) {
        problems.push(format!("name part {NAME_PART}"));
    }
    problems
}

/// Returns the problems of the value of a label.
#[must_use]
pub fn label_value_problems(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > MAX_LABEL {
        problems.push(format!("must be no more than {MAX_LABEL} bytes"));
    }
    if !text.is_empty() && !is_name_part(text) {
        problems.push(LABEL_VALUE.to_owned());
    }
    problems
}

/// Returns a prefix of generated names in the form in which it is validated.
#[must_use]
pub fn masked_prefix(prefix: &str) -> String {
    match prefix.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        // The last two characters are replaced by one.
        Some(rest) => rest.chars().take(rest.chars().count() - 1).chain(['a']).collect(),
        None => prefix.to_owned(),
    }
}

/// Returns the problem of a text that has too many bytes.
#[must_use]
pub fn longer_than(text: &str, most: usize) -> Problems {
    if text.len() > most { vec![format!("must be no more than {most} characters")] } else { Vec::new() }
}

/// Returns whether a text is a DNS label.
#[must_use]
pub fn is_label(text: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
        && bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
}

/// Returns whether a text is a DNS subdomain.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

const MAX_LABEL: usize = 63;
/// The number of bytes of a DNS subdomain.
pub const MAX_SUBDOMAIN: usize = 253;
const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LETTER_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

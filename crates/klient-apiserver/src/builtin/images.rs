//! References to container images, as far as defaults depend on them.

/// Returns the default pull policy of an image: new images of the tag `latest` are always pulled.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

/// Returns the tag of a valid reference. A reference without tag and digest has the tag `latest`.
fn tag(image: &str) -> Option<&str> {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    let (domain, path) = match name.split_once('/') {
        Some((first, path)) if first.contains(['.', ':']) || first == "localhost" || has_upper_case(first) => {
            (Some(first), path)
        }
        _ => (None, name),
    };
    let is_valid = domain.is_none_or(is_domain)
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
        && full_length(domain, path) <= MAX_NAME
        && !(domain.is_none() && path.len() == 64 && path.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match (tag, digest) {
        _ if !is_valid => None,
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

/// Returns the length of a name with the registry that is meant if it has none.
fn full_length(domain: Option<&str>, path: &str) -> usize {
    match domain {
        Some(domain) => domain.len() + 1 + path.len(),
        None if path.contains('/') => "docker.io/".len() + path.len(),
        None => "docker.io/library/".len() + path.len(),
    }
}

fn has_upper_case(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = domain.split_once(':').map_or((domain, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| {
        label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && label.starts_with(|c: char| c.is_ascii_alphanumeric())
            && label.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    host.split('.').all(is_label)
        && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether a text is lower case letters and digits with separators between them.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_separator = |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    text.starts_with(|c: char| c.is_ascii() && is_word(c as u8))
        && text.ends_with(|c: char| c.is_ascii() && is_word(c as u8))
        && text.split(|c: char| c.is_ascii() && is_word(c as u8)).all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&tag.len())
        && tag.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
        && tag.bytes().next().is_some_and(is_word)
}

fn is_digest(digest: &str) -> bool {
    let is_hex = |hex: &str| hex.len() >= 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    digest.split_once(':').is_some_and(|(algorithm, hex)| !algorithm.is_empty() && is_hex(hex))
}

const MAX_NAME: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_depends_on_tag_of_valid_reference() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("example.com:5000/a/nginx", "Always"),
            ("Example.com/a__b/c--d", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("example.com:5000/a/nginx:1", "IfNotPresent"),
            ("nginx@sha256:0123456789abcdef0123456789abcdef", "IfNotPresent"),
            ("Nginx", "IfNotPresent"),
            ("with space", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}

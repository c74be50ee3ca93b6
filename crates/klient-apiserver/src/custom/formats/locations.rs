//! Formats of names and addresses of hosts, and of what is found there. They accept what Go's parsers accept.

use std::net::{IpAddr, Ipv4Addr};

use super::{
    is_digits, is_hex,
    letters::{is_letter, is_letter_or_symbol},
};

/// Returns an address. Numbers of the fourth version may begin with zeros.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok();
    }
    let mut numbers = text.split('.').map(|part| part.parse::<u8>().ok().filter(|_| is_digits(part)));
    let mut next = || numbers.next().flatten();
    let address = Ipv4Addr::new(next()?, next()?, next()?, next()?);
    numbers.next().is_none().then_some(IpAddr::V4(address))
}

/// Returns whether a text is an address with the length of its prefix.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((prefix, bits)) = text.split_once('/') else { return false };
    let most = match address(prefix) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    is_digits(bits) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// Returns whether a text is a hardware address of 6, 8 or 20 bytes. Their separators are optional.
pub(super) fn is_mac(text: &str) -> bool {
    if is_hex(text) {
        return matches!(text.len(), 12 | 16 | 40);
    }
    let (separator, digits) = match text.as_bytes().get(2) {
        Some(b':') => (':', 2),
        Some(b'-') => ('-', 2),
        _ => ('.', 4),
    };
    let is_group = |group: &str| group.len() == digits && is_hex(group);
    matches!(text.split(separator).count() * digits, 12 | 16 | 40) && text.split(separator).all(is_group)
}

/// Returns whether a text is a host name. A single label can have one dash only, after its first character.
pub(super) fn is_hostname(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || is_letter_or_symbol(c);
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    let Some((labels, last)) = text.rsplit_once('.') else {
        let mut characters = text.chars();
        let is_begun = characters.next().is_some_and(is_part);
        let rest = characters.as_str();
        return is_begun && rest.strip_prefix('-').unwrap_or(rest).chars().all(is_part);
    };
    let is_label = |label: &str| {
        let is_inner = |c: char| is_part(c) || c == '-';
        label.starts_with(is_part) && label.ends_with(is_part) && label.chars().all(is_inner)
    };
    labels.split('.').all(is_label) && last.chars().count() >= 2 && last.chars().all(is_letter)
}

/// Returns whether a text is a URI with a scheme, or an absolute path.
pub(super) fn is_uri(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    if text.is_empty() || text.bytes().any(|byte| byte.is_ascii_control()) || text.starts_with(':') {
        return false;
    }
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", text),
    };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let Some(after) = rest.strip_prefix("//").filter(|_| !scheme.is_empty()) else { return is_escaped(rest) };
    let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
    is_authority(authority) && is_escaped(path)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Returns whether each percent sign begins an escaped byte.
fn is_escaped(text: &str) -> bool {
    text.split('%').skip(1).all(|part| part.get(..2).is_some_and(is_hex))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let is_of_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(is_of_user) || !is_escaped(user) {
        return false;
    }
    if let Some(rest) = host.strip_prefix('[') {
        let Some((inside, port)) = rest.rsplit_once(']') else { return false };
        let (address, zone) = inside.split_once("%25").unwrap_or((inside, "z"));
        return !zone.is_empty() && address.contains(':') && address.parse::<IpAddr>().is_ok() && is_port(port);
    }
    let (name, port) = host.split_at(host.rfind(':').unwrap_or(host.len()));
    let is_of_name = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=[]<>\"".contains(c);
    // Bytes of other alphabets can be escaped.
    let is_other = |part: &str| part.starts_with(|c: char| "89abcdefABCDEF".contains(c));
    name.chars().all(|c| is_of_name(c) || c == '%')
        && is_escaped(name)
        && name.split('%').skip(1).all(is_other)
        && is_port(port)
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.is_empty() || is_digits(port))
}

/// Returns whether a text is an address of electronic mail, which may have a name before it.
pub(super) fn is_email(text: &str) -> bool {
    // A comment may follow.
    let text = text.strip_suffix(')').and_then(|text| text.rsplit_once('(')).map_or(text, |(text, _)| text);
    let text = text.trim_matches([' ', '\t']);
    let Some((name, address)) = text.strip_suffix('>').and_then(|text| text.split_once('<')) else {
        return is_mailbox(text);
    };
    let name = name.trim_matches([' ', '\t']);
    let is_quoted = name.len() >= 2 && name.starts_with('"') && name.ends_with('"');
    let is_word = |word: &str| word.chars().all(|c| is_atom(c) || c == '.');
    (name.is_empty() || is_quoted || name.split([' ', '\t']).all(is_word)) && is_mailbox(address)
}

fn is_mailbox(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_dotted = |text: &str| text.split('.').all(|part| !part.is_empty() && part.chars().all(is_atom));
    let quoted = local.strip_prefix('"').and_then(|local| local.strip_suffix('"'));
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    let is_local = match quoted {
        Some(inside) => !inside.contains('"') && !inside.contains(char::is_control),
        None => is_dotted(local),
    };
    is_local && literal.map_or_else(|| is_dotted(domain), |literal| address(literal).is_some())
}

fn is_atom(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_have_letters_and_symbols_of_all_alphabets() {
        for text in ["caf\u{e9}", "a\u{2192}b.\u{43c}\u{438}\u{440}", "\u{1f600}", "a-", "a$.bc"] {
            assert!(is_hostname(text), "{text}");
        }
        // A dash of another alphabet, a combining mark, a digit, and a symbol at the top.
        for text in ["a\u{2014}b", "cafe\u{301}", "a\u{663}", "a.b\u{2192}", "a.b\u{24b6}", "a.b", "a_b"] {
            assert!(!is_hostname(text), "{text}");
        }
    }

    #[test]
    fn uris_are_those_of_requests() {
        for text in
            ["http://a/b?c=d", "/path with space", "mailto:a@b", "http://[::1]:80/", "https://u:p@h:/", "http://a%80/"]
        {
            assert!(is_uri(text), "{text}");
        }
        for text in ["", "a/b", ":x", "http://a b/", "http://a:x/", "/%zz", "http://[::1/", "/a\u{7f}", "http://a%20/"]
        {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn hostnames_are_single_labels_or_domains() {
        for text in ["localhost", "a-b", "a.b.example", "1.example.com", "m\u{fc}nchen.de"] {
            assert!(is_hostname(text), "{text}");
        }
        for text in ["", "my-host", "a.b.c", "-a.com", "a-.com", "a_b.com", "a..com", "example.c0m"] {
            assert!(!is_hostname(text), "{text}");
        }
    }

    #[test]
    fn mail_addresses_may_have_names() {
        for text in ["a@b", "Ann Smith <a.s@b.example>", "\"a b\"@c", "a@[127.0.0.1]", "<a@b>"] {
            assert!(is_email(text), "{text}");
        }
        for text in ["", "a", "@b", "a@", "a..b@c", "a b@c", "a@b@c d"] {
            assert!(!is_email(text), "{text}");
        }
    }
}

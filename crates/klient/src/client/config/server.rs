//! Addresses: of servers, and of proxies on the way to them.
//!
//! The rules are client-go's, with one more: an address of a server must not carry credentials.

use http::{Uri, uri};

/// The base of all requests, from a URL or a host with or without a port; says why if it is neither.
pub(super) fn parse_server(text: &str, tls_by_default: bool) -> Result<Uri, String> {
    let text = if text.is_empty() { "localhost" } else { text };
    let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme));
    let with_scheme = match (has_scheme, tls_by_default) {
        (true, _) => text.to_owned(),
        (false, true) => format!("https://{text}"),
        (false, false) => format!("http://{text}"),
    };
    // Before parsing, since the parser takes none.
    let bare = with_scheme.split(['?', '#']).next().unwrap_or_default();
    let uri: Uri = bare.parse().map_err(|_| "is neither a URL nor a host with or without a port".to_owned())?;
    check_host(&uri)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("must begin with http or https".to_owned());
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("must not contain a user or a password".to_owned());
    }
    let path = uri.path().trim_end_matches('/').to_owned();
    if !has_scheme && !path.is_empty() {
        return Err("has a path, and so must begin with http:// or https://".to_owned());
    }
    let mut parts = uri.into_parts();
    parts.path_and_query = uri::PathAndQuery::try_from(if path.is_empty() { "/".to_owned() } else { path }).ok();
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

/// A proxy's address; says why if it is none.
pub(super) fn parse_proxy(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|_| "is not a URL".to_owned())?;
    match uri.scheme_str() {
        Some("http" | "https" | "socks5" | "socks5h") => check_host(&uri).map(|()| uri),
        _ => Err("must begin with http, https, socks5 or socks5h".to_owned()),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn check_host(uri: &Uri) -> Result<(), String> {
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return Err("names no host".to_owned());
    };
    let (_, host_and_port) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
    let port = host_and_port.strip_prefix(authority.host()).unwrap_or_default();
    match port.strip_prefix(':') {
        None | Some("") => Ok(()),
        Some(port) if port.parse::<u16>().is_ok() => Ok(()),
        Some(_) => Err("has a port that is not a number up to 65535".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completes_addresses_as_client_go_does() {
        for (text, tls, server) in [
            ("", false, "http://localhost/"),
            ("localhost", false, "http://localhost/"),
            ("localhost:8080", false, "http://localhost:8080/"),
            ("127.0.0.1:8080", false, "http://127.0.0.1:8080/"),
            ("127.0.0.1:6443", true, "https://127.0.0.1:6443/"),
            ("[::1]:6443", true, "https://[::1]:6443/"),
            ("host/", false, "http://host/"),
            ("http://host", true, "http://host/"),
            ("https://host:6443", false, "https://host:6443/"),
            ("HTTPS://host", false, "https://host/"),
            ("https://host/a/b/", false, "https://host/a/b"),
            ("https://host/a?x=y#z", false, "https://host/a"),
            ("https://host?x=y", false, "https://host/"),
        ] {
            assert_eq!(parse_server(text, tls).unwrap().to_string(), server, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_address_of_a_server() {
        for (text, why) in [
            ("host/path", "has a path"),
            ("ftp://host", "http or https"),
            ("https://", "neither a URL"),
            ("https:///path", "neither a URL"),
            ("https://user:pass@host", "a user or a password"),
            ("https://host:99999", "port"),
            ("https://host:port", "port"),
            ("::1", "port"),
            ("a b", "neither a URL"),
        ] {
            let error = parse_server(text, false).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn takes_four_schemes_for_proxies() {
        for text in ["http://proxy:3128", "https://proxy", "socks5://user:pass@[::1]:1080", "socks5h://proxy"] {
            assert!(parse_proxy(text).is_ok(), "{text}");
        }
        for text in ["proxy:3128", "ftp://proxy", "socks4://proxy", "/proxy", "", "http://", "http://host:x"] {
            assert!(parse_proxy(text).is_err(), "{text}");
        }
    }
}

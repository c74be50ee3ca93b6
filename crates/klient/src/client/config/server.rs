//! Addresses of servers and proxies.
//!
//! The rules are client-go's, with one addition: a server's address must not contain credentials.

use http::{Uri, uri};

/// Returns the base URL of all requests, from a URL or a host with an optional port, or the reason why it is invalid.
pub(super) fn parse_server(text: &str, tls_by_default: bool) -> Result<Uri, String> {
    let text = if text.is_empty() { "localhost" } else { text };
    let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme));
    let with_scheme = match (has_scheme, tls_by_default) {
        (true, _) => text.to_owned(),
        (false, true) => format!("https://{text}"),
        (false, false) => format!("http://{text}"),
    };
    // Removed before parsing, because the parser does not accept a fragment.
    let bare = with_scheme.split(['?', '#']).next().unwrap_or_default();
    let uri: Uri = bare.parse().map_err(|_| "is neither a URL nor a host with an optional port".to_owned())?;
    check_host(&uri)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("must begin with http or https".to_owned());
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("must not contain a user or a password".to_owned());
    }
    let path = uri.path().trim_end_matches('/').to_owned();
    if !has_scheme && !path.is_empty() {
        return Err("has a path, so it must begin with http:// or https://".to_owned());
    }
    let mut parts = uri.into_parts();
    parts.path_and_query = uri::PathAndQuery::try_from(if path.is_empty() { "/".to_owned() } else { path }).ok();
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

/// Returns a proxy's address, or the reason why it is invalid.
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
        return Err("has no host".to_owned());
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
    fn server_address_is_completed_as_in_client_go() {
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
    fn invalid_server_address_is_rejected() {
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
    fn proxy_address_accepts_four_schemes() {
        for text in ["http://proxy:3128", "https://proxy", "socks5://user:pass@[::1]:1080", "socks5h://proxy"] {
            assert!(parse_proxy(text).is_ok(), "{text}");
        }
        for text in ["proxy:3128", "ftp://proxy", "socks4://proxy", "/proxy", "", "http://", "http://host:x"] {
            assert!(parse_proxy(text).is_err(), "{text}");
        }
    }
}

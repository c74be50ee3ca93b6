//! The selection of a proxy for a server.
//!
//! A kubeconfig's `proxy-url` takes precedence over the environment, whose rules are those of Go programs:
//! `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in upper or lower case, and never for this machine itself.

mod no_proxy;

use std::fmt;

use http::Uri;

use self::no_proxy::NoProxy;
use super::server::parse_proxy;
use crate::{
    Error, ErrorKind,
    client::config::{environment::Environment, secret::without_userinfo},
};

/// The proxy between the client and the server. `Debug` does not show the user and the password of a proxy.
///
/// ```
/// use klient::client::config::{Config, Proxy};
///
/// let config = Config::new("https://10.0.0.1:6443")?;
/// assert_eq!(config.proxy, Proxy::FromEnvironment);
/// let config = config.proxy("socks5://user:pass@localhost:1080".parse().unwrap());
/// assert_eq!(format!("{:?}", config.proxy), "Via(socks5://[redacted]@localhost:1080/)");
/// # Ok::<(), klient::Error>(())
/// ```
#[doc(alias = "ProxyURL")]
#[doc(alias = "proxy_url")]
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum Proxy {
    /// The proxy that `HTTPS_PROXY` (for `https` servers), `HTTP_PROXY` (for `http` servers) and `NO_PROXY` select when
    /// the client is created.
    ///
    /// `NO_PROXY` is a list of host names (which match their subdomains, too), names with a leading dot (which match
    /// only subdomains), addresses, and address ranges such as `10.0.0.0/8`. Names and addresses may have a port. `*`
    /// matches everything. `localhost` and the loopback addresses are always reached directly. `HTTP_PROXY` is ignored
    /// in a CGI program (where `REQUEST_METHOD` is set), because a request could set it there.
    #[default]
    FromEnvironment,
    /// No proxy, whatever the environment says.
    Direct,
    /// This proxy: an `http`, `https`, `socks5` or `socks5h` URL, with an optional user and password. The proxy
    /// resolves the server's name with each of these schemes.
    Via(Uri),
}

impl Proxy {
    /// Returns the proxy for that server, if any.
    pub(crate) fn for_server(&self, server: &Uri, environment: &Environment) -> Result<Option<Uri>, Error> {
        match self {
            Self::Direct => Ok(None),
            Self::Via(proxy) => Ok(Some(proxy.clone())),
            Self::FromEnvironment => from_environment(server, environment),
        }
    }
}

fn from_environment(server: &Uri, environment: &Environment) -> Result<Option<Uri>, Error> {
    let secure = server.scheme_str() == Some("https");
    let names = if secure { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    if !secure && environment.variable("REQUEST_METHOD").is_some() {
        return Ok(None);
    }
    let first = |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, environment.text(name)?)));
    let Some((name, value)) = first(names) else { return Ok(None) };
    let no_proxy = first(["NO_PROXY", "no_proxy"]).map(|(_, list)| NoProxy::parse(&list)).unwrap_or_default();
    let host = server.host().unwrap_or_default();
    let port = server.port_u16().unwrap_or(if secure { 443 } else { 80 });
    if no_proxy.covers(host, port) {
        return Ok(None);
    }
    let with_scheme = if value.contains("://") { value } else { format!("http://{value}") };
    // Bypassing an intended proxy would be worse than failing.
    parse_proxy(&with_scheme).map(Some).map_err(|why| Error::new(ErrorKind::Config, format!("{name} {why}")))
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromEnvironment => f.write_str("FromEnvironment"),
            Self::Direct => f.write_str("Direct"),
            Self::Via(proxy) => write!(f, "Via({})", without_userinfo(&proxy.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn found(server: &str, variables: &[(&str, &str)]) -> Result<Option<String>, Error> {
        let environment = Environment::of_test(Path::new("/nowhere"), variables);
        let proxy = Proxy::FromEnvironment.for_server(&server.parse().unwrap(), &environment)?;
        Ok(proxy.map(|proxy| proxy.to_string()))
    }

    #[test]
    fn proxy_variable_matches_the_scheme_in_either_case() {
        let both = [("HTTPS_PROXY", "http://secure:1"), ("HTTP_PROXY", "http://plain:2")];
        let lower = [("https_proxy", "http://secure:1"), ("http_proxy", "http://plain:2")];
        for variables in [both, lower] {
            assert_eq!(found("https://host:6443", &variables).unwrap().unwrap(), "http://secure:1/");
            assert_eq!(found("http://host:8080", &variables).unwrap().unwrap(), "http://plain:2/");
        }
        let cases = [("HTTPS_PROXY", "http://upper:1"), ("https_proxy", "http://lower:1")];
        assert_eq!(found("https://host", &cases).unwrap().unwrap(), "http://upper:1/");
        assert_eq!(found("https://host", &[("HTTP_PROXY", "http://plain:2")]).unwrap(), None);
        assert_eq!(found("https://host", &[]).unwrap(), None);
    }

    #[test]
    fn proxy_without_a_scheme_uses_http() {
        assert_eq!(found("https://host", &[("HTTPS_PROXY", "proxy:3128")]).unwrap().unwrap(), "http://proxy:3128/");
        assert_eq!(found("https://host", &[("HTTPS_PROXY", "proxy")]).unwrap().unwrap(), "http://proxy/");
        let socks = [("HTTPS_PROXY", "socks5h://joe:pass@proxy")];
        assert_eq!(found("https://host", &socks).unwrap().unwrap(), "socks5h://joe:pass@proxy/");
    }

    #[test]
    fn invalid_proxy_is_an_error_without_its_password() {
        for value in ["ftp://joe:s3cret@proxy", "http://joe:s3cret@proxy:x", "joe s3cret"] {
            let error = found("https://host", &[("https_proxy", value)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().starts_with("https_proxy "), "{error}");
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        }
    }

    #[test]
    fn http_proxy_is_ignored_in_a_cgi_program() {
        let cgi = [("HTTP_PROXY", "http://evil"), ("HTTPS_PROXY", "http://good"), ("REQUEST_METHOD", "GET")];
        assert_eq!(found("http://host", &cgi).unwrap(), None);
        assert_eq!(found("https://host", &cgi).unwrap().unwrap(), "http://good/");
    }

    #[test]
    fn configured_proxy_takes_precedence_over_the_environment() {
        let environment = Environment::of_test(Path::new("/nowhere"), &[("HTTPS_PROXY", "http://proxy")]);
        let server = "https://host".parse().unwrap();
        assert_eq!(Proxy::Direct.for_server(&server, &environment).unwrap(), None);
        let other: Uri = "socks5://other".parse().unwrap();
        assert_eq!(Proxy::Via(other.clone()).for_server(&server, &environment).unwrap(), Some(other));
        let excepted = [("HTTPS_PROXY", "http://proxy"), ("no_proxy", "host")];
        assert_eq!(found("https://host", &excepted).unwrap(), None);
    }
}

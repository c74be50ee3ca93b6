//! Connections through a proxy.
//!
//! HTTP proxies open a tunnel for TLS, and forward plain requests that have the whole address. SOCKS proxies open a
//! tunnel for both. Messages name the proxy, and never its user or password.
//!
//! `CONNECT` and SOCKS are not taken from hyper-util, because its tunnel accepts only status 200, drops bytes that
//! arrive together with the proxy's response, and reports neither the proxy's status nor its reason.

mod connect;
mod socks;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, StatusCode, Uri, header::CONTENT_TYPE};
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;

use super::{
    HttpSettings, broken,
    stream::BoxStream,
    tls::{Peer, TlsConnector, refused_handshake},
};
use crate::{
    Error, ErrorKind,
    client::{
        auth::secret_header,
        config::{
            Tls,
            secret::{Secret, without_userinfo},
        },
    },
};

/// A proxy, and how to connect to it.
pub(super) struct ProxyConnector {
    kind: Kind,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
    /// The name in messages, without user and password.
    name: String,
}

enum Kind {
    Http { authorization: Option<HeaderValue> },
    Socks { login: Option<Login> },
}

/// The user and the password of a URL.
struct Login {
    user: String,
    password: Secret,
}

impl ProxyConnector {
    pub(super) fn new(proxy: &Uri, settings: &HttpSettings) -> Result<Self, Error> {
        let name = without_userinfo(&proxy.to_string()).trim_end_matches('/').to_owned();
        let config = |what: &str| Error::new(ErrorKind::Config, format!("invalid proxy {name}: {what}"));
        let Some(authority) = proxy.authority() else { return Err(config("no host")) };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let login = authority.as_str().rsplit_once('@').map(|(login, _)| Login::parse(login));
        let http = |login: Option<Login>| -> Result<Kind, Error> {
            Ok(Kind::Http { authorization: login.map(|login| login.basic()).transpose()? })
        };
        let (kind, default_port, secure) = match proxy.scheme_str() {
            Some("http") => (http(login)?, 80, false),
            Some("https") => (http(login)?, 443, true),
            Some("socks5" | "socks5h") => (Kind::Socks { login }, 1080, false),
            _ => return Err(config("the scheme must be http, https, socks5 or socks5h")),
        };
        // The client certificate and the server name of the settings are for the server, not for the proxy.
        let tls = Tls::default().trust(settings.tls.trust_of_proxies());
        let tls = secure.then(|| TlsConnector::new(&tls, &host, Peer::Proxy, settings, None)).transpose()?;
        Ok(Self { kind, port: authority.port_u16().unwrap_or(default_port), host, tls, name })
    }

    /// Returns whether plain requests are forwarded, with their whole address.
    pub(super) fn forwards_plain_requests(&self) -> bool {
        matches!(self.kind, Kind::Http { .. })
    }

    /// Returns the `Proxy-Authorization` header of forwarded requests.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        match &self.kind {
            Kind::Http { authorization } => authorization.as_ref(),
            Kind::Socks { .. } => None,
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Opens a stream to the proxy itself, over a connected socket.
    pub(super) async fn greet(&self, tcp: TcpStream, settings: &HttpSettings) -> Result<BoxStream, Error> {
        let Some(tls) = &self.tls else { return Ok(Box::new(tcp)) };
        let limit = settings.handshake_timeout;
        match tokio::time::timeout(limit, tls.handshake(tcp)).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(refused_handshake(&format!("proxy {}", self.name), error)),
            Err(_) => {
                let what = format!("cannot complete a TLS handshake with proxy {} within {limit:?}", self.name);
                Err(Error::new(ErrorKind::Transport, what))
            }
        }
    }

    /// Opens a stream to the server, over one to the proxy.
    pub(super) async fn tunnel(
        &self,
        mut stream: BoxStream,
        host: &str,
        port: u16,
        settings: &HttpSettings,
    ) -> Result<BoxStream, Error> {
        let opening = async {
            match &self.kind {
                Kind::Http { authorization } => connect::open(&mut stream, host, port, authorization.as_ref()).await,
                Kind::Socks { login } => {
                    let login = login.as_ref().map(|login| (login.user.as_str(), login.password.expose()));
                    socks::open(&mut stream, host, port, login).await
                }
            }
        };
        let limit = settings.connect_timeout;
        let to = format!("proxy {} cannot connect to {}", self.name, host_and_port(host, port));
        match tokio::time::timeout(limit, opening).await {
            Ok(Ok(())) => Ok(stream),
            Ok(Err(Closed::Refused(why))) => Err(Error::new(ErrorKind::Transport, format!("{to}: {why}"))),
            Ok(Err(Closed::Broke(error))) => Err(broken(to, error)),
            Err(_) => Err(Error::new(ErrorKind::Transport, format!("{to}: no response within {limit:?}"))),
        }
    }

    /// Returns an error if a response is the proxy's own. API servers do not respond with HTML pages.
    pub(super) fn refusal<T>(&self, response: &http::Response<T>) -> Option<Error> {
        let code = response.status();
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_failure = code.is_client_error() || code.is_server_error();
        let is_page = is_failure && content_type.is_some_and(|value| value.starts_with("text/html"));
        (is_page || code == StatusCode::PROXY_AUTHENTICATION_REQUIRED).then(|| {
            let what = format!("proxy {} does not forward requests: status {code}", self.name);
            Error::new(ErrorKind::Transport, what)
        })
    }
}

impl Login {
    fn parse(text: &str) -> Self {
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        Self { user: decode(user), password: Secret::new(decode(password)) }
    }

    fn basic(&self) -> Result<HeaderValue, Error> {
        let value = STANDARD.encode(format!("{}:{}", self.user, self.password.expose()));
        secret_header(&format!("Basic {value}"), "password of the proxy")
    }
}

/// The reason why there is no tunnel.
enum Closed {
    Refused(String),
    Broke(std::io::Error),
}

impl From<std::io::Error> for Closed {
    fn from(error: std::io::Error) -> Self {
        Self::Broke(error)
    }
}

/// Returns `host:port`, with brackets around a host with colons.
fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_has_the_default_port_and_a_decoded_login() {
        for (url, port, name) in [
            ("http://proxy", 80, "http://proxy"),
            ("http://joe:s3cret@proxy:3128", 3128, "http://[redacted]@proxy:3128"),
            ("socks5://proxy", 1080, "socks5://proxy"),
            ("socks5h://joe@[::1]", 1080, "socks5h://[redacted]@[::1]"),
        ] {
            let settings = HttpSettings::new("http://server".parse().unwrap());
            let proxy = ProxyConnector::new(&url.parse().unwrap(), &settings).unwrap();
            assert_eq!((proxy.port(), proxy.name()), (port, name));
        }
        let login = Login::parse("joe:p%40s%3As:x");
        assert_eq!((login.user.as_str(), login.password.expose()), ("joe", "p@s:s:x"));
        assert_eq!(host_and_port("2001:db8::1", 443), "[2001:db8::1]:443");
        assert_eq!(host_and_port("host", 443), "host:443");
    }
}

//! Proxies: tunnels, forwarded requests, SOCKS, and proxies that refuse.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Error, ErrorKind,
    client::config::{Config, Pem, Tls, Trust},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    support::scripted::{chain, map, map_json},
    support::served::{Authority, Served, json_response},
};

/// The behavior of a proxy.
#[derive(Clone)]
pub(crate) enum Behavior {
    /// Opens tunnels and forwards requests.
    Http,
    /// Opens tunnels for clients with this login.
    Socks(Option<(&'static str, &'static str)>),
    /// Reads a request and writes this text.
    Responds(&'static str),
    /// Reads, and never responds.
    Silent,
}

/// A proxy on the loopback, with the heads of the requests (or the SOCKS targets) that it received.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub(crate) async fn start(manner: Behavior, acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), seen: Arc::default() };
        let seen = Arc::clone(&proxy.seen);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (manner, seen, acceptor) = (manner.clone(), Arc::clone(&seen), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(tcp, manner, &seen).await,
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(tcp).await else { return };
                            serve(stream, manner, &seen).await;
                        }
                    }
                });
            }
        });
        proxy
    }

    pub(crate) async fn seen(&self) -> Vec<String> {
        self.seen.lock().await.clone()
    }
}

async fn serve(mut client: impl AsyncRead + AsyncWrite + Unpin, manner: Behavior, seen: &Mutex<Vec<String>>) {
    let target = match manner {
        Behavior::Socks(login) => match socks_target(&mut client, login).await {
            Some(target) => {
                seen.lock().await.push(target.clone());
                target
            }
            None => return,
        },
        Behavior::Http => {
            let Some(head) = head(&mut client).await else { return };
            seen.lock().await.push(head.clone());
            let mut words = head.split(' ');
            match (words.next(), words.next()) {
                (Some("CONNECT"), Some(target)) => {
                    client.write_all(b"HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n").await.unwrap();
                    target.to_owned()
                }
                (_, Some(url)) => return forward(client, &head, url).await,
                _ => return,
            }
        }
        Behavior::Responds(text) => {
            head(&mut client).await;
            return client.write_all(text.as_bytes()).await.unwrap();
        }
        Behavior::Silent => {
            head(&mut client).await;
            return std::future::pending().await;
        }
    };
    let mut server = TcpStream::connect(target).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

/// Forwards one request, with its path only.
async fn forward(mut client: impl AsyncRead + AsyncWrite + Unpin, head: &str, url: &str) {
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let path = url.strip_prefix(&format!("http://{address}")).unwrap();
    let mut server = TcpStream::connect(address).await.unwrap();
    server.write_all(head.replacen(url, path, 1).as_bytes()).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// Implements the proxy's part of RFC 1928 and RFC 1929.
async fn socks_target(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    login: Option<(&str, &str)>,
) -> Option<String> {
    assert_eq!(stream.read_u8().await.ok()?, 5);
    let mut methods = vec![0; usize::from(stream.read_u8().await.unwrap())];
    stream.read_exact(&mut methods).await.unwrap();
    let wanted = if login.is_some() { 2 } else { 0 };
    if !methods.contains(&wanted) {
        stream.write_all(&[5, 0xff]).await.unwrap();
        return None;
    }
    stream.write_all(&[5, wanted]).await.unwrap();
    if let Some(login) = login {
        assert_eq!(stream.read_u8().await.unwrap(), 1);
        let given = (text(stream).await, text(stream).await);
        let known = (given.0.as_str(), given.1.as_str()) == login;
        stream.write_all(&[1, u8::from(!known)]).await.unwrap();
        if !known {
            return None;
        }
    }
    let mut request = [0; 4];
    stream.read_exact(&mut request).await.unwrap();
    assert_eq!(request[..3], [5, 1, 0]);
    let host = match request[3] {
        1 => {
            let mut octets = [0; 4];
            stream.read_exact(&mut octets).await.unwrap();
            std::net::Ipv4Addr::from(octets).to_string()
        }
        3 => text(stream).await,
        other => panic!("address of kind {other}"),
    };
    let port = stream.read_u16().await.unwrap();
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    Some(format!("{host}:{port}"))
}

async fn text(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = vec![0; usize::from(stream.read_u8().await.unwrap())];
    stream.read_exact(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn server(acceptor: Option<TlsAcceptor>) -> Served {
    Served::start(acceptor, |_| json_response(200, &map_json("web"))).await
}

async fn get(config: &Config) -> Result<ConfigMap, Error> {
    let client = Client::builder_from_config(config).unwrap().json_only().build();
    Api::namespaced(client, "default").get("web").await
}

async fn create_error(config: &Config) -> Error {
    let client = Client::from_config(config).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&map("web")).await.unwrap_err()
}

#[tokio::test]
async fn tls_server_is_reached_through_a_tunnel() {
    let authority = Authority::new();
    let server = server(Some(authority.acceptor(&["h2"]))).await;
    let proxy = Proxy::start(Behavior::Http, None).await;
    let config = server.config(&authority);
    let config = config.proxy(format!("http://joe:p%40ss@localhost:{}", proxy.port).parse().unwrap());
    get(&config).await.unwrap();
    let seen = proxy.seen().await;
    assert_eq!(seen.len(), 1);
    let target = format!("127.0.0.1:{}", server.port());
    assert!(seen[0].starts_with(&format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n")), "{}", seen[0]);
    // joe:p@ss
    assert!(seen[0].contains("\r\nProxy-Authorization: Basic am9lOnBAc3M=\r\n"), "{}", seen[0]);
    let asked = server.asked.lock().await;
    assert_eq!(asked[0].request.version(), http::Version::HTTP_2);
    assert!(!asked[0].request.headers().contains_key("proxy-authorization"));
}

#[tokio::test]
async fn tls_proxy_is_verified_like_the_server() {
    let authority = Authority::new();
    let server = server(Some(authority.acceptor(&["h2"]))).await;
    let proxy = Proxy::start(Behavior::Http, Some(authority.acceptor(&["http/1.1"]))).await;
    let url = |host: &str| format!("https://{host}:{}", proxy.port).parse().unwrap();
    get(&server.config(&authority).proxy(url("localhost"))).await.unwrap();
    assert_eq!(proxy.seen().await.len(), 1);
    // The expected name of the server does not apply to the proxy.
    let error = get(&server.config(&authority).proxy(url("127.0.0.1"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Untrusted);
    assert!(error.to_string().starts_with("proxy https://127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn tls_proxy_is_verified_even_if_the_server_is_not() {
    let authority = Authority::new();
    let server = server(Some(authority.acceptor(&["h2"]))).await;
    let proxy = Proxy::start(Behavior::Http, Some(authority.acceptor(&["http/1.1"]))).await;
    let insecure = Tls::default().trust(Trust::Anyone);
    let config = |tls: Tls| {
        let url = format!("https://joe:s3cret@localhost:{}", proxy.port);
        server.config(&authority).tls(tls).proxy(url.parse().unwrap())
    };
    let error = get(&config(insecure.clone())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
    assert_eq!(proxy.seen().await.len(), 0, "an unknown proxy received the password");
    for trust in [Trust::Anyone, Trust::Authority(Pem::Data(authority.pem().into()))] {
        get(&config(insecure.clone().proxy_trust(trust))).await.unwrap();
    }
    assert_eq!(proxy.seen().await.len(), 2);
}

#[tokio::test]
async fn plain_request_is_forwarded_with_its_whole_address() {
    let server = server(None).await;
    let proxy = Proxy::start(Behavior::Http, None).await;
    let config = Config::new(&format!("http://127.0.0.1:{}/prefix", server.port())).unwrap();
    let config = config.proxy(format!("http://joe:pass@localhost:{}", proxy.port).parse().unwrap());
    get(&config).await.unwrap();
    let seen = proxy.seen().await;
    let path = "/prefix/api/v1/namespaces/default/configmaps/web";
    let line = format!("GET http://127.0.0.1:{}{path} HTTP/1.1\r\n", server.port());
    assert!(seen[0].starts_with(&line), "{}", seen[0]);
    assert!(seen[0].contains("\r\nproxy-authorization: Basic am9lOnBhc3M=\r\n"), "{}", seen[0]);
    assert!(seen[0].contains(&format!("\r\nhost: 127.0.0.1:{}\r\n", server.port())), "{}", seen[0]);
    assert_eq!(server.asked.lock().await[0].request.uri().path(), path);
}

#[tokio::test]
async fn socks_proxy_authenticates_and_resolves_names() {
    let authority = Authority::new();
    let secure = server(Some(authority.acceptor(&["h2"]))).await;
    let plain = server(None).await;
    let proxy = Proxy::start(Behavior::Socks(Some(("joe", "p@ss"))), None).await;
    let url = |scheme: &str| format!("{scheme}://joe:p%40ss@localhost:{}", proxy.port).parse().unwrap();
    get(&secure.config(&authority).proxy(url("socks5"))).await.unwrap();
    let named = Config::new(&format!("http://localhost:{}", plain.port())).unwrap();
    get(&named.proxy(url("socks5h"))).await.unwrap();
    let targets = [format!("127.0.0.1:{}", secure.port()), format!("localhost:{}", plain.port())];
    assert_eq!(proxy.seen().await, targets);
    assert_eq!(plain.asked.lock().await[0].request.uri(), "/api/v1/namespaces/default/configmaps/web");
    // Without a login if none is required.
    let open = Proxy::start(Behavior::Socks(None), None).await;
    let config = secure.config(&authority).proxy(format!("socks5://localhost:{}", open.port).parse().unwrap());
    get(&config).await.unwrap();
}

#[tokio::test]
async fn refusing_proxy_is_an_error_without_its_password() {
    let authority = Authority::new();
    let server = server(Some(authority.acceptor(&["h2"]))).await;
    let html = "HTTP/1.1 403 Forbidden\r\ncontent-type: text/html\r\ncontent-length: 15\r\n\r\n<h1>s3cret</h1>";
    for (manner, expected) in [
        (
            Behavior::Responds("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"),
            "another user or password is required (status 407 Proxy Authentication Required)",
        ),
        (Behavior::Responds(html), "status 403 Forbidden"),
        (Behavior::Responds("HTTP/1.1 502"), "status 502"),
        (Behavior::Responds("<html>\r\n\r\n"), "the response is not HTTP"),
        (Behavior::Responds(""), ""),
        (Behavior::Silent, "no response within 2s"),
    ] {
        let is_silent = matches!(manner, Behavior::Silent);
        let proxy = Proxy::start(manner, None).await;
        let config = server.config(&authority).connect_timeout(Duration::from_secs(if is_silent { 2 } else { 25 }));
        let config = config.proxy(format!("http://joe:s3cret@localhost:{}", proxy.port).parse().unwrap());
        let error = create_error(&config).await;
        assert_eq!(error.kind(), ErrorKind::Transport);
        let start =
            format!("proxy http://[redacted]@localhost:{} cannot connect to 127.0.0.1:{}", proxy.port, server.port());
        assert!(error.to_string().starts_with(&start), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!format!("{error:?} {config:?}").contains("s3cret"), "{error:?}");
    }
    assert_eq!(server.accepted(), 0, "the proxy is never bypassed");
}

#[tokio::test]
async fn proxy_error_page_is_not_taken_for_a_server_response() {
    let page = "HTTP/1.1 403 Forbidden\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: 0\r\n\r\n";
    for (response, code) in [("HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n", "407"), (page, "403")] {
        let proxy = Proxy::start(Behavior::Responds(response), None).await;
        let config = Config::new("http://server.invalid").unwrap();
        let config = config.proxy(format!("http://joe:s3cret@localhost:{}", proxy.port).parse().unwrap());
        let error = create_error(&config).await;
        assert_eq!(error.kind(), ErrorKind::Transport);
        let name = format!("proxy http://[redacted]@localhost:{}", proxy.port);
        assert!(error.to_string().starts_with(&format!("{name} does not forward requests: status {code}")), "{error}");
    }
    // A rejection by the server itself is reported as such.
    let server = Served::start(None, |_| json_response(403, &serde_json::json!({"kind": "Status", "code": 403}))).await;
    let proxy = Proxy::start(Behavior::Http, None).await;
    let config = Config::new(&format!("http://127.0.0.1:{}", server.port())).unwrap();
    let config = config.proxy(format!("http://localhost:{}", proxy.port).parse().unwrap());
    assert!(get(&config).await.unwrap_err().is_forbidden());
}

#[tokio::test]
async fn refusing_socks_proxy_is_an_error_with_the_reason() {
    let proxy = Proxy::start(Behavior::Socks(Some(("joe", "pass"))), None).await;
    for (login, expected) in
        [("", "a user and a password are required"), ("joe:s3cret@", "another user or password is required")]
    {
        let config = Config::new("http://server.invalid").unwrap();
        let config = config.proxy(format!("socks5://{login}localhost:{}", proxy.port).parse().unwrap());
        let error = create_error(&config).await;
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(!chain(&error).contains("s3cret"), "{error:?}");
    }
    // The port has another kind of proxy.
    let proxy = Proxy::start(Behavior::Http, None).await;
    let config = Config::new("http://server.invalid").unwrap().connect_timeout(Duration::from_secs(2));
    let config = config.proxy(format!("socks5://localhost:{}", proxy.port).parse().unwrap());
    assert!(create_error(&config).await.to_string().contains("no response within 2s"));
}

#[tokio::test]
async fn missing_proxy_is_an_error_with_its_address() {
    // Bound, so that the port stays free, and not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let config = Config::new("http://server.invalid").unwrap();
    let error = create_error(&config.proxy(format!("http://joe:s3cret@localhost:{port}").parse().unwrap())).await;
    assert_eq!(error.to_string(), format!("cannot connect to proxy http://[redacted]@localhost:{port}"));
}

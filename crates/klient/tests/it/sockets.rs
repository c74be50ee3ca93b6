//! The HTTP transport against small scripted servers on the loopback.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, ErrorKind,
    client::config::{Config, Impersonation},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use crate::support::scripted::{map, map_json};

/// A server that runs `serve` on each connection, with its number.
struct Server {
    address: String,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    async fn start<F>(serve: impl Fn(TcpStream, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, count.fetch_add(1, Ordering::SeqCst)));
            }
        });
        Self { address, accepted }
    }

    fn maps(&self) -> Api<ConfigMap> {
        let client = Client::builder_from_config(&Config::new(&self.address).unwrap()).unwrap().json_only();
        Api::namespaced(client.timeout(Duration::from_secs(20)).build(), "default")
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// Reads one request, or returns `None` if the client has closed the connection.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => text.extend_from_slice(&chunk[..read]),
        }
        let so_far = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = so_far.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(so_far);
        }
    }
}

fn http_response(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

async fn respond_to_all(mut stream: TcpStream) {
    while request(&mut stream).await.is_some() {
        stream.write_all(http_response(&map_json("web").to_string()).as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn refused_connection_is_an_error_with_the_address() {
    // Bound, so that the port stays free, and not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let client = Client::from_config(&Config::new(&format!("http://{address}")).unwrap()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let error = maps.create(&map("web")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.to_string().contains(&address), "{error}");
}

/// Returns the error of a create whose server reads the request, sends `text` and closes.
async fn create_error(text: &'static str) -> ErrorKind {
    let server = Server::start(move |mut stream, _| async move {
        request(&mut stream).await;
        stream.write_all(text.as_bytes()).await.unwrap();
    })
    .await;
    let error = server.maps().create(&map("web")).await.unwrap_err();
    assert_eq!(server.accepted(), 1, "a write must not be sent twice");
    error.kind()
}

#[tokio::test]
async fn truncated_response_to_a_write_is_not_retried() {
    for text in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-ty",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"kind\":",
        "not HTTP at all\r\n\r\n",
    ] {
        assert_eq!(create_error(text).await, ErrorKind::Transport, "{text}");
    }
}

#[tokio::test]
async fn truncated_list_or_watch_is_an_error() {
    let server = Server::start(|mut stream, _| async move {
        request(&mut stream).await;
        let event = json!({"type": "ADDED", "object": map_json("web")}).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        let text = format!("{head}{:x}\r\n{event}\r\n", event.len());
        stream.write_all(text.as_bytes()).await.unwrap();
    })
    .await;
    let mut watch = server.maps().watch().await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().object(), Some(&map("web")));
    assert_eq!(watch.next().await.unwrap().unwrap_err().kind(), ErrorKind::Transport);
    assert!(watch.next().await.is_none());
    server.maps().list().await.unwrap_err();
}

#[tokio::test]
async fn events_that_arrive_together_are_read_in_one_poll_each() {
    let server = Server::start(|mut stream, _| async move {
        request(&mut stream).await;
        let event = json!({"type": "ADDED", "object": map_json("web")}).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        stream.write_all(format!("{head}{}", chunk.repeat(20)).as_bytes()).await.unwrap();
        request(&mut stream).await;
    })
    .await;
    let mut watch = server.maps().watch().await.unwrap();
    watch.next().await.unwrap().unwrap();
    for number in 1..20 {
        // No other task runs on this thread meanwhile.
        let polled = pin!(watch.next()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready(), "event {number} has arrived, but was not read");
    }
}

#[tokio::test]
async fn http1_connection_is_reused() {
    let server = Server::start(|stream, _| respond_to_all(stream)).await;
    let maps = server.maps();
    for _ in 0..5 {
        maps.get("web").await.unwrap();
        maps.create(&map("web")).await.unwrap();
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn write_on_a_closed_idle_connection_uses_a_new_one() {
    let (closed, mut was_closed) = mpsc::unbounded_channel();
    let server = Server::start(move |mut stream, number| {
        let closed = closed.clone();
        async move {
            if number > 0 {
                return respond_to_all(stream).await;
            }
            request(&mut stream).await;
            stream.write_all(http_response(&map_json("web").to_string()).as_bytes()).await.unwrap();
            drop(stream);
            closed.send(()).unwrap();
        }
    })
    .await;
    let maps = server.maps();
    maps.get("web").await.unwrap();
    was_closed.recv().await.unwrap();
    maps.create(&map("web")).await.unwrap();
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn dropped_body_does_not_affect_the_next_request() {
    let server = Server::start(|mut stream, number| async move {
        if number > 0 {
            return respond_to_all(stream).await;
        }
        request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.unwrap();
        request(&mut stream).await;
    })
    .await;
    let client = Client::from_config(&Config::new(&server.address).unwrap()).unwrap();
    let response = client.send(http::Request::get("/").body(Vec::new()).unwrap()).await.unwrap();
    drop(response);
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    assert_eq!(maps.get("web").await.unwrap(), map("web"));
}

#[tokio::test]
async fn silent_server_is_a_timeout() {
    let server = Server::start(|mut stream, _| async move { while request(&mut stream).await.is_some() {} }).await;
    let client = Client::builder_from_config(&Config::new(&server.address).unwrap()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.timeout(Duration::from_millis(50)).build(), "default");
    assert!(maps.get("web").await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn plain_server_at_an_https_address_is_a_transport_error() {
    let server = Server::start(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    let mut config = Config::new(&server.address.replace("http:", "https:")).unwrap();
    config.tls = config.tls.trust(klient::client::config::Trust::Anyone);
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_config(&config).unwrap(), "default");
    let error = maps.create(&map("web")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.to_string().contains("TLS handshake"), "{error}");
}

#[tokio::test]
async fn impersonation_headers_and_server_path_are_sent() {
    let (heads, mut seen) = mpsc::unbounded_channel();
    let server = Server::start(move |mut stream, _| {
        let heads = heads.clone();
        async move {
            heads.send(request(&mut stream).await.unwrap()).unwrap();
            stream.write_all(http_response(&map_json("web").to_string()).as_bytes()).await.unwrap();
        }
    })
    .await;
    let mut config = Config::new(&format!("{}/clusters/a", server.address)).unwrap();
    let extra = BTreeMap::from([("example.org/a%b".to_owned(), vec!["x".to_owned(), "y".to_owned()])]);
    config.impersonation = Some(Impersonation::new("jürgen").uid("7").groups(["one", "two"]).extra(extra));
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_config(&config).unwrap(), "default");
    maps.get("web").await.unwrap();
    let head = seen.recv().await.unwrap();
    assert!(head.starts_with("GET /clusters/a/api/v1/namespaces/default/configmaps/web HTTP/1.1\r\n"), "{head}");
    let lines: Vec<&str> = head.lines().filter(|line| line.starts_with("impersonate-")).collect();
    let extra = "impersonate-extra-example%2eorg%2fa%25b";
    let expected =
        ["impersonate-user: jürgen", "impersonate-uid: 7", "impersonate-group: one", "impersonate-group: two"];
    for line in expected.into_iter().chain([format!("{extra}: x").as_str(), format!("{extra}: y").as_str()]) {
        assert!(lines.contains(&line), "{line} in {lines:?}");
    }
    assert_eq!(lines.len(), 6);
}

//! TLS and HTTP/2: trust, streams, lanes, and connections that the server closes.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, ErrorKind,
    client::config::{Config, Pem, Tls, Trust},
    request::media_type,
};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use tokio::{
    net::TcpListener,
    sync::{Notify, Semaphore, mpsc},
};

use crate::support::scripted::{chain, map, map_json};

/// A server that allows two streams per connection. The object in a response has the number of its connection as a
/// name. Requests for `held` wait for a permit.
struct Server {
    port: u16,
    certificate: String,
    accepted: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
    /// Closes the first connection gracefully.
    end_first: Arc<Notify>,
    /// The connection and path of every request.
    requests: mpsc::UnboundedReceiver<(usize, String)>,
}

impl Server {
    async fn start() -> Self {
        let pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::from_pem_slice(pair.signing_key.serialize_pem().as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            certificate: pair.cert.pem(),
            accepted: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
            end_first: Arc::default(),
            requests,
        };
        let (accepted, permits) = (Arc::clone(&server.accepted), Arc::clone(&server.permits));
        let end_first = Arc::clone(&server.end_first);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(tcp).await else { continue };
                let number = accepted.fetch_add(1, Ordering::SeqCst);
                let (permits, sender, end_first) = (Arc::clone(&permits), sender.clone(), Arc::clone(&end_first));
                let service = service_fn(move |request| respond(request, number, sender.clone(), Arc::clone(&permits)));
                tokio::spawn(async move {
                    let mut builder = http2::Builder::new(TokioExecutor::new());
                    let connection = builder.max_concurrent_streams(2).serve_connection(TokioIo::new(stream), service);
                    let mut connection = std::pin::pin!(connection);
                    tokio::select! {
                        _ = connection.as_mut() => return,
                        () = end_first.notified(), if number == 0 => connection.as_mut().graceful_shutdown(),
                    }
                    let _ = connection.await;
                });
            }
        });
        server
    }

    fn tls(&self) -> Tls {
        Tls::default()
            .trust(Trust::Authority(Pem::Data(self.certificate.clone().into_bytes())))
            .server_name("localhost")
    }

    fn maps(&self, tls: Tls) -> Api<ConfigMap> {
        let mut config = Config::new(&format!("https://127.0.0.1:{}", self.port)).unwrap();
        config.tls = tls;
        let client = Client::builder_from_config(&config).unwrap().json_only();
        Api::namespaced(client.timeout(Duration::from_secs(20)).build(), "default")
    }
}

async fn respond(
    request: http::Request<Incoming>,
    number: usize,
    sender: mpsc::UnboundedSender<(usize, String)>,
    permits: Arc<Semaphore>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let uri = request.uri().clone();
    let _ = sender.send((number, uri.path_and_query().unwrap().to_string()));
    if uri.path().ends_with("held") {
        permits.acquire().await.unwrap().forget();
    }
    let body = map_json(&format!("connection-{number}")).to_string();
    Ok(http::Response::builder().header("content-type", media_type::JSON).body(Full::new(body.into())).unwrap())
}

async fn name(maps: &Api<ConfigMap>, asked: &str) -> String {
    maps.get(asked).await.unwrap().metadata.name.unwrap()
}

#[tokio::test]
async fn requests_above_the_stream_limit_open_connections() {
    let mut server = Server::start().await;
    let maps = server.maps(server.tls());
    let held: Vec<_> = (0..7)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move { name(&maps, "held").await })
        })
        .collect();
    // None has a response yet, so all of them are at the server at once.
    let arrived = async {
        for _ in 0..7 {
            server.requests.recv().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(20), arrived).await.expect("no request waits behind another");
    assert!(server.accepted.load(Ordering::SeqCst) >= 4);
    server.permits.add_permits(7);
    for held in held {
        held.await.unwrap();
    }
}

#[tokio::test]
async fn http2_connection_is_reused() {
    let server = Server::start().await;
    let maps = server.maps(server.tls());
    for _ in 0..5 {
        assert_eq!(name(&maps, "web").await, "connection-0");
    }
    assert_eq!(server.accepted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn watches_have_their_own_connections() {
    let mut server = Server::start().await;
    let maps = server.maps(server.tls());
    name(&maps, "web").await;
    maps.watch().await.unwrap();
    name(&maps, "web").await;
    let mut numbers = Vec::new();
    for _ in 0..3 {
        numbers.push(server.requests.recv().await.unwrap().0);
    }
    assert_eq!(numbers, [0, 1, 0]);
}

#[tokio::test]
async fn closing_connection_finishes_responses_and_gets_no_requests() {
    let mut server = Server::start().await;
    let maps = server.maps(server.tls());
    let held = tokio::spawn({
        let maps = maps.clone();
        async move { name(&maps, "held").await }
    });
    server.requests.recv().await.unwrap();
    server.end_first.notify_one();
    // The server's GOAWAY may cross with a few requests; none of them fails.
    let mut last = String::new();
    for _ in 0..1000 {
        last = maps.create(&map("web")).await.unwrap().metadata.name.unwrap();
        if last != "connection-0" {
            break;
        }
    }
    assert_eq!(last, "connection-1");
    server.permits.add_permits(1);
    assert_eq!(held.await.unwrap(), "connection-0");
}

#[tokio::test]
async fn server_is_trusted_by_its_authority_and_its_name() {
    let server = Server::start().await;
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let wrong_authority = server.tls().trust(Trust::Authority(Pem::Data(other.cert.pem().into_bytes())));
    let wrong_name = server.tls().server_name("elsewhere");
    let mut no_name = server.tls();
    // The certificate is not for the address.
    no_name.server_name = None;
    for tls in [wrong_authority, wrong_name, no_name] {
        let error = server.maps(tls).get("web").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Untrusted);
        assert!(chain(&error).contains("certificate"), "{}", chain(&error));
    }
    assert_eq!(name(&server.maps(server.tls()), "web").await, "connection-0");
    name(&server.maps(Tls::default().trust(Trust::Anyone)), "web").await;
}

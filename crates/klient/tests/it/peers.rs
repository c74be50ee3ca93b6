//! Servers that misbehave: silent, half open, refusing, untrusted, closing in the middle.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Error, ErrorKind,
    client::{
        config::{Config, Tls, Trust},
        http::{Body, HttpSettings, HttpTransport},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Notify, Semaphore},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{
    support::scripted::{chain, fed, map, map_json},
    support::served::{Authority, Served, json_response},
};

pub(crate) fn maps(settings: HttpSettings) -> Api<ConfigMap> {
    let client = Client::builder(HttpTransport::new(settings).unwrap()).json_only();
    Api::namespaced(client.timeout(Duration::from_secs(30)).build(), "default")
}

pub(crate) fn settings(port: u16, tls: Tls) -> HttpSettings {
    let mut settings = HttpSettings::new(format!("https://127.0.0.1:{port}").parse().unwrap());
    settings.tls = tls;
    settings
}

pub(crate) async fn get(maps: &Api<ConfigMap>) -> Result<ConfigMap, Error> {
    maps.get("web").await
}

async fn create(maps: &Api<ConfigMap>) -> Result<ConfigMap, Error> {
    maps.create(&map("web")).await
}

pub(crate) async fn in_time<T>(work: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(25), work).await.expect("the operation hangs")
}

/// Accepts TLS connections, and passes each to `serve` with its number.
async fn accept<F>(
    acceptor: TlsAcceptor,
    serve: impl Fn(TlsStream<TcpStream>, usize) -> F + Send + 'static,
) -> (u16, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    accept_as(move || acceptor.clone(), serve).await
}

/// Accepts TLS connections with the identity that the server has at that time.
pub(crate) async fn accept_as<F>(
    acceptor: impl Fn() -> TlsAcceptor + Send + 'static,
    serve: impl Fn(TlsStream<TcpStream>, usize) -> F + Send + 'static,
) -> (u16, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&accepted);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(stream) = acceptor().accept(tcp).await else { continue };
            tokio::spawn(serve(stream, count.fetch_add(1, Ordering::SeqCst)));
        }
    });
    (port, accepted)
}

/// Responds to every request normally.
async fn behave(stream: TlsStream<TcpStream>) {
    let service =
        service_fn(|_: http::Request<Incoming>| async { Ok::<_, Error>(json_response(201, &map_json("web"))) });
    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// How a server refuses the first request of a connection, in HTTP/2 frames.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// `GOAWAY` with the last stream that the server may have processed; then it closes.
    GoAway(u8),
    /// `RST_STREAM`, with an error code.
    Reset(u8),
    /// The end of the connection alone.
    Close,
}

/// Reads the whole first request, and refuses it.
async fn refuse(mut stream: TlsStream<TcpStream>, refusal: Refusal) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    // An empty settings frame.
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let [a, b, c, kind, flags, ..] = head;
        let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
        stream.read_exact(&mut payload).await.unwrap();
        // Headers or data that end the stream.
        if kind <= 1 && flags & 1 == 1 {
            break;
        }
    }
    match refusal {
        Refusal::GoAway(last) => {
            stream.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, 0]).await.unwrap();
        }
        Refusal::Reset(code) => stream.write_all(&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, code]).await.unwrap(),
        Refusal::Close => {}
    }
    stream.flush().await.unwrap();
    if let Refusal::Reset(_) = refusal {
        // The connection stays open.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
}

#[tokio::test]
async fn write_is_resent_only_if_the_server_did_not_process_it() {
    const REFUSED_STREAM: u8 = 7;
    const INTERNAL_ERROR: u8 = 2;
    let authority = Authority::new();
    for (refusal, again) in [
        (Refusal::GoAway(0), true),
        (Refusal::GoAway(1), false),
        (Refusal::Reset(REFUSED_STREAM), true),
        (Refusal::Reset(INTERNAL_ERROR), false),
        (Refusal::Close, false),
    ] {
        let (port, accepted) = accept(authority.acceptor(&["h2"]), move |stream, number| async move {
            match number {
                0 => refuse(stream, refusal).await,
                _ => behave(stream).await,
            }
        })
        .await;
        let maps = maps(settings(port, authority.trusted()));
        let created = in_time(create(&maps)).await;
        assert_eq!(created.is_ok(), again, "{refusal:?}: {created:?}");
        if let Err(error) = created {
            assert_eq!(error.kind(), ErrorKind::Transport, "{refusal:?}");
            assert_eq!(accepted.load(Ordering::SeqCst), 1, "{refusal:?}: a write must not be sent twice");
        }
    }
}

#[tokio::test]
async fn retries_of_a_refusing_server_are_limited() {
    let authority = Authority::new();
    let (port, accepted) = accept(authority.acceptor(&["h2"]), |stream, _| refuse(stream, Refusal::GoAway(0))).await;
    let error = in_time(create(&maps(settings(port, authority.trusted())))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!(accepted.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn untrusted_server_is_an_error_with_the_reason_and_no_retry() {
    let (right, wrong) = (Authority::new(), Authority::new());
    let expired = right.sign_until("localhost", 2001);
    let named = |name: &str| right.trusted().server_name(name);
    for (acceptor, tls, expected) in [
        (right.acceptor(&["h2"]), wrong.trusted(), "was signed by an unknown authority"),
        (right.acceptor(&["h2"]), named("elsewhere"), "for another host name"),
        (right.acceptor_with(&expired, &["h2"]), right.trusted(), "has expired"),
    ] {
        let server = Served::start(Some(acceptor), |_| json_response(200, &map_json("web"))).await;
        let error = get(&maps(settings(server.port(), tls))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Untrusted);
        let start = format!("127.0.0.1:{} is not trusted: its certificate ", server.port());
        assert!(error.to_string().starts_with(&start) && error.to_string().contains(expected), "{error}");
        assert_eq!(server.accepted(), 1, "a retry cannot succeed: {expected}");
    }
}

#[tokio::test]
async fn handshake_timeout_fails_all_waiting_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&accepted);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((tcp, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            held.push(tcp);
        }
    });
    let mut settings = settings(port, Tls::default().trust(Trust::Anyone));
    settings.handshake_timeout = Duration::from_secs(1);
    let maps = maps(settings);
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move { create(&maps).await.unwrap_err() })
        })
        .collect();
    for waiting in waiting {
        let error = in_time(waiting).await.unwrap();
        assert_eq!(error.kind(), ErrorKind::Transport);
        let expected = format!("cannot complete a TLS handshake with 127.0.0.1:{port} within 1s");
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 1, "all requests share one attempt");
}

#[tokio::test]
async fn concurrent_first_requests_share_connections() {
    let authority = Authority::new();
    let server = Served::start(Some(authority.acceptor(&["h2"])), |_| json_response(200, &map_json("web"))).await;
    let maps = maps(settings(server.port(), authority.trusted()));
    let requests: Vec<_> = (0..100)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move { get(&maps).await })
        })
        .collect();
    for request in requests {
        in_time(request).await.unwrap().unwrap();
    }
    // 64 requests share a connection.
    assert!(server.accepted() <= 2, "{}", server.accepted());
}

#[tokio::test]
async fn request_uses_a_freed_stream_while_another_connects() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let maps = maps(settings(listener.local_addr().unwrap().port(), authority.trusted()));
    let request = || {
        let maps = maps.clone();
        tokio::spawn(async move { get(&maps).await })
    };
    let first = request();
    let (tcp, _) = listener.accept().await.unwrap();
    let stream = acceptor.accept(tcp).await.unwrap();
    let (permits, arrived) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (permitted, arrivals) = (Arc::clone(&permits), Arc::clone(&arrived));
    tokio::spawn(async move {
        let service = service_fn(move |_: http::Request<Incoming>| {
            let (permits, arrived) = (Arc::clone(&permitted), Arc::clone(&arrivals));
            async move {
                arrived.add_permits(1);
                permits.acquire().await.unwrap().forget();
                Ok::<_, Error>(json_response(200, &map_json("web")))
            }
        });
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let _ = builder.max_concurrent_streams(2).serve_connection(TokioIo::new(stream), service).await;
    });
    let second = request();
    in_time(arrived.acquire_many(2)).await.unwrap().forget();
    // The connection is full, so the third request opens another, whose handshake never completes.
    let third = request();
    let (_held, _) = in_time(listener.accept()).await.unwrap();
    let fourth = request();
    tokio::task::yield_now().await;
    permits.add_permits(3);
    for request in [first, second, fourth] {
        // Without the freed stream, it would wait for the third request.
        in_time(request).await.unwrap().unwrap();
    }
    third.abort();
}

#[tokio::test]
async fn canceled_caller_does_not_stop_connecting_for_others() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let maps = maps(settings(listener.local_addr().unwrap().port(), authority.trusted()));
    let request = || {
        let maps = maps.clone();
        tokio::spawn(async move { create(&maps).await })
    };
    let first = request();
    // The first request connects; its handshake gets no response.
    let (_held, _) = listener.accept().await.unwrap();
    let second = request();
    tokio::task::yield_now().await;
    first.abort();
    let (tcp, _) = in_time(listener.accept()).await.unwrap();
    tokio::spawn(async move { behave(acceptor.accept(tcp).await.unwrap()).await });
    in_time(second).await.unwrap().unwrap();
}

#[tokio::test]
async fn connect_timeout_applies_to_an_unresponsive_server() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // With a full queue, the kernel drops new connections.
    let mut queue = Vec::new();
    while let Ok(stream) = tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(address)).await {
        queue.push(stream.unwrap());
    }
    let mut settings = HttpSettings::new(format!("http://{address}").parse().unwrap());
    settings.connect_timeout = Duration::from_millis(200);
    let error = in_time(create(&maps(settings))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!(error.to_string(), format!("cannot connect to {address} within 200ms"));
}

#[tokio::test]
async fn watch_detects_a_half_open_connection() {
    let authority = Authority::new();
    let frozen = Arc::new(Notify::new());
    let freeze = Arc::clone(&frozen);
    let (port, _) = accept(authority.acceptor(&["h2"]), move |stream, _| {
        let freeze = Arc::clone(&freeze);
        async move {
            let service = service_fn(|_: http::Request<Incoming>| async {
                // A watch that has started and has no events.
                let (sender, body) = fed();
                std::mem::forget(sender);
                Ok::<_, Error>(
                    http::Response::builder().header("content-type", "application/json").body(Feed(body)).unwrap(),
                )
            });
            let builder = http2::Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            tokio::pin!(connection);
            tokio::select! {
                _ = connection.as_mut() => {}
                () = freeze.notified() => std::future::pending().await,
            }
        }
    })
    .await;
    let mut settings = settings(port, authority.trusted());
    settings.ping_interval = Duration::from_millis(200);
    settings.ping_timeout = Duration::from_secs(10);
    let mut watch = in_time(maps(settings).watch()).await.unwrap();
    // As long as pings get responses, silence is allowed.
    assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());
    frozen.notify_one();
    let error = in_time(watch.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{}", chain(&error));
}

/// A client body as a server's body.
pub(crate) struct Feed(pub(crate) Body);

impl http_body::Body for Feed {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Error>>> {
        let chunk = std::pin::pin!(self.0.chunk()).poll(context);
        chunk.map(|chunk| chunk.transpose().map(|chunk| chunk.map(http_body::Frame::data)))
    }
}

#[tokio::test]
async fn old_connection_gets_no_new_requests() {
    let authority = Authority::new();
    let server = Served::start(Some(authority.acceptor(&["h2"])), |_| json_response(200, &map_json("web"))).await;
    for (age, connections) in [(Duration::ZERO, 3), (Duration::from_secs(3600), 1)] {
        let before = server.accepted();
        let mut settings = settings(server.port(), authority.trusted());
        settings.max_connection_age = age;
        let maps = maps(settings);
        for _ in 0..3 {
            get(&maps).await.unwrap();
        }
        assert_eq!(server.accepted() - before, connections, "{age:?}");
    }
}

#[tokio::test]
async fn client_connects_to_an_ipv6_address() {
    let authority = Authority::new();
    // Not every machine supports IPv6.
    let Ok(listener) = TcpListener::bind("[::1]:0").await else { return };
    let port = listener.local_addr().unwrap().port();
    let acceptor = authority.acceptor_with(&authority.sign("::1"), &["h2"]);
    let server = Served::on(listener, Some(acceptor), |_| json_response(200, &map_json("web")));
    let mut tls = authority.trusted();
    tls.server_name = None;
    let config = Config::new(&format!("https://[::1]:{port}")).unwrap().tls(tls);
    let client = Client::builder_from_config(&config).unwrap().json_only().build();
    get(&Api::namespaced(client, "default")).await.unwrap();
    let asked = server.asked.lock().await;
    assert_eq!(asked[0].request.uri().authority().unwrap().as_str(), format!("[::1]:{port}"));
}

#[tokio::test]
async fn http2_can_be_disabled() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["h2", "http/1.1"]);
    let server = Served::start(Some(acceptor), |_| json_response(200, &map_json("web"))).await;
    for (disable, version) in [(false, http::Version::HTTP_2), (true, http::Version::HTTP_11)] {
        let config = server.config(&authority).disable_http2(disable);
        let client = Client::builder_from_config(&config).unwrap().json_only().build();
        get(&Api::namespaced(client, "default")).await.unwrap();
        assert_eq!(server.asked.lock().await.pop().unwrap().request.version(), version);
    }
}

#[tokio::test]
async fn http1_requests_connect_in_parallel() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["http/1.1"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let maps = maps(settings(listener.local_addr().unwrap().port(), authority.trusted()));
    let requests: Vec<_> = (0..10)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move { get(&maps).await })
        })
        .collect();
    let (tcp, _) = listener.accept().await.unwrap();
    let mut streams = vec![acceptor.accept(tcp).await.unwrap()];
    // No handshake continues before all connections are open.
    let mut waiting = Vec::new();
    for _ in 1..10 {
        waiting.push(in_time(listener.accept()).await.unwrap().0);
    }
    for tcp in waiting {
        streams.push(acceptor.accept(tcp).await.unwrap());
    }
    for stream in streams {
        tokio::spawn(async {
            let service =
                service_fn(|_: http::Request<Incoming>| async { Ok::<_, Error>(json_response(200, &map_json("web"))) });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
    for request in requests {
        in_time(request).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn response_that_is_reset_half_way_is_an_error() {
    let authority = Authority::new();
    let (port, _) = accept(authority.acceptor(&["h2"]), |stream, _| async {
        let service = service_fn(|_: http::Request<Incoming>| async {
            let (sender, body) = fed();
            sender.send(Ok(Bytes::from_static(b"{\"kind\": \"Con"))).unwrap();
            sender.send(Err("disk failure".into())).unwrap();
            let response = http::Response::builder().status(201).header("content-type", "application/json");
            Ok::<_, Error>(response.body(Feed(body)).unwrap())
        });
        let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    })
    .await;
    let error = in_time(create(&maps(settings(port, authority.trusted())))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{}", chain(&error));
}

#[tokio::test]
async fn layer_sees_every_attempt_and_may_respond_itself() {
    use klient::client::http::{SendFuture, Transport};
    struct Named {
        inner: Arc<dyn Transport>,
        name: &'static str,
        seen: Arc<std::sync::Mutex<Vec<String>>>,
    }
    impl Transport for Named {
        fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
            let authorization = request.headers().get("authorization").is_some();
            self.seen.lock().unwrap().push(format!("{} {authorization}", self.name));
            self.inner.send(request)
        }
    }
    let server = Served::start(None, |asked| match asked.connection {
        0 => http::Response::builder().status(503).header("retry-after", "0").body(Full::default()).unwrap(),
        _ => json_response(200, &map_json("web")),
    })
    .await;
    let seen = Arc::<std::sync::Mutex<Vec<String>>>::default();
    let mut settings = HttpSettings::new(format!("http://127.0.0.1:{}", server.port()).parse().unwrap());
    settings.max_connection_age = Duration::ZERO;
    let named = |name| {
        let seen = Arc::clone(&seen);
        move |inner| Named { inner, name, seen }
    };
    let client = Client::builder(HttpTransport::new(settings).unwrap())
        .auth(klient::client::auth::StaticAuth::bearer("one").unwrap())
        .json_only()
        .layer(named("inner"))
        .layer(named("outer"))
        .build();
    get(&Api::namespaced(client, "default")).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["outer true", "inner true", "outer true", "inner true"]);
}

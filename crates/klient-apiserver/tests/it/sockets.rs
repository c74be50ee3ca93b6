//! The server on a socket.

use std::{os::unix::fs::PermissionsExt, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use klient::{
    Api, Client, ErrorKind, WatchEvent,
    client::config::{Config, Kubeconfig, Overrides},
    object::ResourceVersion,
};
use klient_apiserver::{ApiServer, Fault, Listening};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

fn config(listening: &Listening, token: Option<&str>) -> Config {
    let kubeconfig = Kubeconfig::parse(listening.kubeconfig(token)).unwrap();
    Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap().no_proxy()
}

fn client(config: &Config) -> Client {
    Client::from_config(config).unwrap()
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn map(name: &str, bytes: usize) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "v".repeat(bytes)}})).unwrap()
}

async fn namespaces(client: &Client) -> Result<usize, klient::Error> {
    let namespaces: Api<Namespace> = Api::cluster(client.clone());
    Ok(namespaces.list().await?.items.len())
}

/// Sends bytes, and returns what the server sends until it closes the connection.
async fn say(listening: &Listening, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(listening.address()).await.unwrap();
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn objects_and_watches_work_over_every_transport() {
    let server = ApiServer::start().await.unwrap();
    let (plain, tls) = (server.listen(0).http().anonymous().await.unwrap(), server.listen(0).await.unwrap());
    assert!(plain.url().starts_with("http://127.0.0.1:") && tls.url().starts_with("https://127.0.0.1:"));
    for (listening, no_http2) in [(&plain, false), (&tls, false), (&tls, true)] {
        let client = client(&config(listening, None).disable_http2(no_http2));
        let maps = maps(&client);
        let version = ResourceVersion::from(server.revision().to_string());
        let mut watch = maps.watch().after(version).await.unwrap();
        let made = maps.create(&map("a", 10)).await.unwrap();
        assert_eq!(maps.get("a").await.unwrap(), made);
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(object))) if object == made));
        maps.delete("a").await.unwrap();
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    }
}

#[tokio::test]
async fn certificate_or_known_token_authenticates() {
    let server = ApiServer::builder().token("s3cret", "jane").start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    for no_http2 in [false, true] {
        for config in [config(&listening, None), config(&listening, Some("s3cret"))] {
            assert_eq!(namespaces(&client(&config.disable_http2(no_http2))).await.unwrap(), 4);
        }
        for config in [config(&listening, None).anonymous(), config(&listening, Some("wrong"))] {
            let error = namespaces(&client(&config.disable_http2(no_http2))).await.unwrap_err();
            assert!(error.is_unauthorized(), "{error}");
            assert_eq!(error.status().unwrap().message, "Unauthorized");
        }
    }
}

#[tokio::test]
async fn tokens_authenticate_without_tls() {
    let server = ApiServer::builder().token("s3cret", "jane").start().await.unwrap();
    let listening = server.listen(0).http().await.unwrap();
    // As in client-go, a kubeconfig's token is not sent without TLS.
    assert!(namespaces(&client(&config(&listening, Some("s3cret")))).await.unwrap_err().is_unauthorized());
    for (token, code) in [("s3cret", "200"), (listening.token(), "200"), ("wrong", "401"), ("", "401")] {
        let request = format!(
            "GET /api HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        let answer = say(&listening, request.as_bytes()).await;
        assert!(answer.starts_with(format!("HTTP/1.1 {code}").as_bytes()), "{}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test]
async fn sockets_require_generated_credentials_by_default() {
    let server = ApiServer::start().await.unwrap();
    let (tls, plain) = (server.listen(0).await.unwrap(), server.listen(0).http().await.unwrap());
    assert_eq!(namespaces(&client(&config(&tls, None))).await.unwrap(), 4);
    assert_eq!(namespaces(&client(&config(&tls, Some(tls.token())))).await.unwrap(), 4);
    for refused in [config(&tls, None).anonymous(), config(&tls, Some(plain.token())), config(&plain, None)] {
        let error = namespaces(&client(&refused)).await.unwrap_err();
        assert!(error.is_unauthorized(), "{error}");
    }
    assert!(plain.kubeconfig(None).contains(plain.token()));
    let open = server.listen(0).anonymous().await.unwrap();
    assert_eq!(namespaces(&client(&config(&open, None).anonymous())).await.unwrap(), 4);
}

#[tokio::test]
async fn plain_http_rejects_hosts_of_other_machines() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).http().anonymous().await.unwrap();
    for (host, code) in
        [("127.0.0.1", "200"), ("localhost:8080", "200"), ("[::1]:80", "200"), ("evil.example.com", "403"), ("", "403")]
    {
        let request = format!("GET /api HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let answer = say(&listening, request.as_bytes()).await;
        assert!(answer.starts_with(format!("HTTP/1.1 {code}").as_bytes()), "{host}");
    }
}

#[tokio::test]
async fn requests_are_counted_after_authentication_and_bounded() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let before = server.requests();
    assert!(namespaces(&client(&config(&listening, None).anonymous())).await.is_err());
    assert_eq!(server.requests(), before, "a request without credentials is not counted");
    for number in 0..10_100 {
        let request = http::Request::get(format!("/nothing/{number}")).body(bytes::Bytes::new()).unwrap();
        server.handle(request).await;
    }
    let counts = server.requests();
    assert!(counts.len() <= 10_001, "{}", counts.len());
    assert!(counts[&("GET".to_owned(), "other".to_owned())] >= 100);
}

#[tokio::test(start_paused = true)]
async fn body_that_never_arrives_is_answered_with_408() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).http().anonymous().await.unwrap();
    let mut stream = TcpStream::connect(listening.address()).await.unwrap();
    let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut answer, began) = ([0; 12], tokio::time::Instant::now());
    // The paused clock runs ahead while both sides wait.
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).http().anonymous().await.unwrap();
    let mut held = Vec::new();
    for _ in 0..1000 {
        held.push(TcpStream::connect(listening.address()).await.unwrap());
    }
    let mut further = TcpStream::connect(listening.address()).await.unwrap();
    further.write_all(b"GET /api HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    let early = tokio::time::timeout(Duration::from_millis(300), further.read_exact(&mut answer)).await;
    assert!(early.is_err(), "more connections are served than the limit");
    drop(held.pop());
    further.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn certificates_of_other_authorities_are_refused() {
    let server = ApiServer::start().await.unwrap();
    let (one, other) = (server.listen(0).await.unwrap(), server.listen(0).await.unwrap());
    let (mine, foreign) = (config(&one, None), config(&other, None));
    let error = namespaces(&client(&mine.clone().tls(foreign.tls.clone()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
    // The right authority with a certificate that another one signed.
    let mut mixed = mine.clone();
    mixed.tls.client_certificate.clone_from(&foreign.tls.client_certificate);
    namespaces(&client(&mixed)).await.unwrap_err();
    assert_eq!(namespaces(&client(&mine)).await.unwrap(), 4);
}

#[tokio::test]
async fn too_large_body_is_refused_and_connection_stays_open() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    for no_http2 in [false, true] {
        let client = client(&config(&listening, None).disable_http2(no_http2));
        let error = maps(&client).create(&map("a", 6 << 20)).await.unwrap_err();
        assert!(error.status().is_some_and(klient::status::Status::is_request_entity_too_large), "{error}");
        assert_eq!(namespaces(&client).await.unwrap(), 4);
    }
}

#[tokio::test]
async fn large_list_is_compressed_if_accepted() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).http().anonymous().await.unwrap();
    let config = config(&listening, None);
    let client = client(&config);
    for name in ["a", "b"] {
        maps(&client).create(&map(name, 200_000)).await.unwrap();
    }
    let list = maps(&client).list().await.unwrap();
    assert_eq!(list.items[1].data.as_ref().unwrap()["k"].len(), 200_000);
    let ask = async |path: &str, encodings: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\naccept-encoding: {encodings}\r\n\
             connection: close\r\n\r\n"
        );
        let answer = say(&listening, request.as_bytes()).await;
        (String::from_utf8_lossy(&answer).contains("content-encoding: gzip"), answer.len())
    };
    let path = "/api/v1/namespaces/default/configmaps";
    let (compressed, length) = ask(path, "deflate, gzip").await;
    assert!(compressed && length < 50_000, "{length}");
    for (path, encodings) in [(path, "identity"), (path, "gzip;q=0"), ("/api/v1/namespaces/default", "gzip")] {
        assert!(!ask(path, encodings).await.0, "{path} {encodings}");
    }
}

#[tokio::test]
async fn many_connections_are_served_concurrently() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).http().anonymous().await.unwrap();
    let config = config(&listening, None);
    let version = ResourceVersion::from(server.revision().to_string());
    let tasks: Vec<_> = (0..60)
        .map(|n| {
            let (client, version) = (client(&config), version.clone());
            tokio::spawn(async move {
                let maps = maps(&client);
                let mut watch = maps.watch().after(version).await.unwrap();
                maps.create(&map(&format!("m{n}"), 10)).await.unwrap();
                // Every client sees the objects of all clients.
                for _ in 0..60 {
                    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn invalid_http_is_refused_and_others_are_served() {
    let server = ApiServer::start().await.unwrap();
    let (plain, tls) = (server.listen(0).http().anonymous().await.unwrap(), server.listen(0).await.unwrap());
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(2 << 20));
    for garbage in [
        b"\r\n\r\nhello?\r\n\r\n".as_slice(),
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -4\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        long.as_bytes(),
    ] {
        let answer = say(&plain, garbage).await;
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
        say(&tls, garbage).await;
    }
    for listening in [&plain, &tls] {
        assert_eq!(namespaces(&client(&config(listening, None))).await.unwrap(), 4);
    }
}

#[tokio::test]
async fn dropping_listener_closes_connections_and_port() {
    let server = ApiServer::start().await.unwrap();
    for tls in [false, true] {
        let listening = if tls { server.listen(0).await } else { server.listen(0).http().anonymous().await }.unwrap();
        let client = client(&config(&listening, None));
        let mut watch = maps(&client).watch().await.unwrap();
        let port = listening.address().port();
        drop(listening);
        let end = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
        assert!(end.is_none_or(|event| event.is_err()));
        server.listen(port).await.unwrap();
    }
}

#[tokio::test]
async fn listen_fails_if_port_is_taken() {
    use std::error::Error as _;
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).http().anonymous().await.unwrap();
    let error = server.listen(listening.address().port()).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:"), "{error}");
    assert!(error.source().unwrap().to_string().contains("in use"));
}

#[tokio::test]
async fn faults_break_real_connections() {
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    for no_http2 in [false, true] {
        let config = config(&listening, None).disable_http2(no_http2);
        let maps = maps(&client(&config));
        server.inject(Fault::cut_after(10).times(1));
        let name = format!("a-{no_http2}");
        let error = maps.create(&map(&name, 10)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
        maps.get(&name).await.unwrap();
        server.inject(Fault::silence());
        let hasty = self::maps(&client(&config.request_timeout(Duration::from_secs(1))));
        assert!(hasty.list().await.unwrap_err().is_timeout());
        server.clear_faults();
    }
}

#[tokio::test]
async fn kubeconfig_is_readable_by_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, "x".repeat(100_000)).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    for path in [&path, &folder.path().join("new")] {
        assert_eq!(listening.write_kubeconfig(path, None).unwrap(), *path);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let kubeconfig = Kubeconfig::from_file(path).unwrap();
        let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap().no_proxy();
        assert_eq!(namespaces(&client(&config)).await.unwrap(), 4);
    }
    let error = listening.write_kubeconfig(folder.path().join("no/such"), None).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the kubeconfig /"), "{error}");
}

/// Longer than any step takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

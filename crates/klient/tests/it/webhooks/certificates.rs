//! The webhook server over TLS: certificates, their renewal, and repairs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::ValidatingWebhookConfiguration,
        core::v1::{ConfigMap, Secret},
    },
};
use klient::{
    Api, Client, Patch,
    webhook::{Certificates, Verdict, WebhookServer, Webhooks, validate},
};
use klient_apiserver::ApiServer;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

use super::map;

const SECRET: &str = "shop-certificates";

/// A replica of the program.
struct Replica {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), klient::Error>>,
}

impl Replica {
    /// Starts a replica, and makes the server call it. Returns when it is ready.
    async fn start(server: &ApiServer, client: &Client, lifetime: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let certificates = Certificates::managed("default", SECRET).lifetime(lifetime).settle(SETTLE);
        let replica = WebhookServer::new(client.clone(), hooks()).listener(listener).certificates(certificates);
        let (ready, (stop, stopped)) = (replica.readiness(), oneshot::channel());
        let task = tokio::spawn(replica.run_until(async { drop(stopped.await) }));
        eventually(async || ready().is_ok()).await;
        server.webhook_address("shop/webhooks", address);
        Self { stop, task }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
    }
}

/// A replica that is later than this to serve a new certificate fails requests, so that it is long for a busy machine. Times are stored in
/// whole seconds.
const SETTLE: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(24 * 3600);

fn hooks() -> Webhooks {
    let allow = async |_: klient::webhook::Request<ConfigMap>| Verdict::allow().warn("seen");
    super::shop().hook(validate::<ConfigMap>(allow))
}

async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    let outcome = tokio::time::timeout(Duration::from_secs(60), async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    outcome.await.expect("the condition holds at last");
}

async fn bundle(client: &Client) -> String {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::cluster(client.clone());
    let hooks = configurations.get("shop").await.unwrap().webhooks.unwrap();
    String::from_utf8(hooks[0].client_config.ca_bundle.clone().unwrap().0).unwrap()
}

async fn create(maps: &Api<ConfigMap>, number: usize) {
    let made = maps.create(&map(&format!("m{number}"), json!({}))).dry_run().await;
    made.unwrap_or_else(|error| panic!("{:?}", error.status()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_during_a_renewal() {
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service());
    let first = Replica::start(&server, &client, LONG).await;
    let before = bundle(&client).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let count = Arc::new(AtomicUsize::new(0));
    let load = tokio::spawn({
        let (maps, count) = (maps.clone(), Arc::clone(&count));
        async move {
            loop {
                create(&maps, count.fetch_add(1, Ordering::Relaxed)).await;
                tokio::task::yield_now().await;
            }
        }
    });
    // A program that wants certificates to live longer renews them at once.
    let second = Replica::start(&server, &client, LONG * 10).await;
    eventually(async || {
        let now = bundle(&client).await;
        now != before && now.matches("BEGIN CERTIFICATE").count() == 1
    })
    .await;
    let after_rotation = count.load(Ordering::Relaxed);
    eventually(async || count.load(Ordering::Relaxed) > after_rotation + 50).await;
    first.stop().await;
    let after_stop = count.load(Ordering::Relaxed);
    eventually(async || count.load(Ordering::Relaxed) > after_stop + 50).await;
    assert!(!load.is_finished(), "a request failed");
    load.abort();
    second.stop().await;
}

#[tokio::test]
async fn deleted_or_spoilt_secret_is_repaired() {
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service());
    let replica = Replica::start(&server, &client, LONG).await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let (maps, original) = (Api::namespaced(client.clone(), "default"), bundle(&client).await);
    let is_whole = async || {
        let data = secrets.get_opt(SECRET).await.unwrap().and_then(|secret| secret.data).unwrap_or_default();
        let text = |name: &str| data.get(name).map(|ByteString(bytes)| String::from_utf8_lossy(bytes).into_owned());
        text("ca.crt").as_deref() == Some(&*original) && text("tls.key").is_some_and(|key| key.contains("PRIVATE"))
    };
    secrets.delete(SECRET).await.unwrap();
    eventually(is_whole).await;
    create(&maps, 1).await;
    for spoilt in [json!({"data": {"tls.key": "anVuaw=="}}), json!({"data": {"ca.crt": null}}), json!({"data": null})] {
        // The type of the Secret demands some keys, so that the server may refuse to spoil it that far.
        if secrets.patch(SECRET, Patch::merge(spoilt)).await.is_ok() {
            eventually(is_whole).await;
        }
        create(&maps, 2).await;
    }
    replica.stop().await;
}

#[tokio::test]
async fn expired_certificate_is_replaced() {
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service());
    // No process has the certificate in memory, and it ends within the second.
    let short = Replica::start(&server, &client, Duration::from_secs(2)).await;
    let before = bundle(&client).await;
    short.task.abort();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let replica = Replica::start(&server, &client, LONG).await;
    eventually(async || bundle(&client).await != before).await;
    create(&Api::namespaced(client.clone(), "default"), 1).await;
    replica.stop().await;
}

#[tokio::test]
async fn certificate_of_files_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = || {
        let made = rcgen::generate_simple_self_signed(vec!["webhooks.shop.svc".to_owned()]).unwrap();
        std::fs::write(path("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(path("tls.key"), made.signing_key.serialize_pem()).unwrap();
        made.cert.pem()
    };
    let first = write();
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    server.webhook_address("shop/webhooks", listener.local_addr().unwrap());
    let certificates = Certificates::files(path("tls.crt"), path("tls.key")).authority(path("tls.crt"));
    let replica = WebhookServer::new(client.clone(), hooks()).listener(listener).certificates(certificates);
    let ready = replica.readiness();
    let task = tokio::spawn(replica.run_until(std::future::pending()));
    eventually(async || ready().is_ok()).await;
    assert_eq!(bundle(&client).await, first);
    create(&Api::namespaced(client.clone(), "default"), 1).await;
    let second = write();
    eventually(async || bundle(&client).await == second).await;
    create(&Api::namespaced(client.clone(), "default"), 2).await;
    task.abort();
}

/// Sends a request on a connection of HTTP/1.1, and returns the head of the response.
async fn head(stream: &mut tokio_rustls::client::TlsStream<TcpStream>) -> String {
    stream.write_all(b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    head
}

#[tokio::test]
async fn stopping_server_still_answers_its_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(path("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(path("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));

    let api = ApiServer::start().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = WebhookServer::new(Client::from_service(api.service()), hooks())
        .listener(listener)
        .without_registration()
        .linger(Duration::from_secs(3600))
        .certificates(Certificates::files(path("tls.crt"), path("tls.key")));
    let (ready, (stop, stopped)) = (server.readiness(), oneshot::channel());
    let task = tokio::spawn(server.run_until(async { drop(stopped.await) }));
    eventually(async || ready().is_ok()).await;
    let connect = async || {
        let stream = TcpStream::connect(address).await.unwrap();
        connector.connect("localhost".try_into().unwrap(), stream).await.unwrap()
    };
    let (mut open, mut idle) = (connect().await, connect().await);
    assert!(!head(&mut open).await.contains("connection: close"));
    assert!(!head(&mut idle).await.contains("connection: close"));
    stop.send(()).unwrap();
    // Requests are answered as before, until the server has seen the signal.
    eventually(async || head(&mut connect().await).await.contains("connection: close")).await;
    assert!(head(&mut open).await.contains("connection: close"));
    assert_eq!(open.read(&mut [0]).await.unwrap_or(0), 0, "the connection ends with its last response");
    assert!(head(&mut idle).await.contains("connection: close"));
    task.abort();
}

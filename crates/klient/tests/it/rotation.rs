//! Watches while certificates are replaced.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Error, SharedInformer,
    client::{
        config::{Pem, Tls, Trust},
        http::Body,
    },
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::{
    peers::{Feed, accept_as, get, in_time, maps, settings},
    support::scripted::{fed, map_json},
    support::served::Authority,
};

/// A server whose watches send the events that they are fed, and whose other responses are normal.
async fn watched(
    acceptor: impl Fn() -> TlsAcceptor + Send + 'static,
) -> (u16, mpsc::UnboundedReceiver<(Vec<u8>, Feeder, String)>, Shown) {
    let (sender, watches) = mpsc::unbounded_channel();
    let shown = Shown::default();
    let seen = Arc::clone(&shown);
    let (port, _) = accept_as(acceptor, move |stream, _| {
        let (sender, seen) = (sender.clone(), Arc::clone(&seen));
        async move {
            let certificate = stream.get_ref().1.peer_certificates().map(|shown| shown[0].to_vec()).unwrap_or_default();
            let service = service_fn(move |request: http::Request<Incoming>| {
                let (sender, seen, certificate) = (sender.clone(), Arc::clone(&seen), certificate.clone());
                async move {
                    let query = request.uri().query().unwrap_or_default().to_owned();
                    let body = if query.contains("watch=") {
                        let (feeder, body) = fed();
                        sender.send((certificate, feeder, query)).unwrap();
                        body
                    } else {
                        seen.lock().unwrap().push(certificate);
                        let metadata = json!({"resourceVersion": "5"});
                        let list =
                            json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": []});
                        let is_list = request.uri().path().ends_with("/configmaps");
                        Body::from_bytes(if is_list { list } else { map_json("web") }.to_string())
                    };
                    let response = http::Response::builder().header("content-type", "application/json");
                    Ok::<_, Error>(response.body(Feed(body)).unwrap())
                }
            });
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            } else {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            }
        }
    })
    .await;
    (port, watches, shown)
}

/// Returns the watch event of a new object with this version.
fn added(version: &str) -> Bytes {
    let mut object = map_json("web");
    object["metadata"]["resourceVersion"] = version.into();
    format!("{}\n", json!({"type": "ADDED", "object": object})).into()
}

type Feeder = mpsc::UnboundedSender<Result<Bytes, klient::BoxError>>;
type Shown = Arc<std::sync::Mutex<Vec<Vec<u8>>>>;

/// A client certificate in files that can be replaced, and a server that accepts it.
struct Rotated {
    authority: Authority,
    folder: tempfile::TempDir,
}

impl Rotated {
    fn new() -> Self {
        Self { authority: Authority::new(), folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a certificate for a client of that name. The length must differ each time, in case the file system's clock is
    /// coarse.
    fn put(&self, name: &str) -> Vec<u8> {
        let pair = self.authority.sign(name);
        std::fs::write(self.path("tls.key"), &pair.key).unwrap();
        std::fs::write(self.path("tls.crt"), &pair.certificate).unwrap();
        pair.der
    }

    fn maps(&self, port: u16) -> Api<ConfigMap> {
        let (cert, key) = (self.path("tls.crt"), self.path("tls.key"));
        let tls = self.authority.trusted().client_certificate(Pem::File(cert), Pem::File(key));
        let mut settings = settings(port, tls);
        settings.file_check = Duration::ZERO;
        maps(settings)
    }
}

#[tokio::test]
async fn watch_ends_after_the_certificate_was_replaced() {
    let rotated = Rotated::new();
    let first = rotated.put("first");
    let acceptor = rotated.authority.acceptor(&["h2"]);
    let (port, mut watches, shown) = watched(move || acceptor.clone()).await;
    let maps = rotated.maps(port);
    let mut watch = in_time(maps.watch()).await.unwrap();
    let (shown_by_watch, _feeder, _) = watches.recv().await.unwrap();
    assert_eq!(shown_by_watch, first);
    get(&maps).await.unwrap();
    let second = rotated.put("second-with-a-longer-name");
    assert!(in_time(watch.next()).await.is_none(), "an event was invented");
    get(&maps).await.unwrap();
    assert_eq!(*shown.lock().unwrap(), [first, second.clone()]);
    in_time(maps.watch()).await.unwrap();
    assert_eq!(watches.recv().await.unwrap().0, second);
}

#[tokio::test]
async fn retry_watch_moves_after_rotation_without_losing_an_event() {
    for protocol in ["h2", "http/1.1"] {
        let rotated = Rotated::new();
        let first = rotated.put("first");
        let acceptor = rotated.authority.acceptor(&[protocol]);
        let (port, mut watches, shown) = watched(move || acceptor.clone()).await;
        let maps = rotated.maps(port);
        let mut watch = maps.watch().after("5").retrying().unwrap();
        let mut next =
            async || in_time(watch.next()).await.unwrap().unwrap().object().unwrap().metadata.resource_version.clone();

        let feed = async {
            let (certificate, feeder, _) = watches.recv().await.unwrap();
            assert_eq!(certificate, first);
            let event = added("6");
            feeder.send(Ok(event.slice(..30))).unwrap();
            let second = rotated.put("second-with-a-longer-name");
            // A request with the new certificate shows that the client has noticed the change.
            while shown.lock().unwrap().last() != Some(&second) {
                get(&maps).await.unwrap();
            }
            feeder.send(Ok(event.slice(30..))).unwrap();
            (feeder, second)
        };
        let (version, (_feeder, second)) = tokio::join!(next(), feed);
        assert_eq!(version.as_deref(), Some("6"), "the event that had begun");

        let feed = async {
            let (certificate, feeder, query) = in_time(watches.recv()).await.unwrap();
            assert_eq!(certificate, second);
            assert!(query.contains("resourceVersion=6"), "{query}");
            feeder.send(Ok(added("7"))).unwrap();
            feeder
        };
        let (version, _feeder) = tokio::join!(next(), feed);
        assert_eq!(version.as_deref(), Some("7"));
    }
}

#[tokio::test]
async fn informer_resumes_after_rotation_without_a_list() {
    let rotated = Rotated::new();
    rotated.put("first");
    let acceptor = rotated.authority.acceptor(&["h2"]);
    let (port, mut watches, lists) = watched(move || acceptor.clone()).await;
    let informer = SharedInformer::new(rotated.maps(port));
    informer.start();
    in_time(informer.wait_for_sync()).await.unwrap();
    let _feeder = in_time(watches.recv()).await.unwrap();

    let second = rotated.put("second-with-a-longer-name");
    let (certificate, feeder, query) = in_time(watches.recv()).await.unwrap();
    assert_eq!(certificate, second);
    assert!(query.contains("resourceVersion=5"), "{query}");
    feeder.send(Ok(added("7"))).unwrap();
    in_time(informer.wait_until_seen(&"7".into())).await.unwrap();
    assert_eq!((informer.lister().list().len(), lists.lock().unwrap().len()), (1, 1));
}

#[tokio::test]
async fn watch_ends_after_the_authority_was_replaced() {
    let (old, new) = (Authority::new(), Authority::new());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), old.pem()).unwrap();
    let server = Arc::new(std::sync::Mutex::new(old.acceptor(&["h2"])));
    let now = Arc::clone(&server);
    let (port, mut watches, shown) = watched(move || now.lock().unwrap().clone()).await;
    let tls = Tls::default().trust(Trust::Authority(Pem::File(file.path().to_owned()))).server_name("localhost");
    let mut settings = settings(port, tls);
    settings.file_check = Duration::ZERO;
    let maps = maps(settings);
    let mut watch = in_time(maps.watch()).await.unwrap();
    let _feeder = watches.recv().await.unwrap();
    get(&maps).await.unwrap();

    *server.lock().unwrap() = new.acceptor(&["h2"]);
    // One line longer, in case the file system's clock is coarse.
    std::fs::write(file.path(), format!("# the new one\n{}", new.pem())).unwrap();
    assert!(in_time(watch.next()).await.is_none());
    get(&maps).await.unwrap();
    assert_eq!(shown.lock().unwrap().len(), 2);
    in_time(maps.watch()).await.unwrap();
}

//! Upgraded connections: proxies, layers, credentials, and transports that have none.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, header::UPGRADE};
use k8s_openapi::api::core::v1::Pod;
use klient::{
    Api, Client,
    client::{
        config::{Config, Impersonation},
        http::{SendFuture, Transport},
        streams::StreamProtocol,
    },
};
use klient_apiserver::{
    ApiServer,
    pod_streams::{ExecCall, PodStreams},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{World, pod};
use crate::proxies::{Behavior, Proxy};

async fn hello(mut call: ExecCall) -> Result<i32, Box<dyn std::error::Error + Send + Sync>> {
    call.stdout.as_mut().unwrap().write_all(b"hello").await?;
    Ok(0)
}

fn streams() -> PodStreams {
    PodStreams::new().exec(hello).port_forward(|mut call| async move {
        call.stream.write_all(b"port").await?;
        call.stream.shutdown().await?;
        Ok(())
    })
}

/// Runs a command and reads from a port, in both protocols.
async fn use_streams(pods: &Api<Pod>) {
    for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
        let output = pods.exec("web", ["hello"]).protocol(protocol).await.unwrap().output().await.unwrap();
        assert_eq!(output.stdout, b"hello");
        let forward = pods.port_forward("web", 1).protocol(protocol).await.unwrap();
        let mut text = String::new();
        forward.connect().await.unwrap().read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "port");
    }
}

fn pods_of(config: &Config) -> Api<Pod> {
    Api::namespaced(Client::from_config(config).unwrap(), "default")
}

#[tokio::test]
async fn streams_go_through_tunnels_of_proxies() {
    let world = World::new(streams()).await;
    for (behavior, scheme) in [(Behavior::Http, "http"), (Behavior::Socks(None), "socks5")] {
        let proxy = Proxy::start(behavior, None).await;
        let config = world.config().proxy(format!("{scheme}://127.0.0.1:{}", proxy.port).parse().unwrap());
        use_streams(&pods_of(&config)).await;
        assert_eq!(proxy.seen().await.len(), 4);
    }
}

#[tokio::test]
async fn plain_upgrade_needs_a_tunnel_of_the_proxy() {
    let server = ApiServer::builder().pod_streams(streams()).start().await.unwrap();
    let listening = server.listen(0).http().anonymous().await.unwrap();
    let proxy = Proxy::start(Behavior::Http, None).await;
    let config = Config::new(&listening.url()).unwrap();
    let config = config.proxy(format!("http://127.0.0.1:{}", proxy.port).parse().unwrap());
    let pods = pods_of(&config);
    // Ordinary requests are forwarded instead.
    pods.create(&pod("web", &["app"])).await.unwrap();
    use_streams(&pods).await;
    let seen = proxy.seen().await;
    assert!(seen[0].starts_with("POST http://"), "{}", seen[0]);
    assert!(seen[1..].iter().all(|head| head.starts_with("CONNECT ")), "{seen:?}");
}

/// Records the headers of requests.
struct Recorded {
    inner: Arc<dyn Transport>,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Transport for Recorded {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        self.seen.lock().unwrap().push(request.headers().clone());
        self.inner.send(request)
    }
}

#[tokio::test]
async fn layers_see_upgrades_with_all_headers() {
    let world = World::new(streams()).await;
    let seen = Arc::<Mutex<Vec<HeaderMap>>>::default();
    let config = world.config().impersonation(Impersonation::new("jane"));
    let builder = Client::builder_from_config(&config).unwrap();
    let client = builder.layer(|inner| Recorded { inner, seen: Arc::clone(&seen) }).build();
    use_streams(&Api::namespaced(client, "default")).await;
    let seen = seen.lock().unwrap();
    let upgrades: Vec<_> = seen.iter().map(|headers| headers[UPGRADE].to_str().unwrap()).collect();
    assert_eq!(upgrades, ["websocket", "websocket", "SPDY/3.1", "SPDY/3.1"]);
    for headers in seen.iter() {
        assert_eq!(headers["impersonate-user"], "jane");
        assert!(headers["user-agent"].to_str().unwrap().contains(" klient/"), "{headers:?}");
    }
}

#[tokio::test]
async fn server_that_does_not_switch_is_an_error() {
    let client = Client::from_service(|_request: http::Request<Bytes>| async {
        http::Response::new(http_body_util::Full::new(Bytes::from_static(b"{}")))
    });
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let error = pods.exec("web", ["true"]).await.unwrap_err();
    assert!(format!("{error:#}").contains("200 OK instead of switching protocols"), "{error:#}");
}

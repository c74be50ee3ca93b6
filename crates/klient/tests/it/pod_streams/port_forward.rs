//! port-forward: connections, listeners, targets, reconnects and failures.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
};
use klient::{
    Api, Client, ErrorKind, Patch,
    client::streams::{PortForward, StreamProtocol},
};
use klient_apiserver::{
    ApiServer,
    pod_streams::{PodStreams, PortForwardCall},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{World, pod};

/// Serves a few ports: 7 echoes, 80 is an HTTP server, 19 sends for ever, 99 tells the pod's name, and others fail.
async fn ports(call: PortForwardCall) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut stream = call.stream;
    match call.port {
        7 => {
            let (mut reader, mut writer) = stream.into_split();
            tokio::io::copy(&mut reader, &mut writer).await?;
            writer.shutdown().await?;
            Ok(())
        }
        19 => loop {
            stream.write_all(&[b'x'; 8192]).await?;
        },
        80 => {
            let service = hyper::service::service_fn(|request: http::Request<hyper::body::Incoming>| async move {
                let text = format!("you requested {}", request.uri().path());
                Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from(text))))
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            Ok(connection.await?)
        }
        99 => {
            stream.write_all(call.pod.as_bytes()).await?;
            stream.shutdown().await?;
            // The client closes its side as well.
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await?;
            Ok(())
        }
        port => Err(format!("nothing listens on port {port}").into()),
    }
}

async fn world() -> World {
    World::new(PodStreams::new().port_forward(ports)).await
}

/// Returns every way to reach the server.
fn ways(world: &World) -> Vec<(Api<Pod>, StreamProtocol)> {
    vec![
        (world.pods(), StreamProtocol::WebSocket),
        (world.pods_in_process(), StreamProtocol::WebSocket),
        (world.pods(), StreamProtocol::Spdy),
        (world.pods_in_process(), StreamProtocol::Spdy),
    ]
}

/// Sends a text, and returns what is sent back until the end.
async fn echo(forward: &PortForward, text: &str) -> String {
    let mut connection = forward.connect().await.unwrap();
    connection.write_all(text.as_bytes()).await.unwrap();
    connection.shutdown().await.unwrap();
    let mut back = String::new();
    connection.read_to_string(&mut back).await.unwrap();
    back
}

#[tokio::test]
async fn connections_share_a_session() {
    let world = world().await;
    for (pods, protocol) in ways(&world) {
        let forward = pods.port_forward("web", 7).protocol(protocol).await.unwrap();
        for number in 0..10 {
            let text = format!("hello {number}");
            assert_eq!(echo(&forward, &text).await, text);
        }
        let statistics = forward.statistics();
        assert_eq!((statistics.sessions, statistics.connections, statistics.active), (1, 10, 0));
        assert_eq!((statistics.bytes_sent, statistics.bytes_received, statistics.failed), (70, 70, 0));
        assert_eq!(forward.pod().await.as_deref(), Some("web"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connections_are_open_at_a_time() {
    let world = world().await;
    for (pods, protocol) in [(world.pods(), StreamProtocol::WebSocket), (world.pods(), StreamProtocol::Spdy)] {
        let forward = pods.port_forward("web", 7).protocol(protocol).await.unwrap();
        let mut connections = Vec::new();
        for _ in 0..1000 {
            connections.push(forward.connect().await.unwrap());
        }
        assert_eq!(forward.statistics().active, 1000);
        let mut tasks = tokio::task::JoinSet::new();
        for (number, mut connection) in connections.into_iter().enumerate() {
            tasks.spawn(async move {
                let sent = vec![number as u8; 10_000];
                connection.write_all(&sent).await.unwrap();
                connection.shutdown().await.unwrap();
                let mut back = Vec::new();
                connection.read_to_end(&mut back).await.unwrap();
                assert_eq!(back, sent);
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        let statistics = forward.statistics();
        assert_eq!((statistics.sessions, statistics.active, statistics.bytes_received), (1, 0, 10_000_000));
    }
}

#[tokio::test]
async fn failed_connection_leaves_the_others_alone() {
    let world = world().await;
    for (pods, protocol) in ways(&world) {
        let forward = pods.port_forward("web", 7).protocol(protocol).await.unwrap();
        let mut open = forward.connect().await.unwrap();
        let mut broken = forward.to_port(4).connect().await.unwrap();
        let error = broken.read_u8().await.unwrap_err();
        assert!(error.to_string().contains("nothing listens on port 4"), "{error}");
        open.write_all(b"alive").await.unwrap();
        let mut back = [0; 5];
        open.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"alive");
        let statistics = forward.statistics();
        assert_eq!((statistics.sessions, statistics.failed), (1, 1));
    }
}

#[tokio::test]
async fn canceled_downloads_do_not_stall_the_session() {
    let world = world().await;
    for (pods, protocol) in ways(&world) {
        let forward = pods.port_forward("web", 19).protocol(protocol).await.unwrap();
        for _ in 0..50 {
            let mut endless = forward.connect().await.unwrap();
            let mut some = vec![0; 100_000];
            endless.read_exact(&mut some).await.unwrap();
        }
        let text = tokio::time::timeout(Duration::from_secs(20), echo(&forward.to_port(7), "still here")).await;
        assert_eq!(text.unwrap(), "still here");
        assert_eq!(forward.statistics().active, 0);
    }
}

#[tokio::test]
async fn listener_forwards_sockets_and_their_half_close() {
    let world = world().await;
    for (pods, protocol) in ways(&world) {
        let forward = pods.port_forward("web", 7).protocol(protocol).await.unwrap();
        let listener = forward.listen("127.0.0.1:0").await.unwrap();
        let mut sockets = Vec::new();
        for number in 0u8..20 {
            let mut socket = TcpStream::connect(listener.local_addr()).await.unwrap();
            socket.write_all(&[number; 100]).await.unwrap();
            sockets.push(socket);
        }
        for (number, mut socket) in sockets.into_iter().enumerate() {
            socket.shutdown().await.unwrap();
            let mut back = Vec::new();
            socket.read_to_end(&mut back).await.unwrap();
            assert_eq!(back, [number as u8; 100]);
        }
        assert_eq!(listener.last_error(), None);
        let broken = forward.to_port(5).listen("127.0.0.1:0").await.unwrap();
        let mut socket = TcpStream::connect(broken.local_addr()).await.unwrap();
        // The socket is closed or reset.
        assert!(matches!(socket.read(&mut [0; 10]).await, Ok(0) | Err(_)));
        let message = broken.last_error().unwrap();
        assert!(message.contains("nothing listens on port 5"), "{message}");
        let address = listener.local_addr();
        drop(listener);
        tokio::task::yield_now().await;
        assert!(TcpStream::connect(address).await.is_err());
    }
}

#[tokio::test]
async fn forwarded_connection_carries_an_http_client() {
    let world = world().await;
    let forward = world.pods().port_forward("web", 80).await.unwrap();
    let stream = forward.connect().await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driver = tokio::spawn(connection);
    for path in ["/a", "/b"] {
        let request = http::Request::get(path).header("host", "web").body(Full::<Bytes>::default()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, format!("you requested {path}"));
    }
    drop(sender);
    driver.await.unwrap().unwrap();
}

async fn ready(pods: &Api<Pod>, name: &str) {
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.status().patch(name, Patch::merge(status)).await.unwrap();
}

#[tokio::test]
async fn service_forwards_to_a_ready_pod_and_to_the_next() {
    let world = world().await;
    let pods = world.pods();
    for name in ["a", "b", "c"] {
        let mut pod = pod(name, &["app"]);
        pod.metadata.labels = Some([("app".to_owned(), "shop".to_owned())].into());
        let ports = json!([{"name": "who", "containerPort": 99}, {"name": "none", "containerPort": 3}]);
        pod.spec.as_mut().unwrap().containers[0].ports = serde_json::from_value(ports).unwrap();
        pods.create(&pod).await.unwrap();
    }
    let services: Api<Service> = Api::namespaced(pods.client().clone(), "default");
    let service: Service = serde_json::from_value(json!({"metadata": {"name": "shop"}, "spec": {"selector": {"app": "shop"},
        "ports": [{"name": "a", "port": 8080, "targetPort": "who"}, {"name": "b", "port": 8081, "targetPort": "none"}]}}))
    .unwrap();
    services.create(&service).await.unwrap();
    let error = services.port_forward("shop", 8080).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("no running pod"), "{error}");

    ready(&pods, "b").await;
    ready(&pods, "c").await;
    let forward = services.port_forward("shop", 8080).await.unwrap();
    assert_eq!(echo(&forward, "").await, "b");
    let error = services.port_forward("shop", 9).await.unwrap_err();
    assert!(error.to_string().contains("no port 9"), "{error}");

    // The pod fails a connection, so that the next one goes to another pod.
    let mut broken = forward.to_port(8081).connect().await.unwrap();
    assert!(broken.read_u8().await.is_err());
    assert_eq!(echo(&forward, "").await, "c");
    assert_eq!(forward.statistics().sessions, 2);

    let deployments: Api<Deployment> = Api::namespaced(pods.client().clone(), "default");
    let deployment: Deployment = serde_json::from_value(json!({"metadata": {"name": "shop"}, "spec": {
        "selector": {"matchLabels": {"app": "shop"}}, "template": {"metadata": {"labels": {"app": "shop"}},
        "spec": {"containers": [{"name": "app", "image": "app"}]}}}}))
    .unwrap();
    deployments.create(&deployment).await.unwrap();
    let forward = deployments.port_forward("shop", 99).await.unwrap();
    assert_eq!(echo(&forward, "").await, "b");
    assert!(deployments.port_forward("absent", 99).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn forward_reconnects_after_its_session_broke() {
    let server = ApiServer::builder().pod_streams(PodStreams::new().port_forward(ports)).start().await.unwrap();
    let listening = server.listen(0).http().anonymous().await.unwrap();
    let config = klient::client::config::Config::new(&listening.url()).unwrap();
    let pods: Api<Pod> = Api::namespaced(Client::from_config(&config).unwrap(), "default");
    pods.create(&pod("web", &["app"])).await.unwrap();
    let forward = pods.port_forward("web", 7).await.unwrap();
    let mut open = forward.connect().await.unwrap();
    assert_eq!(echo(&forward, "one").await, "one");
    let port = listening.address().port();
    drop(listening);
    assert!(open.read_u8().await.is_err(), "the connection broke");
    assert!(forward.connect().await.is_err(), "nothing listens");
    assert_eq!(forward.pod().await, None);
    let _listening = server.listen(port).http().anonymous().await.unwrap();
    assert_eq!(echo(&forward, "two").await, "two");
    assert_eq!(forward.statistics().sessions, 2);
}

#[tokio::test]
async fn missing_pod_is_reported_before_the_first_connection() {
    let world = world().await;
    for (pods, protocol) in ways(&world) {
        let error = pods.port_forward("absent", 7).protocol(protocol).await.unwrap_err();
        assert!(error.is_not_found(), "{error:#}");
        assert!(error.to_string().contains("pod default/absent"), "{error}");
    }
}

//! exec, attach, port-forward and logs through the real kube-apiserver and a kubelet with Kubernetes' own streaming server.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{Node, Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use klient::{
    Api, Client, Patch, WatchEvent,
    client::{
        config::Impersonation,
        streams::{ExitStatus, PortForward, StreamProtocol, TerminalSize},
    },
    node::{Drain, uncordon},
};
use klient_harness::Kubelet;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
};

use crate::cluster::{client, config, namespace, or_skip};

/// Returns the kubelet that all tests share.
fn kubelet() -> Option<&'static Kubelet> {
    static KUBELET: LazyLock<Result<Option<Kubelet>, String>> =
        LazyLock::new(|| Kubelet::start_for_tests().map_err(|error| format!("{error:#}")));
    KUBELET.as_ref().unwrap().as_ref()
}

/// Creates a node of a kubelet, and returns pods of a new namespace with the pod `web` on that node.
async fn pods(name: &str, kubelet: &Kubelet) -> Option<Api<Pod>> {
    let client = client()?;
    let node = node(name, kubelet.port());
    Api::<Node>::cluster(client.clone()).create(&node).await.unwrap();
    let namespace = namespace(&client, name).await;
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    pods.create(&pod("web", name)).await.unwrap();
    Some(pods)
}

fn node(name: &str, port: u16) -> Node {
    serde_json::from_value(json!({"metadata": {"name": name}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }}))
    .unwrap()
}

fn pod(name: &str, node: &str) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {
        "nodeName": node, "containers": [{"name": "app", "image": "app"}],
    }}))
    .unwrap()
}

const PROTOCOLS: [(StreamProtocol, &str); 2] =
    [(StreamProtocol::Automatic, "v5.channel.k8s.io"), (StreamProtocol::Spdy, "v4.channel.k8s.io")];

#[tokio::test]
async fn exec_runs_processes() {
    let pods = or_skip!(pods("streams-exec", or_skip!(kubelet())).await);
    for (protocol, name) in PROTOCOLS {
        let exec = |script: &str| pods.exec("web", ["sh", "-c", script]).protocol(protocol);
        let process = exec("echo out; echo err >&2").await.unwrap();
        assert_eq!(process.protocol(), name);
        let output = process.output().await.unwrap();
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
        assert!(output.status.success());
        assert_eq!(exec("exit 3").await.unwrap().wait().await.unwrap().code(), 3);
        assert_eq!(exec("kill -9 $$").await.unwrap().wait().await.unwrap().signal(), Some(9));

        let mut process = exec("wc -c").stdin(true).await.unwrap();
        let mut stdin = process.stdin().unwrap();
        stdin.write_all(b"12345").await.unwrap();
        stdin.shutdown().await.unwrap();
        let output = process.output().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "5");

        let size = TerminalSize { width: 91, height: 33 };
        let sized = exec("until stty size | grep '33 91'; do sleep 0.01; done").stdin(true).tty(true);
        let output = sized.terminal_size(size).await.unwrap().output().await.unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("33 91"), "{output:?}");

        let error = pods.exec("web", ["/no/such/program"]).protocol(protocol).await.unwrap().wait().await.unwrap_err();
        assert!(format!("{error:#}").contains("no such file"), "{error:#}");
    }
}

#[tokio::test]
async fn attach_talks_to_the_process() {
    let pods = or_skip!(pods("streams-attach", or_skip!(kubelet())).await);
    for (protocol, _) in PROTOCOLS {
        let mut process = pods.attach("web").stdin(true).protocol(protocol).await.unwrap();
        let mut stdin = process.stdin().unwrap();
        stdin.write_all(b"hello").await.unwrap();
        stdin.shutdown().await.unwrap();
        let output = process.output().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "attached\nhello");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exec_moves_100_megabytes_both_ways() {
    const BLOCK: usize = 1 << 20;
    let pods = or_skip!(pods("streams-megabytes", or_skip!(kubelet())).await);
    for (protocol, _) in PROTOCOLS {
        let mut process = pods.exec("web", ["cat"]).stdin(true).protocol(protocol).await.unwrap();
        let (mut stdin, mut stdout) = (process.stdin().unwrap(), process.stdout().unwrap());
        let sending = tokio::spawn(async move {
            for number in 0..100u32 {
                stdin.write_all(&block(number, BLOCK)).await.unwrap();
            }
            stdin.shutdown().await.unwrap();
        });
        let mut back = vec![0; BLOCK];
        for number in 0..100 {
            stdout.read_exact(&mut back).await.unwrap();
            assert!(back == block(number, BLOCK), "block {number} differs");
        }
        assert_eq!(stdout.read(&mut back).await.unwrap(), 0);
        sending.await.unwrap();
        assert!(process.wait().await.unwrap().success());
    }
}

/// Returns a block of bytes that differs from all others.
fn block(number: u32, length: usize) -> Vec<u8> {
    let part: Vec<u8> = number.to_be_bytes().into_iter().chain(0..=250).collect();
    let mut block = part.repeat(length / part.len() + 1);
    block.truncate(length);
    block
}

/// Starts a server that echoes, and returns its port.
async fn echo_server() -> u16 {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // The kernel resets some connections while more than this number wait to be accepted.
    let listener = socket.listen(4096).unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = socket.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    port
}

/// Starts a server that sends a greeting and closes the connection, and returns its port.
async fn greeter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(b"welcome").await;
        }
    });
    port
}

async fn echoed(forward: &PortForward, sent: &[u8]) -> Vec<u8> {
    let mut connection = forward.connect().await.unwrap();
    connection.write_all(sent).await.unwrap();
    connection.shutdown().await.unwrap();
    let mut back = Vec::new();
    connection.read_to_end(&mut back).await.unwrap();
    back
}

#[tokio::test]
async fn port_forward_reaches_ports() {
    let pods = or_skip!(pods("streams-ports", or_skip!(kubelet())).await);
    let (port, greeter) = (echo_server().await, greeter().await);
    for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
        let forward = pods.port_forward("web", port).protocol(protocol).await.unwrap();
        assert_eq!(echoed(&forward, b"hello").await, b"hello");
        let much = block(1, 5 << 20);
        let mut connection = forward.connect().await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(&mut connection);
        let mut back = vec![0; much.len()];
        let sending = async {
            writer.write_all(&much).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        tokio::join!(sending, async { reader.read_exact(&mut back).await.unwrap() });
        assert!(back == much);

        // Nothing listens on the port of a socket that is only bound.
        let bound = tokio::net::TcpSocket::new_v4().unwrap();
        bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut broken = forward.to_port(bound.local_addr().unwrap().port()).connect().await.unwrap();
        let error = broken.read_u8().await.unwrap_err();
        assert!(error.to_string().contains("connection refused"), "{error}");
        assert_eq!(echoed(&forward, b"alive").await, b"alive");

        // A program that closes first ends the connection, though this end is still open.
        let mut greeting = String::new();
        forward.to_port(greeter).connect().await.unwrap().read_to_string(&mut greeting).await.unwrap();
        assert_eq!(greeting, "welcome");

        let listener = forward.listen("127.0.0.1:0").await.unwrap();
        let mut socket = TcpStream::connect(listener.local_addr()).await.unwrap();
        socket.write_all(b"through a socket").await.unwrap();
        socket.shutdown().await.unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "through a socket");
        assert_eq!(forward.statistics().sessions, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn port_forward_carries_1000_connections() {
    let pods = or_skip!(pods("streams-thousand", or_skip!(kubelet())).await);
    let port = echo_server().await;
    for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
        let forward = pods.port_forward("web", port).protocol(protocol).await.unwrap();
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..1000 {
            let forward = forward.clone();
            opening.spawn(async move { forward.connect().await.unwrap() });
        }
        let connections = opening.join_all().await;
        assert_eq!(forward.statistics().active, 1000);
        let mut echoing = tokio::task::JoinSet::new();
        for (number, mut connection) in connections.into_iter().enumerate() {
            echoing.spawn(async move {
                let sent = block(number as u32, 2000);
                connection.write_all(&sent).await.unwrap();
                connection.shutdown().await.unwrap();
                let mut back = Vec::new();
                connection.read_to_end(&mut back).await.unwrap();
                assert_eq!(back.len(), sent.len(), "connection {number} with {protocol:?}");
                assert!(back == sent, "connection {number} with {protocol:?}");
            });
        }
        while let Some(ended) = echoing.join_next().await {
            ended.unwrap();
        }
        assert_eq!((forward.statistics().sessions, forward.statistics().active), (1, 0));
    }
}

#[tokio::test]
async fn logs_are_read_and_followed() {
    let pods = or_skip!(pods("streams-logs", or_skip!(kubelet())).await);
    let log = pods.logs("web").tail_lines(3).await.unwrap();
    assert_eq!(log, "line 7 of app\nline 8 of app\nline 9 of app\n");
    let mut log = pods.logs("web").follow().stream().await.unwrap();
    let mut lines = 0;
    while let Some(line) = log.line().await.unwrap() {
        assert_eq!(line, format!("line {lines} of app"));
        lines += 1;
    }
    assert_eq!(lines, 1000);
}

#[tokio::test]
async fn lines_of_logs_have_names_and_times() {
    let pods = or_skip!(pods("streams-lines", or_skip!(kubelet())).await);
    let state = json!({"name": "app", "image": "app", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let status = json!({"status": {"phase": "Running", "containerStatuses": [state]}});
    pods.status().patch("web", Patch::merge(status)).await.unwrap();
    let mut lines = pods.logs("web").tail_lines(2).lines();
    let first = lines.next().await.unwrap().unwrap();
    assert_eq!((first.to_string().as_str(), first.time.is_some()), ("web app line 8 of app", true));
    assert_eq!(lines.next().await.unwrap().unwrap().text, "line 9 of app");
    assert_eq!(lines.next().await.unwrap(), None);
    let mut logs = pods.logs_of("app=web").tail_lines(1);
    assert_eq!(logs.next().await.unwrap().unwrap().to_string(), "web app line 9 of app");
    assert_eq!(logs.next().await.unwrap(), None);
}

#[tokio::test]
async fn files_are_copied_both_ways() {
    let pods = or_skip!(pods("streams-copy", or_skip!(kubelet())).await);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let large: Vec<u8> = (0..10).flat_map(|number| block(number, 1 << 20)).collect();
    std::fs::write(source.join("large"), &large).unwrap();
    std::os::unix::fs::symlink("large", source.join("link")).unwrap();
    for (protocol, name) in PROTOCOLS {
        let inside = folder.path().join(format!("inside-{name}")).display().to_string();
        let copied = pods.copy_to("web", &source, &inside).protocol(protocol).await.unwrap();
        assert_eq!((copied.entries, copied.bytes), (3, 10 << 20));
        let back = folder.path().join(format!("back-{name}"));
        let copied = pods.copy_from("web", &inside, &back).protocol(protocol).await.unwrap();
        assert_eq!((copied.entries, copied.bytes), (3, 10 << 20));
        assert!(std::fs::read(back.join("link")).unwrap() == large);
        let error = pods.copy_from("web", "/no/such/file", &back).protocol(protocol).await.unwrap_err();
        assert!(error.to_string().contains("tar failed"), "{error}");
    }
}

#[tokio::test]
async fn node_is_drained_when_its_budgets_allow_it() {
    let pods = or_skip!(pods("streams-drain", or_skip!(kubelet())).await);
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.status().patch("web", Patch::merge(running)).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(pods.client().clone(), "streams-drain");
    let budget = json!({"metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    budgets.create(&serde_json::from_value(budget).unwrap()).await.unwrap();
    let allow = |allowed: i32| {
        let status = json!({"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1});
        budgets.status().patch("web", Patch::merge(json!({"status": status})))
    };
    allow(0).await.unwrap();
    let drain = || Drain::new(pods.client().clone(), "streams-drain").grace_period(Duration::ZERO);
    let error = drain().run().await.unwrap_err();
    assert!(error.to_string().contains("streams-drain/web (no controller manages it)"), "{error}");
    // The first eviction gets its response within this time, also on a busy machine.
    let error = drain().force().timeout(Duration::from_secs(10)).run().await.unwrap_err();
    assert!(error.to_string().contains("disruption budget"), "{error}");
    allow(1).await.unwrap();
    let drained = drain().force().timeout(Duration::from_secs(30)).run().await.unwrap();
    assert_eq!(drained.gone.len(), 1);
    assert!(pods.get_opt("web").await.unwrap().is_none());
    assert!(uncordon(pods.client(), "streams-drain").await.unwrap());
}

#[tokio::test]
async fn forbidden_and_missing_targets_are_clear_errors() {
    let pods = or_skip!(pods("streams-forbidden", or_skip!(kubelet())).await);
    let user = Impersonation::new("jane");
    let jane = Client::from_config(&or_skip!(config()).impersonation(user)).unwrap();
    let janes: Api<Pod> = Api::namespaced(jane, "streams-forbidden");
    for protocol in [StreamProtocol::Automatic, StreamProtocol::WebSocket, StreamProtocol::Spdy] {
        let error = janes.exec("web", ["true"]).protocol(protocol).await.unwrap_err();
        assert!(error.is_forbidden(), "{error:#}");
        let error = janes.port_forward("web", 80).protocol(protocol).await.unwrap_err();
        assert!(error.is_forbidden(), "{error:#}");
        let error = pods.exec("absent", ["true"]).protocol(protocol).await.unwrap_err();
        assert!(error.is_not_found(), "{error:#}");
        let error = pods.exec("web", ["true"]).container("nope").protocol(protocol).await.unwrap_err();
        assert!(format!("{error:#}").contains("container nope is not valid for pod web"), "{error:#}");
    }
}

#[tokio::test]
async fn sessions_end_with_their_kubelet_and_reconnect() {
    let mut kubelet = or_skip!(Kubelet::start_for_tests().unwrap());
    let name = "streams-killed";
    let pods = or_skip!(pods(name, &kubelet).await);
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.status().patch("web", Patch::merge(running)).await.unwrap();
    let port = echo_server().await;
    let services: Api<Service> = Api::namespaced(pods.client().clone(), name);
    let ports = json!([{"port": 80, "targetPort": port}]);
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}});
    services.create(&serde_json::from_value(service).unwrap()).await.unwrap();

    let mut sessions = Vec::new();
    for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
        let process = pods.exec("web", ["sleep", "1000"]).protocol(protocol).await.unwrap();
        let forward = services.port_forward("web", 80).protocol(protocol).await.unwrap();
        assert_eq!(echoed(&forward, b"one").await, b"one");
        let connection = forward.connect().await.unwrap();
        sessions.push((process, forward, connection));
    }
    kubelet.kill();
    let forwards = tokio::time::timeout(Duration::from_secs(30), async {
        let mut forwards = Vec::new();
        for (mut process, forward, mut connection) in sessions {
            // Kubernetes 1.36 itself reports a success over WebSocket when it loses its kubelet.
            match (process.protocol() == "v5.channel.k8s.io", process.wait().await) {
                (true, outcome) => assert!(outcome.is_err() || outcome.is_ok_and(ExitStatus::success)),
                (false, outcome) => {
                    let error = outcome.unwrap_err();
                    assert!(error.to_string().contains("streams-killed/web"), "{error:#}");
                }
            }
            assert!(connection.read_u8().await.is_err());
            let error = forward.connect().await.unwrap_err();
            assert!(error.to_string().contains("streams-killed/web"), "{error:#}");
            forwards.push(forward);
        }
        forwards
    })
    .await
    .unwrap();
    let kubelet = Kubelet::start_for_tests().unwrap().unwrap();
    let endpoint = json!({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port()}}}});
    Api::<Node>::cluster(pods.client().clone()).status().patch(name, Patch::merge(endpoint)).await.unwrap();
    for forward in forwards {
        assert_eq!(echoed(&forward, b"two").await, b"two");
        assert_eq!(forward.statistics().sessions, 2);
    }
}

/// Starts a proxy that opens tunnels, and returns its port and the number of tunnels.
async fn tunnels() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await?);
                }
                let head = String::from_utf8_lossy(&head);
                let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
                let mut server = TcpStream::connect(target.ok_or(std::io::ErrorKind::InvalidData)?).await?;
                count.fetch_add(1, Ordering::Relaxed);
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    (port, opened)
}

#[tokio::test]
async fn streams_pass_through_a_proxy() {
    let pods = or_skip!(pods("streams-proxy", or_skip!(kubelet())).await);
    let (port, opened) = tunnels().await;
    let proxy = format!("http://127.0.0.1:{port}").parse().unwrap();
    let client = Client::from_config(&or_skip!(config()).proxy(proxy)).unwrap();
    drop(pods);
    let pods: Api<Pod> = Api::namespaced(client, "streams-proxy");
    let echo = echo_server().await;
    for (protocol, _) in PROTOCOLS {
        let before = opened.load(Ordering::Relaxed);
        let output = pods.exec("web", ["echo", "out"]).protocol(protocol).await.unwrap().output().await.unwrap();
        assert_eq!(output.stdout, b"out\n");
        let forward = pods.port_forward("web", echo).protocol(protocol).await.unwrap();
        assert_eq!(echoed(&forward, b"hello").await, b"hello");
        assert!(opened.load(Ordering::Relaxed) >= before + 2);
    }
}

#[tokio::test]
async fn ephemeral_container_is_added_and_attached_to() {
    let pods = or_skip!(pods("streams-debug", or_skip!(kubelet())).await);
    let starting = async {
        // This test is the part of the kubelet that runs containers. The container may be there when the watch begins.
        let mut watch = pods.watch().fields("metadata.name=web").await.unwrap();
        while let Some(event) = watch.next().await {
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event.unwrap() else { continue };
            if pod.spec.is_some_and(|spec| spec.ephemeral_containers.is_some_and(|containers| !containers.is_empty())) {
                break;
            }
        }
        let state = json!({"name": "tools", "image": "tools", "imageID": "", "ready": false, "restartCount": 0, "state": {"running": {}}});
        let status = json!({"status": {"phase": "Running", "ephemeralContainerStatuses": [state]}});
        pods.status().patch("web", Patch::merge(status)).await.unwrap();
    };
    let (debugger, ()) = tokio::join!(pods.debug("web", "tools").name("tools").stdin(true), starting);
    let debugger = debugger.unwrap();
    assert!(!debugger.has_ended);
    let mut process = debugger.attach().await.unwrap();
    let mut stdin = process.stdin().unwrap();
    stdin.write_all(b"hello").await.unwrap();
    stdin.shutdown().await.unwrap();
    let output = process.output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "attached\nhello");
}

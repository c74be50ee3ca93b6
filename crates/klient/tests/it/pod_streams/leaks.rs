//! Many sessions at once, and what is left of them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use klient::{
    Api,
    client::streams::{Process, StreamProtocol},
};
use klient_apiserver::pod_streams::PodStreams;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::World;

/// A world in which commands and connections never end, except the command `echo`.
async fn world() -> World {
    let streams = PodStreams::new()
        .exec(|mut call| async move {
            if call.command[0] == "echo" {
                call.stdout.as_mut().ok_or("no output")?.write_all(call.command[1].as_bytes()).await?;
                return Ok(0);
            }
            std::future::pending().await
        })
        .port_forward(|call| async move {
            let _held = call;
            std::future::pending().await
        });
    World::new(streams).await
}

/// Opens sessions of every kind, and drops them.
async fn open_and_drop(pods: &Api<Pod>, protocol: StreamProtocol) {
    let mut processes = Vec::new();
    for _ in 0..20 {
        let process = pods.exec("web", ["hang"]).stdin(true).tty(true).protocol(protocol).await.unwrap();
        processes.push(process);
    }
    // Some are dropped in parts.
    for process in processes.iter_mut().take(10) {
        drop((process.stdout(), process.stdin(), process.resizer()));
    }
    let forward = pods.port_forward("web", 1).protocol(protocol).await.unwrap();
    let mut connections = Vec::new();
    for _ in 0..20 {
        connections.push(forward.connect().await.unwrap());
    }
    let listener = forward.listen("127.0.0.1:0").await.unwrap();
    let mut sockets = Vec::new();
    for _ in 0..5 {
        sockets.push(TcpStream::connect(listener.local_addr()).await.unwrap());
    }
    let kept: Vec<_> = processes.iter_mut().skip(10).map(Process::stdout).collect();
    drop(processes);
    drop(listener);
    drop(forward);
    drop(connections);
    drop(kept);
}

#[tokio::test]
async fn dropped_sessions_leave_no_task() {
    let world = world().await;
    let metrics = tokio::runtime::Handle::current().metrics();
    for pods in [world.pods(), world.pods_in_process()] {
        for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
            let before = metrics.num_alive_tasks();
            open_and_drop(&pods, protocol).await;
            let ended = tokio::time::timeout(Duration::from_secs(20), async {
                while metrics.num_alive_tasks() > before {
                    tokio::task::yield_now().await;
                }
            });
            assert!(ended.await.is_ok(), "{protocol:?}: {} tasks, before {before}", metrics.num_alive_tasks());
        }
    }
}

#[tokio::test]
async fn many_commands_run_at_a_time() {
    let world = world().await;
    for (pods, protocol) in [(world.pods(), StreamProtocol::WebSocket), (world.pods_in_process(), StreamProtocol::Spdy)]
    {
        let mut running = tokio::task::JoinSet::new();
        for number in 0..200 {
            let pods = pods.clone();
            running.spawn(async move {
                let text = number.to_string();
                let exec = pods.exec("web", ["echo", text.as_str()]).protocol(protocol);
                let output = exec.await.unwrap().output().await.unwrap();
                assert_eq!(output.stdout, text.as_bytes());
            });
        }
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
    }
}

#[tokio::test]
async fn stopped_server_ends_all_sessions() {
    let world = world().await;
    let pods = world.pods();
    let mut ends = Vec::new();
    for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
        let process = pods.exec("web", ["hang"]).protocol(protocol).await.unwrap();
        let forward = pods.port_forward("web", 1).protocol(protocol).await.unwrap();
        let connection = forward.connect().await.unwrap();
        ends.push((process, connection));
    }
    drop(world);
    for (mut process, mut connection) in ends {
        let ended = tokio::time::timeout(Duration::from_secs(20), async {
            assert!(process.wait().await.is_err());
            assert!(connection.read_u8().await.is_err());
            assert!(connection.write_all(&[0; 100_000]).await.is_err());
        });
        ended.await.unwrap();
    }
}

//! Everything that people do with pods, on an embedded server: commands, logs, files, ports, and the drain of their node.
//!
//! ```text
//! cargo run -p klient-examples --example pods
//! ```

#![allow(clippy::print_stdout)]

use std::{process::Stdio, time::Duration};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use klient::{Api, Client, Patch, node::Drain};
use klient_apiserver::{
    ApiServer,
    pod_streams::{ExecCall, LogCall, PodStreams, PortForwardCall},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A test says what its pods do. The client's code is the same as with a cluster.
    let streams = PodStreams::new().exec(command).logs(log).port_forward(echo);
    let server = ApiServer::builder().pod_streams(streams).start().await?;
    let client = Client::from_service(server.service());
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    start(&client, &pods).await?;

    let output = pods.exec("web", ["echo", "hello"]).await?.output().await?;
    println!("exec: {}, {:?}", output.status, String::from_utf8_lossy(&output.stdout));

    let mut process = pods.exec("web", ["sort"]).stdin(true).await?;
    let mut stdin = process.stdin().context("it was requested")?;
    stdin.write_all(b"b\na\n").await?;
    stdin.shutdown().await?;
    println!("exec with input: {:?}", String::from_utf8_lossy(&process.output().await?.stdout));

    let mut logs = pods.logs_of("app=web").tail_lines(2);
    while let Some(line) = logs.next().await? {
        println!("log: {line}");
    }

    let folder = std::env::temp_dir().join(format!("klient-pods-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("site"))?;
    std::fs::write(folder.join("site/index.html"), "<h1>klient</h1>")?;
    let inside = folder.join("inside").display().to_string();
    let copied = pods.copy_to("web", folder.join("site"), &inside).await?;
    println!("copied into the container: {} entries, {} bytes", copied.entries, copied.bytes);
    pods.copy_from("web", inside, folder.join("back")).await?;
    println!("and back: {}", std::fs::read_to_string(folder.join("back/index.html"))?);
    std::fs::remove_dir_all(folder)?;

    let forward = pods.port_forward("web", 80).await?;
    let listener = forward.listen("127.0.0.1:0").await?;
    let mut connection = tokio::net::TcpStream::connect(listener.local_addr()).await?;
    connection.write_all(b"ping").await?;
    connection.shutdown().await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    println!("through the local port: {answer}");

    let drain = Drain::new(client, "worker").force().grace_period(Duration::ZERO).timeout(Duration::from_secs(30));
    let drained = drain.on_step(|step| println!("drain: {step}")).run().await?;
    println!("{} pods are gone", drained.gone.len());
    Ok(())
}

/// Creates a node and a pod that runs on it.
async fn start(client: &Client, pods: &Api<Pod>) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::cluster(client.clone());
    nodes.create(&serde_json::from_value(json!({"metadata": {"name": "worker"}}))?).await?;
    let pod = json!({"metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": "worker", "containers": [{"name": "app", "image": "app"}]}});
    pods.create(&serde_json::from_value(pod)?).await?;
    let state = json!({"name": "app", "image": "app", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}});
    pods.status()
        .patch("web", Patch::merge(json!({"status": {"phase": "Running", "containerStatuses": [state]}})))
        .await?;
    Ok(())
}

/// Runs commands of this machine.
async fn command(mut call: ExecCall) -> Outcome<i32> {
    let (program, arguments) = call.command.split_first().ok_or("no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let (mut input, mut output) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
    let feed = async {
        if let Some(stdin) = &mut call.stdin {
            tokio::io::copy(stdin, &mut input).await?;
        }
        drop(input);
        Ok::<_, std::io::Error>(())
    };
    let read = async {
        if let Some(stdout) = &mut call.stdout {
            tokio::io::copy(&mut output, stdout).await?;
        }
        Ok(())
    };
    tokio::try_join!(feed, read)?;
    Ok(child.wait().await?.code().unwrap_or(1))
}

async fn log(call: LogCall) -> Outcome<()> {
    for (second, text) in ["started", "ready"].into_iter().enumerate() {
        call.output.write(format!("2026-01-01T00:00:0{second}Z {text}\n")).await?;
    }
    Ok(())
}

async fn echo(mut call: PortForwardCall) -> Outcome<()> {
    let mut text = Vec::new();
    call.stream.read_to_end(&mut text).await?;
    call.stream.write_all(&text).await?;
    Ok(call.stream.shutdown().await?)
}

//! `klient exec`, `logs`, `cp`, `port-forward`, `drain`, and the commands that write.

use std::{path::Path, process::Stdio};

use k8s_openapi::api::core::v1::{Node, Pod};
use klient::{Api, Client, Patch};
use klient_apiserver::{
    ApiServer, Listening,
    pod_streams::{ExecCall, LogCall, PodStreams, PortForwardCall},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::Command,
    time::timeout,
};

use crate::program::{PATIENCE, klient, outcome};

struct World {
    _server: ApiServer,
    _listening: Listening,
    client: Client,
    folder: tempfile::TempDir,
}

async fn run(mut call: ExecCall) -> Result<i32, Box<dyn std::error::Error + Send + Sync>> {
    let mut child = Command::new(&call.command[0])
        .args(&call.command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (mut input, mut output, mut errors) =
        (child.stdin.take().unwrap(), child.stdout.take().unwrap(), child.stderr.take().unwrap());
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
    let complain = async {
        if let Some(stderr) = &mut call.stderr {
            tokio::io::copy(&mut errors, stderr).await?;
        }
        Ok(())
    };
    tokio::try_join!(feed, read, complain)?;
    Ok(child.wait().await?.code().unwrap_or(1))
}

async fn log(call: LogCall) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    for number in 0..3 {
        call.output.write(format!("2026-01-01T00:00:0{number}Z line {number}\n")).await?;
    }
    Ok(())
}

async fn echo(mut call: PortForwardCall) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut word = [0; 4];
    call.stream.read_exact(&mut word).await?;
    call.stream.write_all(&word).await?;
    Ok(call.stream.shutdown().await?)
}

impl World {
    async fn new() -> Self {
        Self::with(PodStreams::new().exec(run).logs(log).port_forward(echo)).await
    }

    async fn with(streams: PodStreams) -> Self {
        let server = ApiServer::builder().pod_streams(streams).start().await.unwrap();
        let listening = server.listen(0).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k"), listening.kubeconfig(None)).unwrap();
        let client = Client::from_service(server.service());
        let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
        let nodes: Api<Node> = Api::cluster(client.clone());
        nodes.create(&serde_json::from_value(json!({"metadata": {"name": "worker"}})).unwrap()).await.unwrap();
        for name in ["web", "db"] {
            let pod = json!({"metadata": {"name": name, "labels": {"app": "x"}},
                "spec": {"nodeName": "worker", "containers": [{"name": "app", "image": "i"}]}});
            pods.create(&serde_json::from_value(pod).unwrap()).await.unwrap();
            let state = json!({"name": "app", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}});
            let status = json!({"status": {"phase": "Running", "containerStatuses": [state],
                "conditions": [{"type": "Ready", "status": "True"}]}});
            pods.status().patch(name, Patch::merge(status)).await.unwrap();
        }
        Self { _server: server, _listening: listening, client, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command that succeeds, and returns its output.
    async fn run(&self, command: &str, arguments: &[&str]) -> String {
        let (code, output, errors) = self.outcome(command, arguments).await;
        assert_eq!(code, Some(0), "{command} {arguments:?}: {output}{errors}");
        output
    }

    async fn outcome(&self, command: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
        outcome(self.path(), &[&[command, "--kubeconfig", "k"], arguments].concat()).await
    }
}

#[tokio::test]
async fn exec_passes_streams_and_the_exit_code() {
    let world = World::new().await;
    assert_eq!(world.run("exec", &["web", "-c", "app", "--", "echo", "a", "b"]).await, "a b\n");
    let (code, output, errors) = world.outcome("exec", &["web", "--", "sh", "-c", "echo bad >&2; exit 3"]).await;
    assert_eq!((code, output.as_str(), errors.as_str()), (Some(3), "", "bad\n"));
    let mut command = klient(world.path(), &["exec", "--kubeconfig", "k", "-i", "web", "--", "wc", "-c"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"12345").await.unwrap();
    let ended = timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout).trim(), "5");
    let (code, _, errors) = world.outcome("exec", &["missing", "--", "true"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("pods \"missing\" not found"), "{errors}");
}

#[tokio::test]
async fn logs_are_those_of_a_pod_or_of_a_selector() {
    let world = World::new().await;
    assert_eq!(world.run("logs", &["web", "--tail", "3"]).await, "line 0\nline 1\nline 2\n");
    let merged = world.run("logs", &["-l", "app=x", "--timestamps"]).await;
    let mut lines: Vec<&str> = merged.lines().collect();
    assert_eq!(lines.len(), 6, "{merged}");
    lines.sort_unstable();
    assert_eq!(lines[0], "db app 2026-01-01T00:00:00Z line 0");
    let (code, _, errors) = world.outcome("logs", &["web", "--since", "5"]).await;
    assert_eq!(code, Some(2));
    assert!(errors.contains("is not a duration"), "{errors}");
}

#[tokio::test]
async fn files_are_copied() {
    let world = World::new().await;
    std::fs::write(world.path().join("file"), "text").unwrap();
    let inside = world.path().join("inside");
    let remote = format!("web:{}", inside.display());
    assert_eq!(world.run("cp", &["file", &remote]).await, "copied 1 entries, 4 bytes\n");
    assert_eq!(world.run("cp", &[&format!("default/{remote}"), "back"]).await, "copied 1 entries, 4 bytes\n");
    assert_eq!(std::fs::read_to_string(world.path().join("back")).unwrap(), "text");
    let (code, _, errors) = world.outcome("cp", &["a", "b"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("one of the two paths must be in a container"), "{errors}");
}

#[tokio::test]
async fn ports_are_forwarded_until_the_command_is_interrupted() {
    let world = World::new().await;
    let mut command = klient(world.path(), &["port-forward", "--kubeconfig", "k", "web", ":80"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    let address = line.strip_prefix("Forwarding from ").and_then(|rest| rest.strip_suffix(" -> 80")).unwrap();
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(b"ping").await.unwrap();
    let mut back = String::new();
    connection.read_to_string(&mut back).await.unwrap();
    assert_eq!(back, "ping");
    child.kill().await.unwrap();
}

#[tokio::test]
async fn node_is_cordoned_drained_and_uncordoned() {
    let world = World::new().await;
    assert_eq!(world.run("cordon", &["worker"]).await, "node/worker cordoned\n");
    assert_eq!(world.run("cordon", &["worker"]).await, "node/worker already cordoned\n");
    let (code, _, errors) = world.outcome("drain", &["worker"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("no controller manages it"), "{errors}");
    let output = world.run("drain", &["worker", "--force", "--grace-period", "0", "--timeout", "30s"]).await;
    assert!(output.ends_with("node/worker drained: 2 pods gone, 0 stay\n"), "{output}");
    assert_eq!(world.run("uncordon", &["worker"]).await, "node/worker uncordoned\n");
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "default");
    assert_eq!(pods.list().await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn objects_are_applied_awaited_explained_and_deleted() {
    let world = World::new().await;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    std::fs::write(world.path().join("f.yaml"), text).unwrap();
    assert_eq!(world.run("apply", &["-f", "f.yaml"]).await, "configmaps/a applied\nnamespaces/shop applied\n");
    assert_eq!(
        world.run("apply", &["-f", "f.yaml", "--dry-run"]).await.lines().next(),
        Some("configmaps/a applied (dry run)")
    );
    let waited = world.run("wait", &["pod/web", "--for", "condition=Ready", "--timeout", "10s"]).await;
    assert_eq!(waited, "pods/web reached condition=Ready\n");
    let (code, _, errors) = world.outcome("wait", &["pod/web", "--for", "delete", "--timeout", "1s"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("deletion"), "{errors}");
    assert_eq!(world.run("delete", &["cm", "a"]).await, "configmaps/a deleted\n");
    let (code, _, errors) = world.outcome("delete", &["cm", "a"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("configmaps \"a\" not found"), "{errors}");
    assert_eq!(world.run("delete", &["cm", "a", "--ignore-not-found"]).await, "");
    let explained = world.run("explain", &["pods.spec.containers"]).await;
    assert!(explained.contains("FIELD:    spec.containers <[]Object>"), "{explained}");
    assert!(explained.contains("\n  name <string> (required)\n"), "{explained}");
    let (code, _, errors) = world.outcome("explain", &["pods.spec.nothing"]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("field \"nothing\" does not exist"), "{errors}");
    let (code, completions, _) = outcome(world.path(), &["completion", "bash"]).await;
    assert_eq!(code, Some(0));
    assert!(completions.contains("port-forward"), "{completions}");
}

/// Writes each new size of the terminal, until there were two.
async fn sizes(mut call: ExecCall) -> Result<i32, Box<dyn std::error::Error + Send + Sync>> {
    let mut stdout = call.stdout.take().ok_or("no output")?;
    let mut sizes = call.sizes.take().ok_or("no terminal")?;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let size = sizes.next().await.ok_or("no size")?;
        // The first size may be sent twice: with the request, and when the command begins to follow it.
        if seen.last() != Some(&size) {
            stdout.write_all(format!("{} columns, {} rows\r\n", size.width, size.height).as_bytes()).await?;
            seen.push(size);
        }
    }
    Ok(0)
}

#[tokio::test]
async fn remote_terminal_follows_the_size_of_the_local_one() {
    use rustix::{
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
        termios::{Winsize, tcsetwinsize},
    };
    let world = World::with(PodStreams::new().exec(sizes)).await;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let resize = |columns, rows| {
        tcsetwinsize(&terminal, Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    };
    resize(91, 33);
    let open = || std::fs::File::options().read(true).write(true).open(&name).unwrap();
    // The command leads a session of its own, so that the terminal sends its signals to it.
    let mut child = Command::new("setsid")
        .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_klient"), "exec", "-it", "web", "--kubeconfig", "k", "--", "x"])
        .current_dir(world.path())
        .stdin(open())
        .stdout(open())
        .stderr(open())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let output = tokio::fs::File::from_std(std::fs::File::from(terminal.try_clone().unwrap()));
    let mut lines = BufReader::new(output).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(line.trim(), "91 columns, 33 rows");
    resize(100, 40);
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(line.trim(), "100 columns, 40 rows");
    assert!(timeout(PATIENCE, child.wait()).await.unwrap().unwrap().success());
}

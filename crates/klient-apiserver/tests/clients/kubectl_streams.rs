//! kubectl's exec, attach, cp, logs, port-forward, debug and drain against the embedded server, over WebSocket and over SPDY.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    process::{Output, Stdio},
};

use klient_apiserver::{
    ApiServer,
    pod_streams::{ExecCall, LogCall, PodStreams, PortForwardCall},
};
use tokio::io::AsyncWriteExt as _;

use crate::kubectl::Kubectl;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a command of this machine.
async fn exec(call: ExecCall) -> Result<i32, BoxError> {
    let mut command = tokio::process::Command::new(&call.command[0]);
    command.args(&call.command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn()?;
    let (mut stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ExecCall { stdin: input, stdout: output, stderr: errors, .. } = call;
    let feeding = async {
        if let (Some(mut input), Some(stdin)) = (input, &mut stdin) {
            let _ = tokio::io::copy(&mut input, stdin).await;
        }
        stdin = None;
        // The end of the process ends the session, not that of its input.
        std::future::pending::<()>().await;
    };
    let running = async {
        let reading = async {
            if let (Some(mut output), Some(stdout)) = (output, &mut stdout) {
                let _ = tokio::io::copy(stdout, &mut output).await;
            }
        };
        let reading_errors = async {
            if let (Some(mut errors), Some(stderr)) = (errors, &mut stderr) {
                let _ = tokio::io::copy(stderr, &mut errors).await;
            }
        };
        tokio::join!(reading, reading_errors);
        child.wait().await
    };
    tokio::select! {
        () = feeding => Ok(0),
        status = running => Ok(status?.code().unwrap_or(137)),
    }
}

async fn attach(call: ExecCall) -> Result<i32, BoxError> {
    call.stdout.ok_or("no output")?.write_all(b"attached\n").await?;
    Ok(0)
}

async fn logs(call: LogCall) -> Result<(), BoxError> {
    let lines = if call.follow { 100 } else { 10 };
    for number in 0..lines {
        call.output.line(&format!("line {number} of {}", call.container)).await?;
    }
    Ok(())
}

async fn echo(call: PortForwardCall) -> Result<(), BoxError> {
    if call.port != 7 {
        return Err(format!("nothing listens on port {}", call.port).into());
    }
    let (mut reader, mut writer) = call.stream.into_split();
    tokio::io::copy(&mut reader, &mut writer).await?;
    writer.shutdown().await?;
    Ok(())
}

/// Starts a server with a running pod.
fn start() -> Option<Kubectl> {
    let streams = PodStreams::new().exec(exec).attach(attach).logs(logs).port_forward(echo);
    let kubectl = Kubectl::start_with(ApiServer::builder().pod_streams(streams))?;
    kubectl.run("run web --image=busybox");
    let status = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl.run(&format!("patch pod web --subresource=status --type=merge -p {status}"));
    Some(kubectl)
}

/// Runs kubectl with the arguments of a remote command, in one of the protocols.
fn exec_output(kubectl: &Kubectl, websockets: &str, line: &str, arguments: &[&str], input: &str) -> Output {
    let mut command = kubectl.command(line);
    let mut child = command.args(arguments).env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn kubectl_executes_commands() {
    let Some(kubectl) = start() else { return };
    for websockets in ["true", "false"] {
        let output =
            exec_output(&kubectl, websockets, "exec web --", &["sh", "-c", "echo out; echo err >&2; exit 3"], "");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "out\n", "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr, "err\ncommand terminated with exit code 3\n");
        assert_eq!(output.status.code(), Some(3));
        let output = exec_output(&kubectl, websockets, "exec -i web --", &["wc", "-c"], "12345");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "5", "{output:?}");
        let output = exec_output(&kubectl, websockets, "exec web --", &["/no/such/program"], "");
        assert!(String::from_utf8_lossy(&output.stderr).contains("error executing command in container"), "{output:?}");
        let output = exec_output(&kubectl, websockets, "attach web", &[], "");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "attached\n", "{output:?}");
    }
}

#[test]
fn kubectl_copies_files() {
    let Some(kubectl) = start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let content: Vec<u8> = (0..3_000_000u32).map(|number| (number / 7) as u8).collect();
    std::fs::write(path("here"), &content).unwrap();
    for websockets in ["true", "false"] {
        let there = format!("there-{websockets}");
        let back = format!("back-{websockets}");
        let to = exec_output(&kubectl, websockets, "cp", &[&path("here"), &format!("web:{}", path(&there))], "");
        assert!(to.status.success(), "{to:?}");
        assert!(std::fs::read(path(&there)).unwrap() == content);
        let from = exec_output(&kubectl, websockets, "cp", &[&format!("web:{}", path(&there)), &path(&back)], "");
        assert!(from.status.success(), "{from:?}");
        assert!(std::fs::read(path(&back)).unwrap() == content);
    }
}

#[test]
fn kubectl_reads_and_follows_logs() {
    let Some(kubectl) = start() else { return };
    let log = kubectl.run("logs web");
    assert_eq!((log.lines().count(), log.lines().next()), (10, Some("line 0 of web")));
    assert_eq!(kubectl.run("logs -f web").lines().count(), 100);
    let error = kubectl.fail("logs web -c nope");
    assert!(error.contains("container nope is not valid for pod web"), "{error}");
}

#[test]
fn kubectl_forwards_ports() {
    let Some(kubectl) = start() else { return };
    for websockets in ["true", "false"] {
        let mut command = kubectl.command("port-forward pod/web :7");
        let mut child = command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Forwarding from 127.0.0.1:40000 -> 7
        let line = lines.next().unwrap().unwrap();
        let address = line.split(' ').nth(2).unwrap().to_owned();
        let mut sockets: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&address).unwrap()).collect();
        for (number, socket) in sockets.iter_mut().enumerate() {
            socket.write_all(&[number as u8; 10_000]).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
        }
        for (number, socket) in sockets.iter_mut().enumerate() {
            let mut back = Vec::new();
            socket.read_to_end(&mut back).unwrap();
            assert!(back == [number as u8; 10_000], "{websockets}: {} bytes", back.len());
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn kubectl_debugs_a_pod() {
    let Some(kubectl) = start() else { return };
    let mut child = kubectl.command("debug web -i --image=busybox -c debugger").spawn().unwrap();
    // This test is the kubelet, which learns of the container and starts it.
    while kubectl.run("get pod web -o jsonpath={.spec.ephemeralContainers[*].name}") != "debugger" {
        assert!(child.try_wait().unwrap().is_none(), "{:?}", child.wait_with_output());
    }
    let state =
        r#"{"name":"debugger","image":"busybox","imageID":"","ready":false,"restartCount":0,"state":{"running":{}}}"#;
    let status = format!(r#"{{"status":{{"ephemeralContainerStatuses":[{state}]}}}}"#);
    kubectl.run(&format!("patch pod web --subresource=status --type=merge -p {status}"));
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "attached\n", "{output:?}");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn kubectl_drains_a_node() {
    let Some(kubectl) = start() else { return };
    kubectl.with("create -f -", r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"worker"}}"#);
    let pod = |name: &str, owner: &str| {
        let owners = if owner.is_empty() { "[]" } else { owner };
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"app":"{name}"}},"ownerReferences":{owners}}},
            "spec":{{"nodeName":"worker","terminationGracePeriodSeconds":0,"containers":[{{"name":"c","image":"i"}}]}}}}"#
        )
    };
    kubectl.with("create -f -", &pod("lonely", ""));
    let error = kubectl.fail("drain worker");
    assert!(error.contains("declare no controller (use --force to override): default/lonely"), "{error}");
    assert_eq!(kubectl.run("get node worker -o jsonpath={.spec.unschedulable}"), "true");

    kubectl.run("create poddisruptionbudget lonely --selector=app=lonely --min-available=1");
    let running = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl.run(&format!("patch pod lonely --subresource=status --type=merge -p {running}"));
    let allow = |allowed: u32| {
        let status = r#""observedGeneration":1,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1"#;
        let patch = format!(r#"{{"status":{{"disruptionsAllowed":{allowed},{status}}}}}"#);
        kubectl.run(&format!("patch poddisruptionbudget lonely --subresource=status --type=merge -p {patch}"));
    };
    allow(0);
    // The first eviction gets its response within this time, also on a busy machine.
    let error = kubectl.fail("drain worker --force --timeout=10s");
    assert!(error.contains("violate the pod's disruption budget"), "{error}");
    allow(1);
    let said = kubectl.run("drain worker --force --timeout=60s");
    assert!(said.contains("pod/lonely evicted") && said.contains("node/worker drained"), "{said}");
    assert!(kubectl.fail("get pod lonely").contains("not found"));
    kubectl.run("uncordon worker");
    assert_eq!(kubectl.run("get node worker -o jsonpath={.spec.unschedulable}"), "");
}

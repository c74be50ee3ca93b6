//! exec and attach: streams, exit codes, terminals, and the ends of sessions.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use klient::{
    Api, ErrorKind,
    client::streams::{StreamProtocol, TerminalSize},
};
use klient_apiserver::pod_streams::{ExecCall, PodStreams};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{World, pod};

/// Runs a few commands.
async fn shell(mut call: ExecCall) -> Result<i32, Box<dyn std::error::Error + Send + Sync>> {
    let command: Vec<&str> = call.command.iter().map(String::as_str).collect();
    match command[..] {
        ["echo", ref words @ ..] => {
            let text = format!("{}\n", words.join(" "));
            call.stdout.as_mut().unwrap().write_all(text.as_bytes()).await?;
            Ok(0)
        }
        ["fail", code] => {
            call.stderr.as_mut().unwrap().write_all(b"failing\n").await?;
            Ok(code.parse()?)
        }
        ["cat"] => {
            tokio::io::copy(call.stdin.as_mut().unwrap(), call.stdout.as_mut().unwrap()).await?;
            Ok(0)
        }
        ["size"] => {
            let size = call.sizes.as_mut().unwrap().next().await.unwrap();
            let second = call.sizes.as_mut().unwrap().next().await.unwrap();
            let text = format!("{}x{} {}x{}", size.width, size.height, second.width, second.height);
            call.stdout.as_mut().unwrap().write_all(text.as_bytes()).await?;
            Ok(0)
        }
        ["flood", bytes] => {
            let (mut left, chunk) = (bytes.parse::<usize>()?, vec![b'x'; 32 << 10]);
            while left > 0 {
                let taken = left.min(chunk.len());
                call.stdout.as_mut().unwrap().write_all(&chunk[..taken]).await?;
                left -= taken;
            }
            Ok(0)
        }
        ["hang"] => std::future::pending().await,
        _ => Err(format!("{} not found", call.command.join(" ")).into()),
    }
}

async fn world() -> World {
    World::new(PodStreams::new().exec(shell).attach(|mut call| async move {
        call.stdout.as_mut().unwrap().write_all(b"attached").await?;
        Ok(0)
    }))
    .await
}

/// Returns every way to reach the server.
fn ways(world: &World) -> Vec<(Api<Pod>, StreamProtocol, &'static str)> {
    vec![
        (world.pods(), StreamProtocol::Automatic, "v5.channel.k8s.io"),
        (world.pods_in_process(), StreamProtocol::Automatic, "v5.channel.k8s.io"),
        (world.pods(), StreamProtocol::Spdy, "v4.channel.k8s.io"),
        (world.pods_in_process(), StreamProtocol::Spdy, "v4.channel.k8s.io"),
    ]
}

#[tokio::test]
async fn exec_returns_output_and_exit_code() {
    let world = world().await;
    for (pods, protocol, name) in ways(&world) {
        let process = pods.exec("web", ["echo", "hello", "world"]).protocol(protocol).await.unwrap();
        assert_eq!(process.protocol(), name);
        let output = process.output().await.unwrap();
        assert_eq!(output.stdout, b"hello world\n");
        assert!(output.status.success() && output.stderr.is_empty());

        let output = pods.exec("web", ["fail", "3"]).protocol(protocol).await.unwrap().output().await.unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (3, &b"failing\n"[..]));
        let status = pods.exec("web", ["fail", "137"]).protocol(protocol).await.unwrap().wait().await.unwrap();
        assert_eq!(status.signal(), Some(9));

        let error = pods.exec("web", ["nonsense"]).protocol(protocol).await.unwrap().wait().await.unwrap_err();
        assert!(format!("{error:#}").contains("nonsense not found"), "{error:#}");
        assert!(error.to_string().contains("default/web"), "{error}");
    }
}

#[tokio::test]
async fn exec_passes_input_and_its_end() {
    let world = world().await;
    for (pods, protocol, _) in ways(&world) {
        let mut process = pods.exec("web", ["cat"]).stdin(true).protocol(protocol).await.unwrap();
        let (mut stdin, mut stdout) = (process.stdin().unwrap(), process.stdout().unwrap());
        assert!(process.stdin().is_none());
        stdin.write_all(b"first ").await.unwrap();
        let mut first = [0; 6];
        stdout.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"first ");
        stdin.write_all(b"second").await.unwrap();
        stdin.shutdown().await.unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "second");
        assert!(process.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn exec_sends_the_sizes_of_the_terminal() {
    let world = world().await;
    for (pods, protocol, _) in ways(&world) {
        let first = TerminalSize { width: 80, height: 24 };
        let exec = pods.exec("web", ["size"]).tty(true).terminal_size(first).protocol(protocol);
        let mut process = exec.await.unwrap();
        assert!(process.stderr().is_none());
        process.resize(TerminalSize { width: 132, height: 50 }).await.unwrap();
        let output = process.output().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "80x24 132x50");
    }
}

#[tokio::test]
async fn attach_reads_the_output_of_the_process() {
    let world = world().await;
    for (pods, protocol, _) in ways(&world) {
        let output = pods.attach("web").container("app").protocol(protocol).await.unwrap().output().await.unwrap();
        assert_eq!(output.stdout, b"attached");
    }
}

#[tokio::test]
async fn exec_moves_much_data_both_ways() {
    const LENGTH: usize = 20 << 20;
    let world = world().await;
    for (pods, protocol, _) in ways(&world) {
        let mut process = pods.exec("web", ["cat"]).stdin(true).protocol(protocol).await.unwrap();
        let (mut stdin, mut stdout) = (process.stdin().unwrap(), process.stdout().unwrap());
        let sending = async move {
            let mut sum = 0u64;
            for number in 0..LENGTH / 8192 {
                let block: Vec<u8> = (0..8192).map(|at| (at * 7 + number) as u8).collect();
                sum = block.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
                stdin.write_all(&block).await.unwrap();
            }
            stdin.shutdown().await.unwrap();
            sum
        };
        let receiving = async move {
            let (mut sum, mut length) = (0u64, 0);
            while let Some(chunk) = stdout.chunk().await.unwrap() {
                length += chunk.len();
                sum = chunk.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
            }
            assert_eq!(length, LENGTH);
            sum
        };
        let (sent, received) = tokio::join!(sending, receiving);
        assert_eq!(sent, received);
        assert!(process.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn slow_reader_stops_the_process() {
    let world = world().await;
    for (pods, protocol, _) in ways(&world) {
        let exec = pods.exec("web", ["flood", "50000000"]).protocol(protocol);
        let mut process = exec.keep_alive(Duration::from_millis(20), Duration::from_millis(200)).await.unwrap();
        let mut stdout = process.stdout().unwrap();
        // Longer than the limit of the pings: a session that does not read its peer does not consider it dead.
        assert!(tokio::time::timeout(Duration::from_millis(500), process.wait()).await.is_err());
        let mut length = 0;
        while let Some(chunk) = stdout.chunk().await.unwrap() {
            length += chunk.len();
        }
        assert_eq!(length, 50_000_000);
        assert!(process.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn wait_discards_output_that_was_not_taken() {
    let world = world().await;
    for (pods, protocol, _) in ways(&world) {
        let mut process = pods.exec("web", ["flood", "5000000"]).protocol(protocol).await.unwrap();
        assert!(process.wait().await.unwrap().success());
        assert!(process.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn refused_sessions_have_the_error_of_the_server() {
    let world = world().await;
    let pods = world.pods();
    pods.create(&pod("two", &["a", "b"])).await.unwrap();
    let error = pods.exec("absent", ["echo"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("default/absent"), "{error}");
    let error = pods.exec("two", ["echo"]).await.unwrap_err();
    let expected = "a container name must be specified for pod two, choose one of: [a b]";
    assert!(format!("{error:#}").contains(expected), "{error:#}");
    let error = pods.exec("web", ["echo"]).container("nope").await.unwrap_err();
    assert!(format!("{error:#}").contains("container nope is not valid for pod web"), "{error:#}");
    // Each of them was sent once: another protocol would get the same response.
    let posts =
        world.server.requests().into_iter().filter(|((method, path), _)| method == "POST" && path.ends_with("/exec"));
    assert_eq!(posts.count(), 0);
    assert_eq!(pods.exec("web", Vec::<String>::new()).await.unwrap_err().kind(), ErrorKind::Invalid);
    let none = pods.exec("web", ["echo"]).stdout(false).stderr(false);
    assert_eq!(none.await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn exec_ends_after_its_time_limit() {
    let world = world().await;
    for (pods, protocol, _) in ways(&world) {
        let exec = pods.exec("web", ["hang"]).protocol(protocol).timeout(Duration::from_millis(300));
        let error = exec.await.unwrap().wait().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        let exec = pods.exec("web", ["hang"]).protocol(protocol).timeout(Duration::from_millis(300));
        let mut stdout = exec.await.unwrap().stdout().unwrap();
        let error = stdout.chunk().await.unwrap_err();
        assert!(error.to_string().contains("time limit"), "{error}");
    }
}

/// Reports its drop.
struct Reported(tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for Reported {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn dropped_process_cancels_the_function() {
    for is_in_process in [true, false] {
        for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
            let (sender, mut ended) = tokio::sync::mpsc::unbounded_channel::<()>();
            let streams = PodStreams::new().exec(move |call| {
                let reported = Reported(sender.clone());
                async move {
                    let _held = (reported, call);
                    std::future::pending().await
                }
            });
            let world = World::new(streams).await;
            let pods = if is_in_process { world.pods_in_process() } else { world.pods() };
            let process = pods.exec("web", ["hang"]).protocol(protocol).await.unwrap();
            assert!(tokio::time::timeout(Duration::from_millis(50), ended.recv()).await.is_err());
            drop(process);
            let closed = tokio::time::timeout(Duration::from_secs(10), ended.recv()).await;
            assert_eq!(closed, Ok(Some(())), "{protocol:?}");
        }
    }
}

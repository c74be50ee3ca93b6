//! Peers that break: connections cut at every stage, silence, malformed frames, refusals, and ends in any order.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::BytesMut;
use k8s_openapi::api::core::v1::Pod;
use klient::{
    Api, Client, Error, ErrorKind,
    client::{
        config::Config,
        streams::{Process, StreamProtocol},
    },
};
use klient_apiserver::{ApiServer, pod_streams::PodStreams};
use klient_streams::{
    handshake::accept_value,
    spdy::{
        frame::{Frame, FrameReader, FrameWriter},
        header::Headers,
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::pod;

/// A server on the loopback that reads the head of each request and then does as a test says.
struct Peer {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Peer {
    async fn start<F, A>(respond: F) -> Self
    where
        F: Fn(TcpStream, String) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&heads);
        let respond = Arc::new(respond);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                let (respond, seen) = (Arc::clone(&respond), Arc::clone(&seen));
                connections.spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = socket.read_u8().await else { return };
                        head.push(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    seen.lock().unwrap().push(head.clone());
                    respond(socket, head).await;
                });
            }
        });
        Self { port, heads, task }
    }

    /// Starts a server that writes bytes after its switch of protocols, and then closes the connection.
    async fn sending(protocol: StreamProtocol, bytes: Vec<u8>) -> Self {
        Self::start(move |mut socket, head| {
            let bytes = bytes.clone();
            async move {
                socket.write_all(switch(protocol, &head).as_bytes()).await.unwrap();
                let _ = socket.write_all(&bytes).await;
                let _ = socket.shutdown().await;
                // What the client has sent is read, so that the close is no reset.
                let _ = tokio::io::copy(&mut socket, &mut tokio::io::sink()).await;
            }
        })
        .await
    }

    fn pods(&self) -> Api<Pod> {
        let config = Config::new(&format!("http://127.0.0.1:{}", self.port)).unwrap();
        Api::namespaced(Client::from_config(&config).unwrap(), "default")
    }

    /// Returns the methods of the requests that arrived.
    fn methods(&self) -> Vec<String> {
        self.heads.lock().unwrap().iter().map(|head| head.split(' ').next().unwrap().to_owned()).collect()
    }

    /// Runs a command, and returns its error.
    async fn error(&self, protocol: StreamProtocol) -> Error {
        in_time(async {
            match self.pods().exec("web", ["true"]).protocol(protocol).await {
                Ok(mut process) => process.wait().await.unwrap_err(),
                Err(error) => error,
            }
        })
        .await
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it must not hang")
}

/// Returns the head of a response that accepts a request.
fn switch(protocol: StreamProtocol, head: &str) -> String {
    if protocol == StreamProtocol::Spdy {
        return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
                X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"
            .to_owned();
    }
    websocket_switch(head, "v5.channel.k8s.io")
}

fn websocket_switch(head: &str, subprotocol: &str) -> String {
    let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n",
        accept_value(key)
    )
}

/// Returns a frame as a server sends it.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match payload.len() {
        length @ 0..126 => frame.push(length as u8),
        length => {
            frame.push(126);
            frame.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

fn channel(channel: u8, data: &[u8]) -> Vec<u8> {
    frame(2, &[&[channel], data].concat())
}

const SUCCESS: &[u8] = br#"{"metadata":{},"status":"Success"}"#;
const NORMAL_CLOSE: [u8; 4] = [0x88, 2, 0x03, 0xe8];

#[tokio::test]
async fn cut_before_the_switch_is_an_error() {
    for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy, StreamProtocol::Automatic] {
        for response in ["", "HTTP/1.1 101 Swi", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"] {
            let peer = Peer::start(move |mut socket, _| async move {
                let _ = socket.write_all(response.as_bytes()).await;
            })
            .await;
            let error = peer.error(protocol).await;
            assert_eq!(error.kind(), ErrorKind::Transport, "{error:#}");
            assert!(error.to_string().contains("cannot exec in pod default/web"), "{error:#}");
            // The process may have been started, so that the request is not sent again.
            assert_eq!(peer.methods().len(), 1);
        }
    }
}

#[tokio::test]
async fn cut_after_the_switch_is_an_error() {
    let whole = [channel(1, b"some output"), channel(3, SUCCESS)].concat();
    for length in 0..whole.len() {
        // Cutting at each byte of the status, and at some of the output.
        if length > 3 && length < 12 {
            continue;
        }
        let peer = Peer::sending(StreamProtocol::WebSocket, whole[..length].to_vec()).await;
        let error = peer.error(StreamProtocol::WebSocket).await;
        assert_eq!(error.kind(), ErrorKind::Transport, "{length}: {error:#}");
        assert!(error.to_string().contains("connection broke before exec in pod default/web had ended"), "{error:#}");
    }
    for bytes in [&b""[..], b"\x80\x03\x00", &FrameWriter::ping(2)] {
        let peer = Peer::sending(StreamProtocol::Spdy, bytes.to_vec()).await;
        let error = peer.error(StreamProtocol::Spdy).await;
        assert_eq!(error.kind(), ErrorKind::Transport, "{error:#}");
    }
}

/// Accepts as many SPDY streams as a command has.
async fn accept_streams(socket: &mut TcpStream, count: usize) {
    let (mut reader, mut writer) = (FrameReader::default(), FrameWriter::default());
    let mut arrived = BytesMut::new();
    let mut accepted = 0;
    while accepted < count {
        while let Some(frame) = reader.next(&mut arrived).unwrap() {
            if let Frame::SynStream { id, .. } = frame {
                socket.write_all(&writer.syn_reply(id).unwrap()).await.unwrap();
                accepted += 1;
            }
        }
        if accepted < count {
            socket.read_buf(&mut arrived).await.unwrap();
        }
    }
}

#[tokio::test]
async fn silent_peer_is_detected_by_pings() {
    for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
        let peer = Peer::start(move |mut socket, head| async move {
            socket.write_all(switch(protocol, &head).as_bytes()).await.unwrap();
            if protocol == StreamProtocol::Spdy {
                accept_streams(&mut socket, 3).await;
            }
            let _ = tokio::io::copy(&mut socket, &mut tokio::io::sink()).await;
        })
        .await;
        let exec = peer.pods().exec("web", ["true"]).protocol(protocol);
        let exec = exec.keep_alive(Duration::from_millis(20), Duration::from_millis(100));
        let error = in_time(async { exec.await.unwrap().wait().await.unwrap_err() }).await;
        assert!(format!("{error:#}").contains("has not responded to pings"), "{error:#}");
    }
}

#[tokio::test]
async fn malformed_frames_are_errors() {
    let huge = [&[0x82, 127][..], &(5u64 << 20).to_be_bytes()].concat();
    let masked = [&[0x82, 0x85][..], &[1, 2, 3, 4], b"hello"].concat();
    for (bytes, text) in [
        (frame(1, b"text"), "text message"),
        (frame(2, b""), "no channel"),
        (frame(2, b"\xff"), "exactly one channel"),
        (frame(2, b"\xff\x00\x01"), "exactly one channel"),
        (frame(3, b"reserved"), "malformed WebSocket frame"),
        (masked, "malformed WebSocket frame"),
        (vec![0xf2, 0], "malformed WebSocket frame"),
        (huge, "more than"),
    ] {
        let peer = Peer::sending(StreamProtocol::WebSocket, bytes).await;
        let error = peer.error(StreamProtocol::WebSocket).await;
        assert!(format!("{error:#}").contains(text), "{text}: {error:#}");
    }
    for (bytes, text) in [
        (vec![0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1], "another version"),
        (vec![0x80, 3, 0, 2, 0, 0, 0, 8, 0, 0, 0, 1, 1, 2, 3, 4], "not compressed"),
        (vec![0x80, 3, 0, 2, 0, 0xff, 0xff, 0xff], "longer than 64 KiB"),
        (FrameWriter::default().syn_stream(7, &Headers::default()).unwrap().to_vec(), "wrong end"),
    ] {
        let peer = Peer::sending(StreamProtocol::Spdy, bytes).await;
        let error = peer.error(StreamProtocol::Spdy).await;
        assert!(format!("{error:#}").contains(text), "{text}: {error:#}");
    }
}

#[tokio::test]
async fn session_ends_in_any_order() {
    let output = channel(1, b"output");
    let success = channel(3, SUCCESS);
    let split = [channel(3, &SUCCESS[..9]), channel(3, &SUCCESS[9..])].concat();
    let fragments = [&[0x02, 4, 1, b'o', b'u', b't'][..], &[0x80, 3, b'p', b'u', b't']].concat();
    for bytes in [
        [&output[..], &success, &NORMAL_CLOSE].concat(),
        [&output[..], &success].concat(),
        [&output[..], &split, &NORMAL_CLOSE].concat(),
        [&fragments[..], &success, &NORMAL_CLOSE].concat(),
        [&channel(1, b"")[..], &channel(77, b"unknown"), &output, &frame(9, b"ping"), &success].concat(),
    ] {
        let peer = Peer::sending(StreamProtocol::WebSocket, bytes.clone()).await;
        let process = peer.pods().exec("web", ["true"]).await.unwrap();
        let collected = in_time(process.output()).await.unwrap_or_else(|error| panic!("{bytes:?}: {error:#}"));
        assert_eq!(collected.stdout, b"output");
    }
    let without_status = [&output[..], &NORMAL_CLOSE].concat();
    let error = Peer::sending(StreamProtocol::WebSocket, without_status).await.error(StreamProtocol::WebSocket).await;
    assert!(format!("{error:#}").contains("without a status"), "{error:#}");
    let closed = [&output[..], &frame(8, b"\x03\xf3out of memory")].concat();
    let error = Peer::sending(StreamProtocol::WebSocket, closed).await.error(StreamProtocol::WebSocket).await;
    assert!(format!("{error:#}").contains("code 1011: out of memory"), "{error:#}");
    let nonsense = [channel(3, b"not JSON"), NORMAL_CLOSE.to_vec()].concat();
    let error = Peer::sending(StreamProtocol::WebSocket, nonsense).await.error(StreamProtocol::WebSocket).await;
    assert_eq!(error.kind(), ErrorKind::Decode, "{error:#}");
}

/// Starts a server that refuses WebSockets with a response, and passes everything else on to the embedded server.
async fn without_websockets(refusal: impl Fn(&str) -> String + Send + Sync + 'static) -> (Peer, ApiServer) {
    let streams = PodStreams::new().exec(|mut call| async move {
        call.stdout.as_mut().ok_or("no output")?.write_all(b"over SPDY").await?;
        Ok(0)
    });
    let server = ApiServer::builder().pod_streams(streams).start().await.unwrap();
    let pods: Api<Pod> = Api::namespaced(Client::from_service(server.service()), "default");
    pods.create(&pod("web", &["app"])).await.unwrap();
    let listening = Arc::new(server.listen(0).http().anonymous().await.unwrap());
    let refusal = Arc::new(refusal);
    let peer = Peer::start(move |mut socket, head| {
        let (listening, refusal) = (Arc::clone(&listening), Arc::clone(&refusal));
        async move {
            if head.contains("upgrade: websocket") {
                let _ = socket.write_all(refusal(&head).as_bytes()).await;
                return;
            }
            let mut server = TcpStream::connect(listening.address()).await.unwrap();
            server.write_all(head.as_bytes()).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut socket, &mut server).await;
        }
    })
    .await;
    (peer, server)
}

fn refusal(code: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn exec_falls_back_to_spdy_once_per_server() {
    // Each of them is the response of a real server or proxy without WebSockets for exec.
    let refusals: [fn(&str) -> String; 5] = [
        |_| "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned(),
        |_| refusal("400 Bad Request", "unable to upgrade"),
        |_| refusal("500 Internal Server Error", r#"{"kind":"Status","status":"Failure","message":"no","code":500}"#),
        |_| refusal("200 OK", "{}"),
        |head| websocket_switch(head, "v1.channel.k8s.io"),
    ];
    for refusal in refusals {
        let (peer, _server) = without_websockets(refusal).await;
        let pods = peer.pods();
        for _ in 0..3 {
            let output = in_time(async { pods.exec("web", ["true"]).await.unwrap().output().await.unwrap() }).await;
            assert_eq!(output.stdout, b"over SPDY");
        }
        assert_eq!(peer.methods(), ["GET", "POST", "POST", "POST"]);
        let error = pods.exec("web", ["true"]).protocol(StreamProtocol::WebSocket).await.unwrap_err();
        assert!(error.to_string().contains("cannot exec in pod default/web"), "{error:#}");
    }
}

#[tokio::test]
async fn refusals_of_the_user_do_not_fall_back() {
    let status = |code: u16, reason: &str, message: &str| {
        let body = format!(
            r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
        );
        refusal(&format!("{code} Refused"), &body)
    };
    for (response, kind) in [
        (status(401, "Unauthorized", "Unauthorized"), ErrorKind::Unauthorized),
        (status(403, "Forbidden", "users cannot exec"), ErrorKind::Forbidden),
        (status(404, "NotFound", "pods \\\"web\\\" not found"), ErrorKind::NotFound),
        (status(400, "BadRequest", "container x is not valid for pod web"), ErrorKind::Invalid),
        (status(500, "InternalError", "cannot reach pod web"), ErrorKind::Unavailable),
        (status(429, "TooManyRequests", "later"), ErrorKind::TooManyRequests),
    ] {
        let (peer, _server) = without_websockets(move |_| response.clone()).await;
        let error = in_time(async { peer.pods().exec("web", ["true"]).await.unwrap_err() }).await;
        assert_eq!(error.kind(), kind, "{error:#}");
        assert_eq!(peer.methods(), ["GET"]);
    }
}

#[tokio::test]
async fn writer_waits_for_a_peer_that_does_not_read() {
    for protocol in [StreamProtocol::WebSocket, StreamProtocol::Spdy] {
        let peer = Peer::start(move |mut socket, head| async move {
            socket.write_all(switch(protocol, &head).as_bytes()).await.unwrap();
            if protocol == StreamProtocol::Spdy {
                accept_streams(&mut socket, 4).await;
            }
            std::future::pending::<()>().await;
        })
        .await;
        let exec = peer.pods().exec("web", ["cat"]).stdin(true).protocol(protocol);
        let exec = exec.keep_alive(Duration::from_millis(10), Duration::from_millis(100));
        let mut process: Process = in_time(async { exec.await.unwrap() }).await;
        let mut stdin = process.stdin().unwrap();
        let mut written = 0;
        // Longer than the limit of the pings: data is in flight, so that the peer may just be slow.
        let filling = async {
            loop {
                written += stdin.write(&[0; 32 << 10]).await.unwrap();
            }
        };
        assert!(tokio::time::timeout(Duration::from_millis(400), filling).await.is_err());
        // The buffers of the kernel, and a few of this process.
        assert!(written < 16 << 20, "{written}");
        // A peer that never reads again is considered dead after ten times the limit.
        let error = in_time(process.wait()).await.unwrap_err();
        assert!(format!("{error:#}").contains("has not responded to pings"), "{error:#}");
    }
}

#[tokio::test]
async fn request_has_command_streams_and_container() {
    let (peer, _server) = without_websockets(|_| refusal("400 Bad Request", "")).await;
    let exec =
        peer.pods().exec("web", ["sh", "-c", "echo a&b"]).container("app").stdin(true).protocol(StreamProtocol::Spdy);
    in_time(async { exec.await.unwrap().output().await.unwrap() }).await;
    let heads = peer.heads.lock().unwrap();
    let line = heads[0].lines().next().unwrap();
    let query = "command=sh&command=-c&command=echo+a%26b&stdin=true&stdout=true&stderr=true&container=app";
    assert_eq!(line, format!("POST /api/v1/namespaces/default/pods/web/exec?{query} HTTP/1.1"));
    assert!(heads[0].contains("x-stream-protocol-version: v4.channel.k8s.io\r\n"), "{}", heads[0]);
}

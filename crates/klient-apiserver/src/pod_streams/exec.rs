//! Sessions of exec and attach.

use std::time::Duration;

use http::Response;
use klient_core::{Status, StatusReason};
use klient_streams::{
    Io, Stream, StreamWriter,
    channels::{self, Version},
    spdy::{self, Role},
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{BoxError, ExecCall, Function, TerminalSizes, container, handshake};
use crate::{Result, body::ResponseBody, call::Call, verbs::Target};

/// The streams that a client requested.
#[derive(Clone, Copy)]
struct Wanted {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

/// The streams of a session, apart from the status.
#[derive(Default)]
struct Streams {
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    resize: Option<Stream>,
}

pub(super) fn respond(
    call: &Call,
    target: &Target,
    pod: &Value,
    function: &Function<ExecCall, i32>,
) -> Result<Response<ResponseBody>> {
    let container = container(call, pod)?;
    let wanted = Wanted {
        stdin: call.flag("stdin"),
        stdout: call.flag("stdout"),
        stderr: call.flag("stderr"),
        tty: call.flag("tty"),
    };
    if !(wanted.stdin || wanted.stdout || wanted.stderr) {
        let message = "you must specify at least 1 of stdin, stdout, stderr";
        return Err(Box::new(Status::bad_request(message)));
    }
    let versions = [Version::V5.name(), Version::V4.name()];
    let requested = handshake::select(call, &versions, &versions[1..])?;
    let described = ExecCall {
        namespace: target.namespace.clone(),
        pod: target.name().to_owned(),
        container,
        command: call.params("command").map(str::to_owned).collect(),
        tty: wanted.tty,
        stdin: None,
        stdout: None,
        stderr: None,
        sizes: None,
    };
    let function = Function::clone(function);
    let version = match &requested {
        handshake::Requested::WebSocket { protocol } => Version::from_name(protocol),
        handshake::Requested::Spdy { .. } => None,
    };
    Ok(handshake::switch(call, &requested, move |io| async move {
        match version {
            Some(version) => over_websocket(io, version, wanted, described, function).await,
            None => over_spdy(io, wanted, described, function).await,
        }
    }))
}

async fn over_websocket(
    io: Box<dyn Io>,
    version: Version,
    wanted: Wanted,
    call: ExecCall,
    function: Function<ExecCall, i32>,
) {
    let channels = [channels::STDIN, channels::STDOUT, channels::STDERR, channels::STATUS, channels::RESIZE];
    let (session, [stdin, stdout, stderr, status, resize], driver) =
        channels::session(io, Role::Server, version, None, channels);
    let work = async move {
        let streams = Streams {
            stdin: wanted.stdin.then_some(stdin),
            stdout: wanted.stdout.then_some(stdout),
            stderr: wanted.stderr.then_some(stderr),
            resize: wanted.tty.then_some(resize),
        };
        run(call, streams, status.into_writer(), function).await;
        session.close();
        let _ = session.ended().await;
    };
    both(driver, work).await;
}

async fn over_spdy(io: Box<dyn Io>, wanted: Wanted, call: ExecCall, function: Function<ExecCall, i32>) {
    let (connection, driver) = spdy::connection(io, Role::Server, None);
    let work = async move {
        let mut streams = Streams::default();
        let mut status = None;
        let expected = [true, wanted.stdin, wanted.stdout, wanted.stderr, wanted.tty];
        let opening = async {
            for _ in 0..expected.into_iter().filter(|wanted| *wanted).count() {
                let Some(accepted) = connection.accept().await else { return };
                match accepted.headers.get("streamtype") {
                    Some("error") => status = Some(accepted.stream),
                    Some("stdin") => streams.stdin = Some(accepted.stream),
                    Some("stdout") => streams.stdout = Some(accepted.stream),
                    Some("stderr") => streams.stderr = Some(accepted.stream),
                    Some("resize") => streams.resize = Some(accepted.stream),
                    _ => return,
                }
            }
        };
        let is_complete = tokio::time::timeout(OPEN_LIMIT, opening).await.is_ok();
        if let (Some(status), true) = (status, is_complete) {
            run(call, streams, status.into_writer(), function).await;
            // A client that receives GOAWAY stops reading, so that it closes the connection, not this end.
            let _ = tokio::time::timeout(CLOSE_LIMIT, connection.ended()).await;
        }
        connection.close();
        let _ = connection.ended().await;
    };
    both(driver, work).await;
}

/// Drives a session and its work. The work is canceled when the session ends.
pub(super) async fn both(driver: impl Future<Output = ()>, work: impl Future<Output = ()>) {
    let mut driver = std::pin::pin!(driver);
    tokio::select! {
        () = &mut driver => {}
        () = work => {
            // The handles are dropped with the work, which ends the session.
            driver.await;
        }
    }
}

/// Calls the function, and reports its result.
async fn run(mut call: ExecCall, streams: Streams, mut status: StreamWriter, function: Function<ExecCall, i32>) {
    call.stdin = streams.stdin.map(Stream::into_reader);
    call.stdout = streams.stdout.map(Stream::into_writer);
    call.stderr = streams.stderr.map(Stream::into_writer);
    call.sizes = streams.resize.map(|stream| TerminalSizes { stream: stream.into_reader(), arrived: Vec::new() });
    let result = exit_status(function(call).await);
    // The client may have gone.
    let _ = status.write_all(result.to_string().as_bytes()).await;
    let _ = status.shutdown().await;
}

/// Returns the status that ends a session, as the real server sends it.
fn exit_status(result: std::result::Result<i32, BoxError>) -> Value {
    match result {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(error) => {
            let message = format!("Internal error occurred: error executing command in container: {error}");
            let status = Status::failure(StatusReason::InternalError, 500, message);
            let mut value = serde_json::to_value(&status).unwrap_or_default();
            value["details"] =
                json!({"causes": [{"message": format!("error executing command in container: {error}")}]});
            value
        }
    }
}

/// How long a client has to open all streams, as in the real server.
pub(super) const OPEN_LIMIT: Duration = Duration::from_secs(30);
/// How long a client may keep a connection after the end of the process.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

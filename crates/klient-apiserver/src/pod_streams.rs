//! Streams to pods: exec, attach, port-forward and logs, from functions that a test provides.
//!
//! The server has no kubelet and runs no containers. It speaks the protocols of the real server (WebSocket, SPDY, and SPDY
//! in a WebSocket) and calls the functions with plain streams.
//!
//! ```
//! use klient_apiserver::{ApiServer, pod_streams::PodStreams};
//! use tokio::io::AsyncWriteExt as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let streams = PodStreams::new().exec(|mut call| async move {
//!     if let Some(stdout) = &mut call.stdout {
//!         stdout.write_all(call.command.join(" ").as_bytes()).await?;
//!     }
//!     Ok(0)
//! });
//! let server = ApiServer::builder().pod_streams(streams).start().await?;
//! # Ok(())
//! # }
//! ```

mod exec;
mod handshake;
mod log;
mod port_forward;

use std::{fmt, io, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Method, Response};
use klient_core::{Status, StatusReason};
use klient_streams::{Stream, StreamReader, StreamWriter};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{Result, body::ResponseBody, call::Call, verbs::Target};

/// A boxed error of a function.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Running<T> = Pin<Box<dyn Future<Output = std::result::Result<T, BoxError>> + Send>>;
type Function<C, T> = Arc<dyn Fn(C) -> Running<T> + Send + Sync>;

/// The functions that serve the streams of pods. Requests for others get an error.
///
/// A function is canceled when its client disconnects.
#[derive(Clone, Default)]
pub struct PodStreams {
    exec: Option<Function<ExecCall, i32>>,
    attach: Option<Function<ExecCall, i32>>,
    port_forward: Option<Function<PortForwardCall, ()>>,
    logs: Option<Function<LogCall, ()>>,
}

/// A command to run in a container, or a process to attach to.
///
/// Streams that the client did not request are `None`.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExecCall {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// The program and its arguments. Empty if the client attaches.
    pub command: Vec<String>,
    /// Whether the process has a terminal.
    pub tty: bool,
    /// The input.
    pub stdin: Option<StreamReader>,
    /// The output.
    pub stdout: Option<StreamWriter>,
    /// The error output.
    pub stderr: Option<StreamWriter>,
    /// The sizes of the terminal.
    pub sizes: Option<TerminalSizes>,
}

/// A connection to a port of a pod.
#[derive(Debug)]
#[non_exhaustive]
pub struct PortForwardCall {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The port.
    pub port: u16,
    /// The connection.
    pub stream: Stream,
}

/// A request for the log of a container. The function selects the lines.
#[derive(Debug)]
#[non_exhaustive]
pub struct LogCall {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// Whether the client follows the log.
    pub follow: bool,
    /// Whether the client requests the log of the previous run.
    pub previous: bool,
    /// Whether each line must begin with its time.
    pub timestamps: bool,
    /// The number of lines from the end to start with.
    pub tail_lines: Option<u64>,
    /// The maximum age of lines, in seconds.
    pub since_seconds: Option<u64>,
    /// The time of the oldest line.
    pub since_time: Option<String>,
    /// The receiver of the log.
    pub output: LogWriter,
}

/// The receiver of a log.
#[derive(Debug)]
pub struct LogWriter {
    chunks: mpsc::Sender<Bytes>,
}

impl LogWriter {
    /// Writes bytes, which are sent at once.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has disconnected.
    pub async fn write(&self, bytes: impl Into<Bytes>) -> io::Result<()> {
        self.chunks.send(bytes.into()).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Writes a line.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has disconnected.
    pub async fn line(&self, text: &str) -> io::Result<()> {
        self.write(format!("{text}\n")).await
    }
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
// Exhaustive on purpose: the protocol has these two.
pub struct TerminalSize {
    /// The number of columns.
    pub width: u16,
    /// The number of rows.
    pub height: u16,
}

/// The sizes of a terminal, as the client changes them.
#[derive(Debug)]
pub struct TerminalSizes {
    stream: StreamReader,
    arrived: Vec<u8>,
}

impl TerminalSizes {
    /// Returns the next size, or `None` when the client is gone or sends something else.
    pub async fn next(&mut self) -> Option<TerminalSize> {
        loop {
            let mut sizes = serde_json::Deserializer::from_slice(&self.arrived).into_iter();
            if let Some(Ok(size)) = sizes.next() {
                let read = sizes.byte_offset();
                self.arrived.drain(..read);
                return Some(size);
            }
            let chunk = self.stream.chunk().await.ok()??;
            self.arrived.extend_from_slice(&chunk);
            if self.arrived.len() > MAX_SIZES {
                return None;
            }
        }
    }
}

impl PodStreams {
    /// Returns no functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the function that runs commands. It returns the exit code; an error means that the command could not be started.
    #[must_use]
    pub fn exec<F, A>(mut self, function: F) -> Self
    where
        F: Fn(ExecCall) -> A + Send + Sync + 'static,
        A: Future<Output = std::result::Result<i32, BoxError>> + Send + 'static,
    {
        self.exec = Some(Arc::new(move |call| Box::pin(function(call))));
        self
    }

    /// Sets the function that clients attach to. It returns the exit code of the process.
    #[must_use]
    pub fn attach<F, A>(mut self, function: F) -> Self
    where
        F: Fn(ExecCall) -> A + Send + Sync + 'static,
        A: Future<Output = std::result::Result<i32, BoxError>> + Send + 'static,
    {
        self.attach = Some(Arc::new(move |call| Box::pin(function(call))));
        self
    }

    /// Sets the function that handles connections to ports. An error is reported to the client.
    #[must_use]
    pub fn port_forward<F, A>(mut self, function: F) -> Self
    where
        F: Fn(PortForwardCall) -> A + Send + Sync + 'static,
        A: Future<Output = std::result::Result<(), BoxError>> + Send + 'static,
    {
        self.port_forward = Some(Arc::new(move |call| Box::pin(function(call))));
        self
    }

    /// Sets the function that writes logs. After an error, the log just ends.
    #[must_use]
    pub fn logs<F, A>(mut self, function: F) -> Self
    where
        F: Fn(LogCall) -> A + Send + Sync + 'static,
        A: Future<Output = std::result::Result<(), BoxError>> + Send + 'static,
    {
        self.logs = Some(Arc::new(move |call| Box::pin(function(call))));
        self
    }

    /// Handles a request for a subresource of a stored pod.
    pub(crate) fn respond(&self, call: &Call, target: &Target, pod: &Value) -> Result<Response<ResponseBody>> {
        let subresource = target.subresource.as_deref().unwrap_or_default();
        match (subresource, &call.method) {
            ("exec", _) => exec::respond(call, target, pod, self.exec.as_ref().ok_or_else(|| missing(subresource))?),
            ("attach", _) => {
                exec::respond(call, target, pod, self.attach.as_ref().ok_or_else(|| missing(subresource))?)
            }
            ("portforward", _) => {
                port_forward::respond(call, target, self.port_forward.as_ref().ok_or_else(|| missing(subresource))?)
            }
            ("log", &Method::GET) => {
                log::respond(call, target, pod, self.logs.as_ref().ok_or_else(|| missing(subresource))?)
            }
            _ => Err(missing(subresource)),
        }
    }
}

impl fmt::Debug for PodStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodStreams")
            .field("exec", &self.exec.is_some())
            .field("attach", &self.attach.is_some())
            .field("port_forward", &self.port_forward.is_some())
            .field("logs", &self.logs.is_some())
            .finish()
    }
}

fn missing(subresource: &str) -> Box<Status> {
    let message = format!("{subresource} of pods has no function: set it with `ApiServerBuilder::pod_streams`");
    Box::new(Status::failure(StatusReason::Unknown, 501, message))
}

/// Returns the container of a request, with the real server's errors.
fn container(call: &Call, pod: &Value) -> Result<String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let names = |list: &str| {
        let containers = pod["spec"][list].as_array().map(Vec::as_slice).unwrap_or_default();
        containers.iter().filter_map(|container| container["name"].as_str()).collect::<Vec<_>>()
    };
    let all = [names("initContainers"), names("containers"), names("ephemeralContainers")].concat();
    match (call.param("container"), names("containers")[..].as_ref()) {
        (Some(wanted), _) if all.contains(&wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => {
            Err(Box::new(Status::bad_request(format!("container {wanted} is not valid for pod {name}"))))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Box::new(Status::bad_request(format!("a container name must be specified for pod {name}")))),
        (None, _) => {
            let choice = all.join(" ");
            let message = format!("a container name must be specified for pod {name}, choose one of: [{choice}]");
            Err(Box::new(Status::bad_request(message)))
        }
    }
}

/// A size has a few bytes.
const MAX_SIZES: usize = 4096;

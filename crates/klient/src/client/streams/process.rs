//! A process in a container: its streams, its terminal and its end.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use klient_core::Status;
use klient_streams::{StreamReader, StreamWriter, channels, spdy};
use tokio::{
    io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    time::Instant,
};

use super::{exit_status::ExitStatus, terminal::TerminalSize};
use crate::{Error, ErrorKind};

/// A process in a container. Dropping it and its streams closes the session; whether that ends the process is up to
/// the container's runtime.
pub struct Process {
    subject: Subject,
    protocol: String,
    stdin: Option<Stdin>,
    stdout: Option<Stdout>,
    stderr: Option<Stderr>,
    resizer: Option<Resizer>,
    status: StreamReader,
    outcome: Option<Result<ExitStatus, String>>,
    session: AnySession,
    deadline: Option<Instant>,
}

/// The result of a process with everything that it wrote. See [`Process::output`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// The exit status.
    pub status: ExitStatus,
    /// The output.
    pub stdout: Vec<u8>,
    /// The error output. Empty with a terminal, which joins both outputs.
    pub stderr: Vec<u8>,
}

/// The subject of a session, for messages.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) subresource: &'static str,
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) container: Option<String>,
}

/// The streams of an open session.
pub(super) struct Remote {
    pub(super) protocol: String,
    pub(super) stdin: Option<StreamWriter>,
    pub(super) stdout: Option<StreamReader>,
    pub(super) stderr: Option<StreamReader>,
    pub(super) resize: Option<StreamWriter>,
    pub(super) status: StreamReader,
    pub(super) session: AnySession,
}

/// A session of either protocol.
pub(super) enum AnySession {
    Channels(channels::Session),
    Spdy(spdy::Connection),
}

impl From<channels::Session> for AnySession {
    fn from(session: channels::Session) -> Self {
        Self::Channels(session)
    }
}

impl From<spdy::Connection> for AnySession {
    fn from(connection: spdy::Connection) -> Self {
        Self::Spdy(connection)
    }
}

impl AnySession {
    fn close(&self) {
        match self {
            Self::Channels(session) => session.close(),
            Self::Spdy(connection) => connection.close(),
        }
    }

    async fn ended(&self) -> io::Result<()> {
        match self {
            Self::Channels(session) => session.ended().await,
            Self::Spdy(connection) => connection.ended().await,
        }
    }
}

impl Process {
    pub(super) fn new(subject: Subject, remote: Remote, deadline: Option<Instant>) -> Self {
        Self {
            subject,
            protocol: remote.protocol,
            stdin: remote.stdin.map(|stream| Stdin { stream }),
            stdout: remote.stdout.map(|stream| Stdout { stream }),
            stderr: remote.stderr.map(|stream| Stderr { stream }),
            resizer: remote.resize.map(|stream| Resizer { stream }),
            status: remote.status,
            outcome: None,
            session: remote.session,
            deadline,
        }
    }

    pub(super) async fn with_size(mut self, size: TerminalSize) -> Result<Self, Error> {
        self.resize(size).await?;
        Ok(self)
    }

    /// Takes the input, if it was requested and not taken before. Shutting it down or dropping it ends the input.
    pub fn stdin(&mut self) -> Option<Stdin> {
        self.stdin.take()
    }

    /// Takes the output, if it was requested and not taken before.
    ///
    /// A process that writes more than the buffers hold waits until its output is read. Dropping the output discards it.
    pub fn stdout(&mut self) -> Option<Stdout> {
        self.stdout.take()
    }

    /// Takes the error output, if it was requested and not taken before.
    pub fn stderr(&mut self) -> Option<Stderr> {
        self.stderr.take()
    }

    /// Takes the handle that changes the size of the terminal, if there is one and it was not taken before.
    pub fn resizer(&mut self) -> Option<Resizer> {
        self.resizer.take()
    }

    /// Changes the size of the terminal.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has no terminal, if the [`resizer`](Self::resizer) was taken, or if the session
    /// has ended.
    pub async fn resize(&mut self, size: TerminalSize) -> Result<(), Error> {
        match &mut self.resizer {
            Some(resizer) => resizer.resize(size).await,
            None => Err(Error::new(ErrorKind::Invalid, format!("cannot resize: {} has no terminal", self.subject))),
        }
    }

    /// Returns the name of the protocol that the server selected, such as `v5.channel.k8s.io`.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// Waits for the end of the process. Input that was not taken is closed, and output that was not taken is discarded.
    ///
    /// Output that was taken must be read at the same time, or to its end before.
    ///
    /// # Errors
    ///
    /// Returns an error if the process could not be started, if the connection broke before the exit status arrived, or
    /// if the [time limit](super::Exec::timeout) expired. An exit code other than 0 is no error.
    ///
    /// # Cancel safety
    ///
    /// The future can be dropped, and `wait` called again.
    pub async fn wait(&mut self) -> Result<ExitStatus, Error> {
        self.stdin = None;
        self.stdout = None;
        self.stderr = None;
        self.exit_status().await
    }

    /// Waits for the end of the process, and returns everything that it wrote. Input that was not taken is closed.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`wait`](Self::wait).
    pub async fn output(mut self) -> Result<Output, Error> {
        self.stdin = None;
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let (stdout, stderr, status) = tokio::join!(
            collected(stdout.map(|stdout| stdout.stream)),
            collected(stderr.map(|stderr| stderr.stream)),
            self.exit_status()
        );
        // The status is sent after all output, so that the output is complete if there is a status.
        Ok(Output { status: status?, stdout, stderr })
    }

    /// Closes the session, and waits for the server to close it, for at most a second. Output that arrived can still be read.
    pub async fn close(self) {
        self.session.close();
        let _ = self.session.ended().await;
    }

    async fn exit_status(&mut self) -> Result<ExitStatus, Error> {
        match &self.outcome {
            Some(Ok(status)) => return Ok(*status),
            Some(Err(message)) => return Err(Error::new(ErrorKind::Unavailable, message.clone())),
            None => {}
        }
        let reading = read_status(&mut self.status, &self.subject);
        // At the deadline, the session ends with an error of its own.
        let outcome = reading.await.map_err(|error| match self.deadline {
            Some(deadline) if deadline <= Instant::now() => {
                Error::new(ErrorKind::Timeout, format!("time limit expired: {} has not ended", self.subject))
            }
            _ => error,
        });
        self.session.close();
        self.outcome = Some(outcome.as_ref().map_err(ToString::to_string).copied());
        outcome
    }
}

/// Reads the status, which the server sends after all output.
async fn read_status(status: &mut StreamReader, subject: &Subject) -> Result<ExitStatus, Error> {
    let mut text = Vec::new();
    loop {
        let chunk = status.chunk().await.map_err(|error| subject.broken(error))?;
        let is_end = chunk.is_none();
        text.extend_from_slice(&chunk.unwrap_or_default());
        match serde_json::from_slice::<Status>(&text) {
            Ok(status) => {
                let failed = |error: Error| error.context(format!("{subject} failed"));
                return ExitStatus::from_status(status).map_err(failed);
            }
            Err(_) if is_end && text.is_empty() => {
                return Err(subject.broken(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server closed the session without a status",
                )));
            }
            Err(error) if is_end || text.len() > MAX_STATUS => {
                return Err(Error::new(ErrorKind::Decode, format!("{subject} ended with a malformed status"))
                    .with_source(error));
            }
            Err(_) => {}
        }
    }
}

/// Reads a stream until it ends or breaks.
async fn collected(stream: Option<StreamReader>) -> Vec<u8> {
    let mut all = Vec::new();
    if let Some(mut stream) = stream {
        while let Ok(Some(chunk)) = stream.chunk().await {
            all.extend_from_slice(&chunk);
        }
    }
    all
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject { namespace, pod, container, .. } = &self.subject;
        f.debug_struct("Process")
            .field("pod", &format_args!("{namespace}/{pod}"))
            .field("container", container)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

impl Subject {
    fn broken(&self, error: io::Error) -> Error {
        let what = format!("connection broke before {self} had ended");
        Error::new(ErrorKind::Transport, what).with_source(error)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subresource, namespace, pod, container } = self;
        write!(f, "{subresource} in pod {namespace}/{pod}")?;
        match container {
            Some(container) => write!(f, ", container {container}"),
            None => Ok(()),
        }
    }
}

/// The input of a process.
pub struct Stdin {
    stream: StreamWriter,
}

/// The output of a process.
pub struct Stdout {
    stream: StreamReader,
}

/// The error output of a process.
pub struct Stderr {
    stream: StreamReader,
}

/// A handle that changes the size of a terminal.
pub struct Resizer {
    stream: StreamWriter,
}

impl Resizer {
    /// Changes the size of the terminal.
    ///
    /// # Errors
    ///
    /// Returns an error if the session has ended.
    pub async fn resize(&mut self, size: TerminalSize) -> Result<(), Error> {
        let failed = |error| Error::new(ErrorKind::Transport, "cannot resize the terminal").with_source(error);
        let message = format!(r#"{{"Width":{},"Height":{}}}"#, size.width, size.height);
        self.stream.write_all(message.as_bytes()).await.map_err(failed)?;
        self.stream.flush().await.map_err(failed)
    }

    /// Gives the remote terminal the size of this process's terminal, now and after each change, until the session ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the signals of the terminal cannot be received, or if the session has ended.
    #[cfg(unix)]
    pub async fn follow_terminal(&mut self) -> Result<(), Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error| Error::new(ErrorKind::Config, "cannot receive the terminal's signals").with_source(error);
        let mut changes = signal(SignalKind::window_change()).map_err(failed)?;
        loop {
            if let Some(size) = TerminalSize::of_terminal() {
                self.resize(size).await?;
            }
            if changes.recv().await.is_none() {
                return Ok(());
            }
        }
    }
}

impl AsyncWrite for Stdin {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

macro_rules! readers {
    ($($name:ident)*) => {$(
        impl $name {
            /// Returns the next bytes without copying them, or `None` at the end.
            ///
            /// # Errors
            ///
            /// Returns an error if the connection breaks.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses no data.
            pub async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
                self.stream.chunk().await
            }
        }

        impl AsyncRead for $name {
            fn poll_read(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.stream).poll_read(context, buf)
            }
        }

        impl AsyncBufRead for $name {
            fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
                Pin::new(&mut self.get_mut().stream).poll_fill_buf(context)
            }

            fn consume(mut self: Pin<&mut Self>, amount: usize) {
                Pin::new(&mut self.stream).consume(amount);
            }
        }
    )*};
}
readers!(Stdout Stderr);

macro_rules! opaque_debug {
    ($($name:ident)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}
opaque_debug!(Stdin Stdout Stderr Resizer);

/// A status has a few hundred bytes.
const MAX_STATUS: usize = 1 << 20;

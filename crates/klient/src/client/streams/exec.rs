//! Requests to run a command in a container, or to attach to the process that runs in it.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use klient_core::{Query, subresource};
use klient_streams::{
    KeepAlive,
    channels::{self, Version},
    spdy::{self, Headers, Role},
};

use super::{
    process::{Process, Remote, Subject},
    support::{SessionKind, StreamProtocol},
    terminal::TerminalSize,
    upgrade::{Refused, StreamTarget, Upgrade},
};
use crate::{
    Api, Error, ErrorKind,
    client::{endpoint::Endpoint, verbs::ResponseFuture},
};

impl Api<Pod> {
    /// Runs a command in a container.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn hosts(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let output = pods.exec("web", ["cat", "/etc/hosts"]).await?.output().await?;
    /// println!("{}: {}", output.status, String::from_utf8_lossy(&output.stdout));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A process with input, whose output is read as it arrives:
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn sort(pods: klient::Api<Pod>) -> Result<(), Box<dyn std::error::Error>> {
    /// use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    ///
    /// let mut process = pods.exec("web", ["sort"]).container("app").stdin(true).await?;
    /// let mut stdin = process.stdin().expect("requested");
    /// stdin.write_all(b"b\na\n").await?;
    /// stdin.shutdown().await?;
    /// let mut sorted = String::new();
    /// process.stdout().expect("requested by default").read_to_string(&mut sorted).await?;
    /// assert!(process.wait().await?.success());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The user needs the verbs `get` and `create` on `pods/exec`.
    #[doc(alias = "remotecommand")]
    #[doc(alias = "NewWebSocketExecutor")]
    pub fn exec(&self, name: &str, command: impl IntoIterator<Item = impl Into<String>>) -> Exec {
        let command = command.into_iter().map(Into::into).collect();
        Exec { session: SessionOptions::new(self.endpoint(), name), command }
    }

    /// Attaches to the process that runs in a container. Without [`stdin`](Attach::stdin), it only reads the output.
    ///
    /// The user needs the verbs `get` and `create` on `pods/attach`.
    pub fn attach(&self, name: &str) -> Attach {
        Attach { session: SessionOptions::new(self.endpoint(), name) }
    }
}

/// A request to run a command in a container. See [`Api::exec`].
///
/// Awaited, it returns the [`Process`]. Output and error output are requested unless they are switched off.
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Exec {
    session: SessionOptions,
    command: Vec<String>,
}

/// A request to attach to the process of a container. See [`Api::attach`].
///
/// Awaited, it returns the [`Process`]. Output and error output are requested unless they are switched off.
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Attach {
    session: SessionOptions,
}

#[derive(Clone, Debug)]
struct SessionOptions {
    endpoint: Arc<Endpoint>,
    name: String,
    container: Option<String>,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
    terminal_size: Option<TerminalSize>,
    protocol: StreamProtocol,
    timeout: Option<Duration>,
    keep_alive: KeepAlive,
}

/// Writes the chain methods of both requests.
macro_rules! session_methods {
    () => {
        /// Chooses the container; needed if the pod has several.
        pub fn container(mut self, container: impl Into<String>) -> Self {
            self.session.container = Some(container.into());
            self
        }

        /// Sets whether the process gets input. It does not by default.
        pub fn stdin(mut self, wanted: bool) -> Self {
            self.session.stdin = wanted;
            self
        }

        /// Sets whether the output is read. It is by default.
        pub fn stdout(mut self, wanted: bool) -> Self {
            self.session.stdout = wanted;
            self
        }

        /// Sets whether the error output is read. It is by default, except with a terminal, which joins both outputs.
        pub fn stderr(mut self, wanted: bool) -> Self {
            self.session.stderr = wanted;
            self
        }

        /// Sets whether the process has a terminal. It has none by default.
        pub fn tty(mut self, wanted: bool) -> Self {
            self.session.tty = wanted;
            self
        }

        /// Sets the first size of the terminal.
        pub fn terminal_size(mut self, size: TerminalSize) -> Self {
            self.session.terminal_size = Some(size);
            self
        }

        /// Sets the protocol.
        pub fn protocol(mut self, protocol: StreamProtocol) -> Self {
            self.session.protocol = protocol;
            self
        }

        /// Limits the time of the whole session. After it, the session is closed, streams end with an error, and
        /// [`wait`](Process::wait) returns a timeout.
        pub fn timeout(mut self, timeout: Duration) -> Self {
            self.session.timeout = Some(timeout);
            self
        }

        /// Sets how often the server is pinged, and for how long it may be silent.
        pub fn keep_alive(mut self, interval: Duration, limit: Duration) -> Self {
            self.session.keep_alive = KeepAlive::default().interval(interval).limit(limit);
            self
        }
    };
}

impl Exec {
    session_methods!();
}

impl Attach {
    session_methods!();
}

impl IntoFuture for Exec {
    type Output = Result<Process, Error>;
    type IntoFuture = ResponseFuture<'static, Process>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            if self.command.is_empty() {
                return Err(Error::new(ErrorKind::Invalid, "command is empty: name at least the program"));
            }
            let mut query = Query::default();
            for argument in &self.command {
                query.append("command", argument);
            }
            self.session.open(subresource::EXEC, query).await
        })
    }
}

impl IntoFuture for Attach {
    type Output = Result<Process, Error>;
    type IntoFuture = ResponseFuture<'static, Process>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.session.open(subresource::ATTACH, Query::default()).await })
    }
}

impl SessionOptions {
    fn new(endpoint: &Arc<Endpoint>, name: &str) -> Self {
        Self {
            endpoint: Arc::clone(endpoint),
            name: name.to_owned(),
            container: None,
            stdin: false,
            stdout: true,
            stderr: true,
            tty: false,
            terminal_size: None,
            protocol: StreamProtocol::default(),
            timeout: None,
            keep_alive: KeepAlive::default(),
        }
    }

    async fn open(mut self, subresource: &'static str, mut query: Query) -> Result<Process, Error> {
        // A terminal has one output.
        self.stderr &= !self.tty;
        let flags = [("stdin", self.stdin), ("stdout", self.stdout), ("stderr", self.stderr), ("tty", self.tty)];
        if !flags[..3].iter().any(|(_, wanted)| *wanted) {
            let what = "session has no stream: request stdin, stdout or stderr";
            return Err(Error::new(ErrorKind::Invalid, what));
        }
        for (name, _) in flags.into_iter().filter(|(_, wanted)| *wanted) {
            query.append(name, "true");
        }
        if let Some(container) = &self.container {
            query.append("container", container);
        }
        let namespace = self.endpoint.namespace().unwrap_or_default().to_owned();
        let subject = Subject { subresource, namespace, pod: self.name.clone(), container: self.container.clone() };
        let deadline = self.timeout.map(|timeout| crate::deadline::after(tokio::time::Instant::now(), timeout));
        self.keep_alive = self.keep_alive.deadline(deadline);
        let target = StreamTarget { endpoint: Arc::clone(&self.endpoint), pod: self.name.clone(), subresource, query };
        let opening = self.connect(&target);
        let opened = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, opening).await.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Timeout, "time limit of the session expired before it was open"))
            }),
            None => opening.await,
        };
        let remote = opened.map_err(|error| error.context(format!("cannot {subject}")))?;
        let process = Process::new(subject, remote, deadline);
        match self.terminal_size {
            Some(size) if self.tty => process.with_size(size).await,
            _ => Ok(process),
        }
    }

    /// Opens the session in the first protocol that works.
    async fn connect(&self, target: &StreamTarget) -> Result<Remote, Error> {
        let support = &self.endpoint.client.inner.stream_support;
        let mut first: Option<Error> = None;
        for protocol in support.order(SessionKind::Exec, self.protocol) {
            let outcome = match protocol {
                StreamProtocol::Spdy => self.spdy(target).await,
                // Version 4 cannot close the input, which SPDY can.
                _ if self.stdin => self.websocket(target, &[Version::V5]).await,
                _ => self.websocket(target, &[Version::V5, Version::V4]).await,
            };
            match outcome {
                Ok(remote) => {
                    support.opened(SessionKind::Exec, self.protocol, *protocol);
                    return Ok(remote);
                }
                Err(Refused { error, may_fall_back: false }) => return Err(error),
                Err(Refused { error, .. }) => {
                    tracing::debug!(%error, ?protocol, "session refused");
                    // A status of the server says more than a missing switch of protocols.
                    first = Some(match first {
                        Some(first) if first.status().is_some() || error.status().is_none() => first,
                        _ => error,
                    });
                }
            }
        }
        if self.stdin
            && self.protocol != StreamProtocol::Spdy
            && let Ok(remote) = self.websocket(target, &[Version::V4]).await
        {
            return Ok(remote);
        }
        Err(first.unwrap_or_else(|| Error::new(ErrorKind::Transport, "no protocol was requested")))
    }

    async fn websocket(&self, target: &StreamTarget, versions: &[Version]) -> Result<Remote, Refused> {
        let names: Vec<&str> = versions.iter().map(|version| version.name()).collect();
        let Upgrade { io, protocol } = target.websocket(&names).await?;
        let version = Version::from_name(&protocol).unwrap_or(Version::V4);
        let channels = [channels::STDIN, channels::STDOUT, channels::STDERR, channels::STATUS, channels::RESIZE];
        let (session, streams, driver) = channels::session(io, Role::Client, version, Some(self.keep_alive), channels);
        tokio::spawn(driver);
        let [stdin, stdout, stderr, status, resize] = streams;
        Ok(Remote {
            protocol,
            stdin: self.stdin.then(|| stdin.into_writer()),
            stdout: self.stdout.then(|| stdout.into_reader()),
            stderr: self.stderr.then(|| stderr.into_reader()),
            resize: self.tty.then(|| resize.into_writer()),
            status: status.into_reader(),
            session: session.into(),
        })
    }

    async fn spdy(&self, target: &StreamTarget) -> Result<Remote, Refused> {
        let Upgrade { io, protocol } = target.spdy(&["v4.channel.k8s.io"]).await?;
        let (connection, driver) = spdy::connection(io, Role::Client, Some(self.keep_alive));
        tokio::spawn(driver);
        let open = async |kind: &str, wanted: bool| -> Result<Option<klient_streams::Stream>, Refused> {
            if !wanted {
                return Ok(None);
            }
            let opened = connection.open(Headers::new([("streamtype", kind)])).await;
            let failed =
                |error| Error::new(ErrorKind::Transport, format!("cannot open the stream {kind}")).with_source(error);
            Ok(Some(opened.map_err(failed)?))
        };
        // The server starts when all streams that the request names are there.
        let status = open("error", true).await?;
        let stdin = open("stdin", self.stdin).await?;
        let stdout = open("stdout", self.stdout).await?;
        let stderr = open("stderr", self.stderr).await?;
        let resize = open("resize", self.tty).await?;
        // A missing status tells an end from a broken session.
        let output = |stream: klient_streams::Stream| stream.into_reader().ending_at_reset();
        let Some(status) = status else { return Err(Error::new(ErrorKind::Transport, "no status").into()) };
        Ok(Remote {
            protocol,
            stdin: stdin.map(klient_streams::Stream::into_writer),
            stdout: stdout.map(output),
            stderr: stderr.map(output),
            resize: resize.map(klient_streams::Stream::into_writer),
            status: output(status),
            session: connection.into(),
        })
    }
}

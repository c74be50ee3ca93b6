//! The handle of a port-forward, and the connection to the server that its connections share.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use k8s_openapi::api::core::v1::Pod;
use klient_core::{ApiResource, Query, Target, subresource};
use klient_streams::{
    KeepAlive,
    spdy::{self, Headers, Role},
    tunnel::{self, Tunnel},
};
use tokio::net::ToSocketAddrs;

use super::{
    connection::ForwardedConnection,
    listener::ForwardListener,
    statistics::{Counters, ForwardStatistics},
    target::{Candidate, TargetKind, candidates},
};
use crate::{
    Error, ErrorKind,
    client::{
        Client,
        endpoint::Endpoint,
        streams::{
            support::{SessionKind, StreamProtocol},
            upgrade::{Refused, StreamTarget, Upgrade},
        },
    },
};

/// The options of a port-forward.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) kind: TargetKind,
    pub(super) name: String,
    pub(super) port: u16,
    pub(super) protocol: StreamProtocol,
    pub(super) keep_alive: KeepAlive,
}

/// Connections to a port of a pod, through the API server.
///
/// Clones share the connection to the server, which is closed when the last clone, listener and connection are dropped.
/// When it breaks, the next connection opens another one.
///
/// A [`ForwardedConnection`] is an `AsyncRead` and `AsyncWrite`, so that it can carry any client: with hyper, as
/// `hyper::client::conn::http1::handshake(TokioIo::new(forward.connect().await?))`; with tower, as the response of
/// `service_fn(move |_: Uri| ...)`.
#[derive(Clone)]
pub struct PortForward {
    shared: Arc<Shared>,
    port: u16,
}

pub(super) struct Shared {
    settings: Settings,
    /// Held while connecting, so that concurrent connections share one session.
    session: tokio::sync::Mutex<Option<Session>>,
    /// The pod that the last failed connection was to.
    failed_pod: Mutex<Option<String>>,
    requests: AtomicU64,
    pub(super) counters: Counters,
}

/// An upgraded connection to the server.
#[derive(Clone)]
struct Session {
    connection: spdy::Connection,
    pod: Candidate,
}

impl PortForward {
    pub(super) async fn open(settings: Settings) -> Result<Self, Error> {
        let port = settings.port;
        let shared = Shared {
            settings,
            session: tokio::sync::Mutex::default(),
            failed_pod: Mutex::default(),
            requests: AtomicU64::new(0),
            counters: Counters::default(),
        };
        let forward = Self { shared: Arc::new(shared), port };
        // A forbidden or missing target is reported here, not with the first connection.
        let session = forward.shared.session().await?;
        session.pod.port(port)?;
        Ok(forward)
    }

    /// Opens a connection to the port.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no connection to the server and none can be opened. A port that the pod does not
    /// listen on is reported by the first read: the server does not say it before.
    pub async fn connect(&self) -> Result<ForwardedConnection, Error> {
        let opened = self.shared.connect(self.port).await;
        if opened.is_err() {
            self.shared.counters.failed.fetch_add(1, Ordering::Relaxed);
        }
        opened.map_err(|error| error.context(format!("cannot connect to port {} of {}", self.port, self.shared)))
    }

    /// Listens on a local address, and forwards each connection to the port. `localhost:0` chooses a free port.
    ///
    /// # Errors
    ///
    /// Returns an error if the address cannot be bound.
    pub async fn listen(&self, address: impl ToSocketAddrs) -> Result<ForwardListener, Error> {
        ForwardListener::bind(self.clone(), address).await
    }

    /// Returns connections to another port of the same target, over the same connection to the server.
    #[must_use]
    pub fn to_port(&self, port: u16) -> Self {
        Self { shared: Arc::clone(&self.shared), port }
    }

    /// Returns the name of the pod that connections are forwarded to now, if there is a connection to the server.
    pub async fn pod(&self) -> Option<String> {
        let session = self.shared.session.lock().await;
        session.as_ref().filter(|session| !session.connection.has_ended()).map(|session| session.pod.name.clone())
    }

    /// Returns the counters of all connections.
    pub fn statistics(&self) -> ForwardStatistics {
        self.shared.counters.read()
    }
}

impl Shared {
    async fn connect(self: &Arc<Self>, port: u16) -> Result<ForwardedConnection, Error> {
        let mut is_retry = false;
        loop {
            let session = self.session().await?;
            let port = session.pod.port(port)?;
            match self.open_streams(&session, port).await {
                // The session broke before the pod could see the connection.
                Err(error) if session.connection.has_ended() && !is_retry => {
                    tracing::debug!(%error, "port-forward session ended, reconnecting");
                    is_retry = true;
                }
                Err(error) => {
                    return Err(Error::new(ErrorKind::Transport, "pod refused the connection").with_source(error));
                }
                Ok((data, error)) => {
                    let pod = session.pod.name.clone();
                    return Ok(ForwardedConnection::new(Arc::clone(self), pod, data, error));
                }
            }
        }
    }

    /// Opens the two streams of a connection, at once.
    async fn open_streams(
        &self,
        session: &Session,
        port: u16,
    ) -> std::io::Result<(klient_streams::Stream, klient_streams::StreamReader)> {
        let (port, request) = (port.to_string(), self.requests.fetch_add(1, Ordering::Relaxed).to_string());
        let open = |kind: &str| {
            let headers = Headers::new([("streamtype", kind), ("port", &port), ("requestid", &request)]);
            session.connection.open(headers)
        };
        let (error, data) = tokio::try_join!(open("error"), open("data"))?;
        let (error, writer) = error.into_split();
        // Nothing is ever sent on it.
        drop(writer);
        Ok((data, error))
    }

    /// Returns the session, or opens one.
    async fn session(&self) -> Result<Session, Error> {
        let mut current = self.session.lock().await;
        if let Some(session) = current.as_ref().filter(|session| !session.connection.has_ended()) {
            return Ok(session.clone());
        }
        *current = None;
        let avoided = self.failed_pod.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut last = None;
        for pod in candidates(&self.settings, avoided.as_deref()).await?.into_iter().take(MAX_CANDIDATES) {
            match self.dial(&pod).await {
                Ok(connection) => {
                    self.counters.sessions.fetch_add(1, Ordering::Relaxed);
                    let session = Session { connection, pod };
                    *current = Some(session.clone());
                    return Ok(session);
                }
                Err(error) => last = Some(error.context(format!("cannot forward ports of {self}"))),
            }
        }
        Err(last.unwrap_or_else(|| Error::new(ErrorKind::Unavailable, format!("{self} has no pod"))))
    }

    /// Opens a session with a pod in the first protocol that works.
    async fn dial(&self, pod: &Candidate) -> Result<spdy::Connection, Error> {
        let Settings { client, namespace, protocol: wanted, keep_alive, .. } = &self.settings;
        let endpoint = Endpoint::new(client.clone(), ApiResource::of::<Pod>(), Target::Namespace(namespace.clone()));
        let target = StreamTarget {
            endpoint: Arc::new(endpoint),
            pod: pod.name.clone(),
            subresource: subresource::PORT_FORWARD,
            query: Query::default(),
        };
        let support = &client.inner.stream_support;
        let mut first: Option<Error> = None;
        for protocol in support.order(SessionKind::PortForward, *wanted) {
            let upgraded = match protocol {
                StreamProtocol::Spdy => target.spdy(&["portforward.k8s.io"]).await,
                _ => target.websocket(&[tunnel::PROTOCOL]).await,
            };
            match upgraded {
                Ok(Upgrade { io, .. }) => {
                    support.opened(SessionKind::PortForward, *wanted, *protocol);
                    let keep_alive = Some(*keep_alive);
                    return Ok(if *protocol == StreamProtocol::Spdy {
                        let (connection, driver) = spdy::connection(io, Role::Client, keep_alive);
                        tokio::spawn(driver);
                        connection
                    } else {
                        let tunnel = Tunnel::new(io, Role::Client);
                        let (connection, driver) = spdy::connection(tunnel, Role::Client, keep_alive);
                        tokio::spawn(driver);
                        connection
                    });
                }
                Err(Refused { error, may_fall_back: false }) => return Err(error),
                Err(Refused { error, .. }) => {
                    tracing::debug!(%error, ?protocol, "session refused");
                    first = Some(match first {
                        Some(first) if first.status().is_some() || error.status().is_none() => first,
                        _ => error,
                    });
                }
            }
        }
        Err(first.unwrap_or_else(|| Error::new(ErrorKind::Transport, "no protocol was requested")))
    }

    /// Records that a pod did not serve a connection, so that another pod is chosen for the next one.
    pub(super) fn connection_failed(&self, pod: &str) {
        self.counters.failed.fetch_add(1, Ordering::Relaxed);
        if self.settings.kind == TargetKind::Pod {
            return;
        }
        *self.failed_pod.lock().unwrap_or_else(PoisonError::into_inner) = Some(pod.to_owned());
        // Other connections keep the session. If it is being replaced now, there is nothing to do.
        if let Ok(mut session) = self.session.try_lock()
            && session.as_ref().is_some_and(|session| session.pod.name == pod)
        {
            *session = None;
        }
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { namespace, name, kind, .. } = &self.settings;
        write!(f, "{} {namespace}/{name}", format!("{kind:?}").to_lowercase())
    }
}

impl fmt::Debug for PortForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortForward")
            .field("target", &format_args!("{}", self.shared))
            .field("port", &self.port)
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

/// The number of pods of a target that are tried for one session.
const MAX_CANDIDATES: usize = 3;

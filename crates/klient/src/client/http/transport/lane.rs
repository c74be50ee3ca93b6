//! A set of connections for one type of request.
//!
//! Over HTTP/2, requests share connections up to a number of streams each. Connections are added when all are full, so
//! that no request queues behind long responses. Over HTTP/1.1, each request has a connection, which is reused
//! afterwards.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{
    connect::{Connected, Connector},
    connection::{Http1, Http2, Refused},
};
use crate::{
    Error, ErrorKind,
    client::http::{body::Body, shared_error::copy_of},
};

/// The settings of a lane's connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneSettings {
    /// The number of requests that share an HTTP/2 connection, if the server allows as many.
    pub(super) max_streams: usize,
    /// The number of unread bytes of one response that may be in flight.
    pub(super) stream_window: u32,
    /// Whether responses end when there are newer certificates than those of their connection.
    pub(super) ends_after_rotation: bool,
}

impl LaneSettings {
    pub(super) const REQUESTS: Self = Self { max_streams: 64, stream_window: 2 << 20, ends_after_rotation: false };
    // Watches that are not read for a moment must not use up the window of the others.
    pub(super) const WATCHES: Self = Self { max_streams: 64, stream_window: 512 << 10, ends_after_rotation: true };

    /// Returns a window for all streams at their maximum at once.
    pub(super) fn connection_window(self) -> u32 {
        self.stream_window.saturating_mul(u32::try_from(self.max_streams).unwrap_or(u32::MAX)).min(1 << 30)
    }
}

pub(super) struct Lane {
    connector: Arc<Connector>,
    settings: LaneSettings,
    connections: Mutex<Connections>,
    idle: Arc<IdleHttp1>,
    /// Held while connecting, unless the server is known to need a connection per request.
    connecting: tokio::sync::Mutex<()>,
    /// Notified when a connection has a free stream again.
    freed: Arc<Notify>,
    /// The number of completed connection attempts that were made under `connecting`.
    attempts: AtomicU64,
    failure: Mutex<Option<Failure>>,
    protocol: AtomicU8,
}

/// The last connection attempt that failed, for all requests that waited for it.
struct Failure {
    attempt: u64,
    error: Arc<Error>,
}

type Connections = Vec<Arc<Http2>>;

/// Connections that wait for their next request.
#[derive(Default)]
pub(super) struct IdleHttp1 {
    connections: Mutex<Vec<Http1>>,
}

const UNKNOWN: u8 = 0;
const HTTP1: u8 = 1;
const HTTP2: u8 = 2;
const MAX_IDLE: usize = 25;
/// The number of retries of a request that the server cannot have processed.
const MAX_NOT_EXECUTED: usize = 4;

enum Ready {
    Http1(Http1),
    Http2(super::connection::Stream),
}

impl Ready {
    /// Returns the generation of the certificates that the connection was opened with.
    fn generation(&self) -> u64 {
        match self {
            Self::Http1(connection) => connection.generation(),
            Self::Http2(stream) => stream.generation(),
        }
    }
}

impl Lane {
    pub(super) fn new(connector: Arc<Connector>, settings: LaneSettings) -> Self {
        Self {
            connector,
            settings,
            connections: Mutex::default(),
            idle: Arc::default(),
            connecting: tokio::sync::Mutex::default(),
            freed: Arc::default(),
            attempts: AtomicU64::new(0),
            failure: Mutex::default(),
            protocol: AtomicU8::new(UNKNOWN),
        }
    }

    pub(super) fn authority(&self) -> &str {
        self.connector.authority()
    }

    /// Sends a request to upgrade a connection, on one of its own.
    #[cfg(feature = "streams")]
    pub(super) async fn upgrade(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, Error> {
        self.connector.upgrade(request).await
    }

    pub(super) async fn send(&self, mut request: http::Request<Bytes>) -> Result<http::Response<Body>, Error> {
        let mut not_executed = 0;
        loop {
            let ready = self.ready().await?;
            let generation = ready.generation();
            let outcome = match ready {
                Ready::Http1(connection) => {
                    connection.send(self.connector.for_http1(request)?, Arc::clone(&self.idle)).await
                }
                Ready::Http2(stream) => stream.send(self.connector.for_http2(request)?).await,
            };
            match outcome {
                Ok(mut response) => {
                    if self.settings.ends_after_rotation
                        && let Some(rotation) = self.connector.rotation(generation)
                    {
                        response.extensions_mut().insert(rotation);
                    }
                    return match self.connector.refusal(&response) {
                        Some(refusal) => Err(refusal),
                        None => Ok(response),
                    };
                }
                // Nothing was executed, so the request can be sent on another connection, whatever its verb.
                Err(Refused::NotExecuted(same)) if not_executed < MAX_NOT_EXECUTED => {
                    not_executed += 1;
                    request = *same;
                }
                Err(Refused::NotExecuted(_)) => {
                    let what = format!("{} refuses requests or closes new connections immediately", self.authority());
                    return Err(Error::new(ErrorKind::Transport, what));
                }
                Err(Refused::Failed(error)) => {
                    return Err(super::broken(format!("connection to {} broke", self.authority()), error));
                }
            }
        }
    }

    /// Returns a connection with a free stream.
    async fn ready(&self) -> Result<Ready, Error> {
        if let Some(ready) = self.existing() {
            return Ok(ready);
        }
        let known = self.protocol.load(Ordering::Relaxed);
        if known == HTTP1 {
            return self.connect().await;
        }
        // Concurrent requests must not open many connections if one is enough, nor wait for one failure after another.
        let seen = self.attempts.load(Ordering::Acquire);
        let connecting = loop {
            // The lock holder may wait for a slow server, so a stream that becomes free meanwhile is used.
            let connecting = tokio::select! {
                connecting = self.connecting.lock() => Some(connecting),
                () = self.freed.notified() => None,
            };
            match (self.existing(), connecting) {
                (Some(ready), _) => return Ok(ready),
                (None, Some(connecting)) => break connecting,
                (None, None) => {}
            }
        };
        if let Some(young) = self.young() {
            young.settle().await;
            if let Some(ready) = self.existing() {
                return Ok(ready);
            }
        }
        if let Some(failure) = &*lock(&self.failure)
            && failure.attempt > seen
        {
            return Err(copy_of(&failure.error));
        }
        // HTTP/1.1 was detected while waiting: from here on, all requests connect in parallel.
        if self.protocol.load(Ordering::Relaxed) == HTTP1 {
            drop(connecting);
            return self.connect().await;
        }
        let connected = self.connect().await;
        let attempt = self.attempts.fetch_add(1, Ordering::AcqRel) + 1;
        connected.map_err(|error| {
            let error = Arc::new(error);
            *lock(&self.failure) = Some(Failure { attempt, error: Arc::clone(&error) });
            copy_of(&error)
        })
    }

    fn existing(&self) -> Option<Ready> {
        let generation = self.connector.generation();
        if self.protocol.load(Ordering::Relaxed) == HTTP1 {
            return self.idle.take(generation).map(Ready::Http1);
        }
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.is_usable(generation));
        connections
            .iter()
            .find_map(|connection| connection.stream(self.settings.max_streams, &self.freed))
            .map(Ready::Http2)
    }

    /// Returns a connection that is full only because the server's settings are not known yet.
    fn young(&self) -> Option<Arc<Http2>> {
        let generation = self.connector.generation();
        let connections = lock(&self.connections);
        connections.iter().find(|connection| connection.is_usable(generation) && connection.is_young()).cloned()
    }

    async fn connect(&self) -> Result<Ready, Error> {
        match self.connector.connect(self.settings).await? {
            Connected::Http1(connection) => {
                self.protocol.store(HTTP1, Ordering::Relaxed);
                Ok(Ready::Http1(connection))
            }
            Connected::Http2(connection) => {
                self.protocol.store(HTTP2, Ordering::Relaxed);
                let connection = Arc::new(connection);
                let stream = connection.first_stream(&self.freed);
                lock(&self.connections).push(connection);
                Ok(Ready::Http2(stream))
            }
        }
    }
}

impl IdleHttp1 {
    /// Takes the most recently used connection, so that the others can be closed.
    fn take(&self, generation: u64) -> Option<Http1> {
        let mut connections = lock(&self.connections);
        connections.retain_mut(|connection| connection.is_usable(generation));
        connections.pop()
    }

    /// Stores a connection whose response was read to the end.
    pub(super) fn put(&self, mut connection: Http1) {
        let mut connections = lock(&self.connections);
        if connections.len() < MAX_IDLE && connection.is_open() {
            connections.push(connection);
        }
    }
}

/// Locks a list. A panic elsewhere does not leave it inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

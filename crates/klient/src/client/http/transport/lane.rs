//! A set of connections for one sort of request.
//!
//! Over HTTP/2, requests share connections up to a number of streams each, and connections are added when all are full:
//! nothing queues behind long answers. Over HTTP/1.1, each request has a connection, and finished ones are used again.

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
    client::http::{body::Body, shared_error::told},
};

/// How the connections of a lane are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneSettings {
    /// How many requests share an HTTP/2 connection, if the server allows as many.
    pub(super) max_streams: usize,
    /// How much of one answer may be under way unread.
    pub(super) stream_window: u32,
}

impl LaneSettings {
    pub(super) const REQUESTS: Self = Self { max_streams: 64, stream_window: 2 << 20 };
    // Watches that nobody reads for a moment must not use up the window of the others.
    pub(super) const WATCHES: Self = Self { max_streams: 64, stream_window: 512 << 10 };

    /// Enough for every stream to be full at once.
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
    /// Told when a connection has room again.
    freed: Arc<Notify>,
    /// How many attempts to connect have ended, of those made under `connecting`.
    attempts: AtomicU64,
    failure: Mutex<Option<Failure>>,
    protocol: AtomicU8,
}

/// The last attempt to connect that failed, for all who waited for it.
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
/// Further tries for a request that the server cannot have looked at.
const MAX_UNDONE: usize = 4;

enum Ready {
    Http1(Http1),
    Http2(super::connection::Stream),
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

    pub(super) async fn send(&self, mut request: http::Request<Bytes>) -> Result<http::Response<Body>, Error> {
        let mut undone = 0;
        loop {
            let outcome = match self.ready().await? {
                Ready::Http1(connection) => {
                    connection.send(self.connector.for_http1(request)?, Arc::clone(&self.idle)).await
                }
                Ready::Http2(stream) => stream.send(self.connector.for_http2(request)?).await,
            };
            match outcome {
                Ok(response) => {
                    return match self.connector.refusal(&response) {
                        Some(refusal) => Err(refusal),
                        None => Ok(response),
                    };
                }
                // Nothing was done about it: whatever the verb, it is safe to send it elsewhere.
                Err(Refused::Undone(same)) if undone < MAX_UNDONE => {
                    undone += 1;
                    request = *same;
                }
                Err(Refused::Undone(_)) => {
                    let what = format!("{} refuses requests or closes connections at once", self.authority());
                    return Err(Error::new(ErrorKind::Transport, what));
                }
                Err(Refused::Failed(error)) => {
                    return Err(super::broken(format!("the connection to {} broke", self.authority()), error));
                }
            }
        }
    }

    /// A connection with room for one more request.
    async fn ready(&self) -> Result<Ready, Error> {
        if let Some(ready) = self.existing() {
            return Ok(ready);
        }
        let known = self.protocol.load(Ordering::Relaxed);
        if known == HTTP1 {
            return self.connect().await;
        }
        // Many requests at once must not make many connections where one does, nor wait for one failure after another.
        let seen = self.attempts.load(Ordering::Acquire);
        let connecting = loop {
            // Whoever has the lock may wait for a slow server; what gets free in the meantime will do.
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
            return Err(told(&failure.error));
        }
        // Found out while waiting: from here on, all of them connect side by side.
        if self.protocol.load(Ordering::Relaxed) == HTTP1 {
            drop(connecting);
            return self.connect().await;
        }
        let connected = self.connect().await;
        let attempt = self.attempts.fetch_add(1, Ordering::AcqRel) + 1;
        connected.map_err(|error| {
            let error = Arc::new(error);
            *lock(&self.failure) = Some(Failure { attempt, error: Arc::clone(&error) });
            told(&error)
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

    /// A connection that is full only because its server has not said yet how much it takes.
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
    /// The connection that was used last: the others get the chance to be closed.
    fn take(&self, generation: u64) -> Option<Http1> {
        let mut connections = lock(&self.connections);
        connections.retain_mut(|connection| connection.is_usable(generation));
        connections.pop()
    }

    /// Keeps a connection whose answer was read to the end.
    pub(super) fn put(&self, mut connection: Http1) {
        let mut connections = lock(&self.connections);
        if connections.len() < MAX_IDLE && connection.is_open() {
            connections.push(connection);
        }
    }
}

/// The lists stay whole whatever panics elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

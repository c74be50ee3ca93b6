//! One connection, and the answers that stream in on it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
    rt::{Read, Write},
};
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;

use super::lane::IdleHttp1;
use crate::{client::body::Body, error::BoxError};

/// Why a request has no answer.
pub(super) enum Refused {
    /// The server cannot have done anything about it, as it did not get it or said so; here it is.
    Undone(Box<http::Request<Bytes>>),
    Failed(BoxError),
}

impl Refused {
    fn from_error(mut error: TrySendError<http::Request<Full<Bytes>>>) -> Self {
        match error.take_message() {
            Some(request) => Self::Undone(Box::new(request.map(take_bytes))),
            None => Self::Failed(error.into_error().into()),
        }
    }
}

/// Whether the server has said that it did not look at a request: it ended the connection before that stream, or refused
/// just the stream. These are the two cases in which HTTP/2 promises that nothing was done.
fn is_undone(error: &hyper::Error) -> bool {
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            // A stream that the server may have looked at ends with an error of the connection instead.
            let ended_before = error.is_go_away();
            let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (ended_before || refused);
        }
        next = error.source();
    }
    false
}

/// The bytes of a body that nobody has read from.
fn take_bytes(body: Full<Bytes>) -> Bytes {
    let mut body = std::pin::pin!(body);
    match body.as_mut().poll_frame(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    }
}

/// The task that drives a connection; it ends with its owner.
pub(super) struct Driver {
    task: tokio::task::AbortHandle,
}

impl Driver {
    pub(super) fn spawn<F>(connection: F) -> Self
    where
        F: Future<Output = Result<(), hyper::Error>> + Send + 'static,
    {
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = &error as &dyn std::error::Error, "connection ended");
            }
        });
        Self { task: task.abort_handle() }
    }

    /// Drives an HTTP/2 connection, and keeps track of how many streams its server allows.
    pub(super) fn spawn_http2<T>(
        mut connection: http2::Connection<T, Full<Bytes>, TokioExecutor>,
    ) -> (Self, Arc<AtomicUsize>)
    where
        T: Read + Write + Send + Unpin + 'static,
    {
        let allowed = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let shared = Arc::clone(&allowed);
        let driver = Self::spawn(std::future::poll_fn(move |context| {
            let polled = Pin::new(&mut connection).poll(context);
            shared.store(connection.current_max_send_streams(), Ordering::Relaxed);
            polled
        }));
        (driver, allowed)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that many requests share.
pub(super) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    streams: AtomicUsize,
    /// How many streams the server allows, as far as it has said.
    allowed: Arc<AtomicUsize>,
    generation: u64,
    retire_at: Instant,
    /// The server refused a request here: it is about to end the connection, or full beyond what it said.
    has_refused: AtomicBool,
    _driver: Driver,
}

impl Http2 {
    pub(super) fn new(
        sender: http2::SendRequest<Full<Bytes>>,
        (driver, allowed): (Driver, Arc<AtomicUsize>),
        generation: u64,
        max_age: Duration,
    ) -> Self {
        let retire_at = Instant::now() + max_age;
        let (streams, has_refused) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { sender, streams, allowed, generation, retire_at, has_refused, _driver: driver }
    }

    /// Whether new requests may go here: it is open, young, and was made with the newest credentials.
    pub(super) fn is_usable(&self, generation: u64) -> bool {
        let is_wanted = self.generation == generation && Instant::now() < self.retire_at;
        is_wanted && !self.sender.is_closed() && !self.has_refused.load(Ordering::Relaxed)
    }

    /// Room for a request, if there is any.
    pub(super) fn stream(self: &Arc<Self>, max_streams: usize) -> Option<Stream> {
        let allowed = max_streams.min(self.allowed.load(Ordering::Relaxed)).max(1);
        let taken = self
            .streams
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |streams| (streams < allowed).then_some(streams + 1));
        taken.is_ok().then(|| Stream { connection: Arc::clone(self) })
    }

    /// Room for the first request, before the server has said how much there is.
    pub(super) fn first_stream(self: &Arc<Self>) -> Stream {
        self.streams.fetch_add(1, Ordering::AcqRel);
        Stream { connection: Arc::clone(self) }
    }
}

/// Room for one request on a shared connection, given back when dropped.
pub(super) struct Stream {
    connection: Arc<Http2>,
}

impl Stream {
    pub(super) async fn send(self, request: http::Request<Full<Bytes>>) -> Result<http::Response<Body>, Refused> {
        let mut sender = self.connection.sender.clone();
        let copy = request.clone();
        let response = match sender.try_send_request(request).await {
            Ok(response) => response,
            Err(error) if error.message().is_none() && is_undone(error.error()) => {
                self.connection.has_refused.store(true, Ordering::Relaxed);
                return Err(Refused::Undone(Box::new(copy.map(take_bytes))));
            }
            Err(error) => return Err(Refused::from_error(error)),
        };
        Ok(response.map(|incoming| Body::new(Answer { incoming, hold: Some(Hold::Stream { _stream: self }) })))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connection for one request at a time.
pub(super) struct Http1 {
    sender: http1::SendRequest<Full<Bytes>>,
    generation: u64,
    idle_since: Instant,
    retire_at: Instant,
    _driver: Driver,
}

impl Http1 {
    pub(super) fn new(
        sender: http1::SendRequest<Full<Bytes>>,
        driver: Driver,
        generation: u64,
        max_age: Duration,
    ) -> Self {
        let now = Instant::now();
        Self { sender, generation, idle_since: now, retire_at: now + max_age, _driver: driver }
    }

    pub(super) fn is_open(&self) -> bool {
        let now = Instant::now();
        !self.sender.is_closed() && now < self.retire_at && now < self.idle_since + MAX_IDLE_TIME
    }

    /// Whether new requests may go here: it is open, young, and was made with the newest credentials.
    pub(super) fn is_usable(&self, generation: u64) -> bool {
        self.is_open() && self.generation == generation
    }

    pub(super) async fn send(
        mut self,
        request: http::Request<Full<Bytes>>,
        idle: Arc<IdleHttp1>,
    ) -> Result<http::Response<Body>, Refused> {
        // The answer before was read to its end, so this takes a moment at most, or fails.
        if self.sender.ready().await.is_err() {
            return Err(Refused::Undone(Box::new(request.map(take_bytes))));
        }
        let response = self.sender.try_send_request(request).await.map_err(Refused::from_error)?;
        let hold = Hold::Connection { connection: Box::new(self), idle };
        Ok(response.map(|incoming| Body::new(Answer { incoming, hold: Some(hold) })))
    }
}

/// Servers and balancers close idle connections after a minute or more.
const MAX_IDLE_TIME: Duration = Duration::from_secs(50);

/// An answer that streams in, and what it holds until it ends.
struct Answer {
    incoming: Incoming,
    hold: Option<Hold>,
}

enum Hold {
    Stream { _stream: Stream },
    Connection { connection: Box<Http1>, idle: Arc<IdleHttp1> },
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(context);
        if let Poll::Ready(None) = polled
            && let Some(Hold::Connection { mut connection, idle }) = self.hold.take()
        {
            connection.idle_since = Instant::now();
            idle.put(*connection);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.incoming.size_hint()
    }
}

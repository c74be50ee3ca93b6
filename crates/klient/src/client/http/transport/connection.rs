//! One connection, and the responses that are streamed on it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
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
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::lane::IdleHttp1;
use crate::{client::http::body::Body, error::BoxError};

/// The reason why a request has no response.
pub(super) enum Refused {
    /// The server cannot have executed the request, which is returned.
    NotExecuted(Box<http::Request<Bytes>>),
    Failed(BoxError),
}

impl Refused {
    fn from_error(mut error: TrySendError<http::Request<Full<Bytes>>>) -> Self {
        match error.take_message() {
            Some(request) => Self::NotExecuted(Box::new(request.map(take_bytes))),
            None => Self::Failed(error.into_error().into()),
        }
    }
}

/// Returns whether the server reported that it did not process a request: it closed the connection before that stream,
/// or refused the stream. In these two cases, HTTP/2 guarantees that nothing was executed.
fn is_not_executed(error: &hyper::Error) -> bool {
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            // A stream that the server may have processed ends with a connection error instead.
            let ended_before = error.is_go_away();
            let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (ended_before || refused);
        }
        next = error.source();
    }
    false
}

/// Returns the bytes of an unread body.
fn take_bytes(body: Full<Bytes>) -> Bytes {
    let mut body = std::pin::pin!(body);
    match body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    }
}

/// The task that drives a connection, aborted when the driver is dropped.
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
                tracing::debug!(error = &error as &dyn std::error::Error, "connection closed");
            }
        });
        Self { task: task.abort_handle() }
    }

    /// Drives an HTTP/2 connection, and tracks how many streams its server allows.
    pub(super) fn spawn_http2<T>(
        mut connection: http2::Connection<T, Full<Bytes>, TokioExecutor>,
    ) -> (Self, watch::Receiver<usize>)
    where
        T: Read + Write + Send + Unpin + 'static,
    {
        let (sender, allowed) = watch::channel(connection.current_max_send_streams());
        // hyper reads from the socket in its own task and does not report the server's settings, so they are polled
        // until they arrive or the time limit expires.
        let mut polls = SETTLE_TIME.as_millis() / POLL_INTERVAL.as_millis();
        let mut next_look = Box::pin(tokio::time::sleep(POLL_INTERVAL));
        let driver = Self::spawn(std::future::poll_fn(move |context| {
            let polled = Pin::new(&mut connection).poll(context);
            loop {
                let now = connection.current_max_send_streams();
                sender.send_if_modified(|allowed| std::mem::replace(allowed, now) != now);
                if now != FIRST_STREAMS || polls == 0 || next_look.as_mut().poll(context).is_pending() {
                    return polled;
                }
                polls -= 1;
                next_look.as_mut().reset(Instant::now() + POLL_INTERVAL);
            }
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
    /// The number of streams that the server allows, as far as known.
    allowed: watch::Receiver<usize>,
    /// Whether the server has sent its settings, or the time limit for them expired.
    is_settled: AtomicBool,
    generation: u64,
    retire_at: Instant,
    /// Whether the server refused a request here: it is about to close the connection, or is overloaded.
    has_refused: AtomicBool,
    _driver: Driver,
}

impl Http2 {
    pub(super) fn new(
        sender: http2::SendRequest<Full<Bytes>>,
        (driver, allowed): (Driver, watch::Receiver<usize>),
        generation: u64,
        max_age: Duration,
    ) -> Self {
        let retire_at = Instant::now() + max_age;
        Self {
            sender,
            streams: AtomicUsize::new(0),
            allowed,
            is_settled: AtomicBool::new(false),
            generation,
            retire_at,
            has_refused: AtomicBool::new(false),
            _driver: driver,
        }
    }

    /// Returns whether new requests may use it: it is open, young, and has the current credentials.
    pub(super) fn is_usable(&self, generation: u64) -> bool {
        let is_wanted = self.generation == generation && Instant::now() < self.retire_at;
        is_wanted && !self.sender.is_closed() && !self.has_refused.load(Ordering::Relaxed)
    }

    /// Reserves a stream, if one is available. `freed` is notified when one becomes available again.
    pub(super) fn stream(self: &Arc<Self>, max_streams: usize, freed: &Arc<Notify>) -> Option<Stream> {
        let allowed = max_streams.min(*self.allowed.borrow()).max(1);
        let taken = self
            .streams
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |streams| (streams < allowed).then_some(streams + 1));
        taken.is_ok().then(|| Stream { connection: Arc::clone(self), freed: Arc::clone(freed) })
    }

    /// Returns whether the server's settings may still arrive, as they do right after a connection is opened.
    pub(super) fn is_young(&self) -> bool {
        !self.is_settled.load(Ordering::Relaxed) && *self.allowed.borrow() == FIRST_STREAMS
    }

    /// Waits briefly for the server's settings. The wait is limited, because the server may really allow only one
    /// stream.
    pub(super) async fn settle(&self) {
        let mut allowed = self.allowed.clone();
        // An error means that the connection was closed, which the next use detects.
        let _ = tokio::time::timeout(SETTLE_TIME, allowed.wait_for(|allowed| *allowed != FIRST_STREAMS)).await;
        self.is_settled.store(true, Ordering::Relaxed);
    }

    /// Reserves the first stream, before the server's settings are known.
    pub(super) fn first_stream(self: &Arc<Self>, freed: &Arc<Notify>) -> Stream {
        self.streams.fetch_add(1, Ordering::AcqRel);
        Stream { connection: Arc::clone(self), freed: Arc::clone(freed) }
    }
}

/// A reserved stream of a shared connection, released on drop.
pub(super) struct Stream {
    connection: Arc<Http2>,
    freed: Arc<Notify>,
}

impl Stream {
    pub(super) fn generation(&self) -> u64 {
        self.connection.generation
    }

    pub(super) async fn send(self, request: http::Request<Full<Bytes>>) -> Result<http::Response<Body>, Refused> {
        let mut sender = self.connection.sender.clone();
        let copy = request.clone();
        let response = match sender.try_send_request(request).await {
            Ok(response) => response,
            Err(error) if error.message().is_none() && is_not_executed(error.error()) => {
                self.connection.has_refused.store(true, Ordering::Relaxed);
                return Err(Refused::NotExecuted(Box::new(copy.map(take_bytes))));
            }
            Err(error) => return Err(Refused::from_error(error)),
        };
        Ok(response
            .map(|incoming| Body::new(ResponseBody { incoming, hold: Some(Occupied::Stream { _stream: self }) })))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.streams.fetch_sub(1, Ordering::AcqRel);
        self.freed.notify_one();
    }
}

/// The work of an HTTP/1.1 connection.
///
/// The connection has one user at a time, which drives it while it waits. A separate task would have to be woken for
/// each chunk of a response, and to wake the user in turn, even if many chunks are available.
pub(super) struct Work {
    future: Option<Pin<Box<Connection>>>,
}

type Connection = dyn Future<Output = Result<(), hyper::Error>> + Send;

impl Work {
    pub(super) fn new(connection: impl Future<Output = Result<(), hyper::Error>> + Send + 'static) -> Self {
        Self { future: Some(Box::pin(connection)) }
    }

    /// Makes as much progress as possible now.
    fn progress(&mut self, context: &mut Context<'_>) {
        let Some(future) = &mut self.future else { return };
        let Poll::Ready(ended) = future.as_mut().poll(context) else { return };
        if let Err(error) = ended {
            tracing::debug!(error = &error as &dyn std::error::Error, "connection closed");
        }
        self.future = None;
    }

    /// Drives the connection until a future completes.
    pub(super) async fn until<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = std::pin::pin!(wanted);
        std::future::poll_fn(|context| {
            self.progress(context);
            wanted.as_mut().poll(context)
        })
        .await
    }
}

/// A connection for one request at a time.
pub(super) struct Http1 {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    generation: u64,
    idle_since: Instant,
    retire_at: Instant,
    pub(super) work: Work,
}

impl Http1 {
    pub(super) fn new(sender: http1::SendRequest<Full<Bytes>>, work: Work, generation: u64, max_age: Duration) -> Self {
        let now = Instant::now();
        Self { sender, generation, idle_since: now, retire_at: now + max_age, work }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn is_open(&mut self) -> bool {
        // The connection was not driven since the last response, so a close by the server is detected here.
        self.work.progress(&mut Context::from_waker(Waker::noop()));
        let now = Instant::now();
        !self.sender.is_closed() && now < self.retire_at && now < self.idle_since + MAX_IDLE_TIME
    }

    /// Returns whether new requests may use it: it is open, young, and has the current credentials.
    pub(super) fn is_usable(&mut self, generation: u64) -> bool {
        self.is_open() && self.generation == generation
    }

    pub(super) async fn send(
        mut self,
        request: http::Request<Full<Bytes>>,
        idle: Arc<IdleHttp1>,
    ) -> Result<http::Response<Body>, Refused> {
        // The previous response was read to its end, so this completes immediately or fails.
        if self.work.until(self.sender.ready()).await.is_err() {
            return Err(Refused::NotExecuted(Box::new(request.map(take_bytes))));
        }
        let sent = self.sender.try_send_request(request);
        let response = self.work.until(sent).await.map_err(Refused::from_error)?;
        Ok(self.streamed(response, idle))
    }

    /// Returns a response whose body drives the connection.
    pub(super) fn streamed(self, response: http::Response<Incoming>, idle: Arc<IdleHttp1>) -> http::Response<Body> {
        let hold = Occupied::Connection { connection: Box::new(self), idle };
        response.map(|incoming| Body::new(ResponseBody { incoming, hold: Some(hold) }))
    }
}

/// The number of streams before the server's settings are known. Streams above the server's limit would wait for the
/// others.
pub(super) const FIRST_STREAMS: usize = 1;
/// Several times the latency of any network.
const SETTLE_TIME: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Servers and load balancers close idle connections after a minute or more.
const MAX_IDLE_TIME: Duration = Duration::from_secs(50);

/// A response body with the connection that it occupies.
struct ResponseBody {
    incoming: Incoming,
    hold: Option<Occupied>,
}

enum Occupied {
    Stream { _stream: Stream },
    Connection { connection: Box<Http1>, idle: Arc<IdleHttp1> },
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if let Some(Occupied::Connection { connection, .. }) = &mut self.hold {
            connection.work.progress(context);
        }
        let polled = Pin::new(&mut self.incoming).poll_frame(context);
        if let Poll::Ready(None) = polled
            && let Some(Occupied::Connection { mut connection, idle }) = self.hold.take()
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

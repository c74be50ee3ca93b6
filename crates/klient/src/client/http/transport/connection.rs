//! One connection, and the answers that stream in on it.

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
    match body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) {
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
    ) -> (Self, watch::Receiver<usize>)
    where
        T: Read + Write + Send + Unpin + 'static,
    {
        let (sender, allowed) = watch::channel(connection.current_max_send_streams());
        // hyper reads from the socket in a task of its own, and does not tell this one what the server has said: it has to
        // look, until there is something or the time for it is over.
        let mut looks = SETTLE_TIME.as_millis() / LOOK_EVERY.as_millis();
        let mut next_look = Box::pin(tokio::time::sleep(LOOK_EVERY));
        let driver = Self::spawn(std::future::poll_fn(move |context| {
            let polled = Pin::new(&mut connection).poll(context);
            loop {
                let now = connection.current_max_send_streams();
                sender.send_if_modified(|allowed| std::mem::replace(allowed, now) != now);
                if now != FIRST_STREAMS || looks == 0 || next_look.as_mut().poll(context).is_pending() {
                    return polled;
                }
                looks -= 1;
                next_look.as_mut().reset(Instant::now() + LOOK_EVERY);
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
    /// How many streams the server allows, as far as it has said.
    allowed: watch::Receiver<usize>,
    /// It has said so, or was given the time to.
    is_settled: AtomicBool,
    generation: u64,
    retire_at: Instant,
    /// The server refused a request here: it is about to end the connection, or full beyond what it said.
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

    /// Whether new requests may go here: it is open, young, and was made with the newest credentials.
    pub(super) fn is_usable(&self, generation: u64) -> bool {
        let is_wanted = self.generation == generation && Instant::now() < self.retire_at;
        is_wanted && !self.sender.is_closed() && !self.has_refused.load(Ordering::Relaxed)
    }

    /// Room for a request, if there is any. `freed` is told when there is again.
    pub(super) fn stream(self: &Arc<Self>, max_streams: usize, freed: &Arc<Notify>) -> Option<Stream> {
        let allowed = max_streams.min(*self.allowed.borrow()).max(1);
        let taken = self
            .streams
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |streams| (streams < allowed).then_some(streams + 1));
        taken.is_ok().then(|| Stream { connection: Arc::clone(self), freed: Arc::clone(freed) })
    }

    /// Whether the server may be about to say how many streams it allows, as it does once a connection is made.
    pub(super) fn is_young(&self) -> bool {
        !self.is_settled.load(Ordering::Relaxed) && *self.allowed.borrow() == FIRST_STREAMS
    }

    /// Waits until it has said so; not for long, since one is a number that it may mean.
    pub(super) async fn settle(&self) {
        let mut allowed = self.allowed.clone();
        // An error says that the connection has ended, which the next look at it finds out.
        let _ = tokio::time::timeout(SETTLE_TIME, allowed.wait_for(|allowed| *allowed != FIRST_STREAMS)).await;
        self.is_settled.store(true, Ordering::Relaxed);
    }

    /// Room for the first request, before the server has said how much there is.
    pub(super) fn first_stream(self: &Arc<Self>, freed: &Arc<Notify>) -> Stream {
        self.streams.fetch_add(1, Ordering::AcqRel);
        Stream { connection: Arc::clone(self), freed: Arc::clone(freed) }
    }
}

/// Room for one request on a shared connection, given back when dropped.
pub(super) struct Stream {
    connection: Arc<Http2>,
    freed: Arc<Notify>,
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
        self.freed.notify_one();
    }
}

/// What an HTTP/1.1 connection has to do, until it ends.
///
/// It has one user at a time, who waits for nothing else and does this meanwhile. A task of its own would have to be woken for
/// each chunk of an answer, and wake the user for it, even where many chunks are at hand.
pub(super) struct Work {
    future: Option<Pin<Box<Connection>>>,
}

type Connection = dyn Future<Output = Result<(), hyper::Error>> + Send;

impl Work {
    pub(super) fn new(connection: impl Future<Output = Result<(), hyper::Error>> + Send + 'static) -> Self {
        Self { future: Some(Box::pin(connection)) }
    }

    /// Does what can be done now.
    fn go_on(&mut self, context: &mut Context<'_>) {
        let Some(future) = &mut self.future else { return };
        let Poll::Ready(ended) = future.as_mut().poll(context) else { return };
        if let Err(error) = ended {
            tracing::debug!(error = &error as &dyn std::error::Error, "connection ended");
        }
        self.future = None;
    }

    /// Goes on until what is wanted of the connection is there.
    async fn until<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = std::pin::pin!(wanted);
        std::future::poll_fn(|context| {
            self.go_on(context);
            wanted.as_mut().poll(context)
        })
        .await
    }
}

/// A connection for one request at a time.
pub(super) struct Http1 {
    sender: http1::SendRequest<Full<Bytes>>,
    generation: u64,
    idle_since: Instant,
    retire_at: Instant,
    work: Work,
}

impl Http1 {
    pub(super) fn new(sender: http1::SendRequest<Full<Bytes>>, work: Work, generation: u64, max_age: Duration) -> Self {
        let now = Instant::now();
        Self { sender, generation, idle_since: now, retire_at: now + max_age, work }
    }

    pub(super) fn is_open(&mut self) -> bool {
        // Nobody has looked since the last answer whether the server has closed it.
        self.work.go_on(&mut Context::from_waker(Waker::noop()));
        let now = Instant::now();
        !self.sender.is_closed() && now < self.retire_at && now < self.idle_since + MAX_IDLE_TIME
    }

    /// Whether new requests may go here: it is open, young, and was made with the newest credentials.
    pub(super) fn is_usable(&mut self, generation: u64) -> bool {
        self.is_open() && self.generation == generation
    }

    pub(super) async fn send(
        mut self,
        request: http::Request<Full<Bytes>>,
        idle: Arc<IdleHttp1>,
    ) -> Result<http::Response<Body>, Refused> {
        // The answer before was read to its end, so this takes a moment at most, or fails.
        if self.work.until(self.sender.ready()).await.is_err() {
            return Err(Refused::Undone(Box::new(request.map(take_bytes))));
        }
        let sent = self.sender.try_send_request(request);
        let response = self.work.until(sent).await.map_err(Refused::from_error)?;
        let hold = Hold::Connection { connection: Box::new(self), idle };
        Ok(response.map(|incoming| Body::new(Answer { incoming, hold: Some(hold) })))
    }
}

/// How many streams are opened before the server has said how many it allows: what it does not allow would wait behind
/// the others.
pub(super) const FIRST_STREAMS: usize = 1;
/// Several times as long as any packet takes.
const SETTLE_TIME: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(2);
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
        if let Some(Hold::Connection { connection, .. }) = &mut self.hold {
            connection.work.go_on(context);
        }
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

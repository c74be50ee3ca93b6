//! A watch over many connections: it resumes by itself after the last version that it returned.
//!
//! No event is returned twice and none is lost. If that cannot be guaranteed, the watch ends with an error, never
//! silently. Connections start at least a second apart, and further apart while they return no events. A connection is
//! replaced if an event does not arrive in full, or if it outlives the timeout of the request.
//! In client-go: `RetryWatcher`.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use futures_core::Stream;
use klient_core::{Resource, ResourceVersion, VersionMatch, WatchEvent, WatchOptions};
use klient_proto::RawObject;
use tokio::time::{Instant, Sleep};

use crate::client::{Api, Watch};
use crate::{
    Error, ErrorKind,
    retry::{Backoff, Delays},
};

/// A watch of the changes after a version, over as many requests as necessary.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Api, Client, client::RetryWatch, options::WatchOptions};
///
/// # async fn follow() -> Result<(), klient::Error> {
/// let pods: Api<Pod> = Api::all(Client::infer()?);
/// let version = pods.list().await?.resource_version();
/// let mut watch = RetryWatch::new(pods, WatchOptions::after(version))?;
/// while let Some(event) = watch.next().await {
///     match event {
///         Ok(event) => println!("{}", event.type_name()),
///         Err(error) if error.is_gone() => break, // List again, and watch from there.
///         Err(error) => return Err(error),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "RetryWatcher")]
pub struct RetryWatch<K> {
    api: Api<K>,
    options: WatchOptions,
    bookmarks_wanted: bool,
    version: ResourceVersion,
    connection: Connection<K>,
    pace: ConnectionSchedule,
    /// An event that was read ahead.
    ahead: Option<RawEvent>,
    /// The number of consecutive connections that could not be decoded.
    unreadable: u32,
    /// The reason why there is no connection.
    last_error: Option<Error>,
}

type RawEvent = Result<WatchEvent<RawObject>, Error>;

// Futures are stored here and not in that of `next`, so that dropping the latter does not restart them.
enum Connection<K> {
    /// The sleep is created when it is first polled, because that requires a runtime.
    Waiting {
        until: Instant,
        sleep: Option<Pin<Box<Sleep>>>,
    },
    Connecting(Pin<Box<dyn Future<Output = Result<Watch<K>, Error>> + Send>>),
    Open {
        watch: Box<Watch<K>>,
        /// The end of the connection, if the server does not end it before.
        end: Pin<Box<Sleep>>,
    },
    Ended,
}

impl<K: Resource> RetryWatch<K> {
    /// Creates a watch that starts after the version in the options, which must be set by [`WatchOptions::after`].
    ///
    /// Bookmarks are always requested, and returned if the options request them.
    ///
    /// # Errors
    ///
    /// Returns an error if the options do not start after a version.
    pub fn new(api: Api<K>, options: WatchOptions) -> Result<Self, Error> {
        let version = match &options.version {
            VersionMatch::Exact(version) if options.send_initial_events.is_none() => version.clone(),
            _ => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "a watch with retries must start after a version: use `WatchOptions::after`",
                ));
            }
        };
        if version.is_empty() || version.as_str() == "0" {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("invalid resource version {:?} to start after", version.as_str()),
            ));
        }
        let bookmarks_wanted = options.allow_bookmarks;
        Ok(Self {
            api,
            options: options.bookmarks(),
            bookmarks_wanted,
            version,
            connection: Connection::Waiting { until: Instant::now(), sleep: None },
            pace: ConnectionSchedule::new(),
            ahead: None,
            unreadable: 0,
            last_error: None,
        })
    }

    /// Returns the version of the last returned event, from which a watch can resume.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.version
    }

    /// Returns the reason why the last connection was lost or failed, until there is a new one.
    ///
    /// It is useful for callers that call [`next`](Self::next) with a time limit and want to report the reason.
    pub fn last_error(&self) -> Option<&Error> {
        self.last_error.as_ref()
    }

    /// Returns the next event, or `None` after an error that ended the watch.
    ///
    /// # Errors
    ///
    /// Returns [`Gone`](ErrorKind::Gone) if the version has expired: list again. Other errors that a retry cannot
    /// resolve, such as [`Forbidden`](ErrorKind::Forbidden), end the watch, too. The watch continues after an event
    /// that cannot be decoded.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event, and restarts neither a connection nor a delay.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        Some(self.next_raw().await?.and_then(decode))
    }

    /// Returns the next event with its object in wire format; otherwise like [`next`](Self::next).
    pub async fn next_raw(&mut self) -> Option<Result<WatchEvent<RawObject>, Error>> {
        poll_fn(|context| self.poll_raw(context)).await
    }

    fn poll_raw(&mut self, context: &mut Context<'_>) -> Poll<Option<RawEvent>> {
        loop {
            match &mut self.connection {
                Connection::Ended => return Poll::Ready(None),
                Connection::Waiting { until, sleep } => {
                    let sleep = sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(*until)));
                    ready!(sleep.as_mut().poll(context));
                    self.connect();
                }
                Connection::Connecting(connecting) => match ready!(connecting.as_mut().poll(context)) {
                    Ok(watch) => {
                        self.last_error = None;
                        let end = Box::pin(tokio::time::sleep(self.max_age()));
                        self.connection = Connection::Open { watch: Box::new(watch), end };
                    }
                    Err(error) => {
                        if let Some(error) = self.resume_after(error) {
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                },
                Connection::Open { watch, end } => {
                    let event = match self.ahead.take() {
                        Some(event) => Some(event),
                        None => match watch.poll_raw(context) {
                            Poll::Ready(event) => event,
                            Poll::Pending => {
                                ready!(end.as_mut().poll(context));
                                tracing::debug!(version = %self.version, "watch did not end in time, restarting it");
                                None
                            }
                        },
                    };
                    if let Some(outcome) = self.take(event) {
                        return Poll::Ready(Some(outcome));
                    }
                }
            }
        }
    }

    /// Returns how long a connection may be open: a little longer than the server keeps a watch open.
    fn max_age(&self) -> Duration {
        self.options.timeout.map_or(MAX_AGE, |timeout| timeout.saturating_add(GRACE))
    }

    fn connect(&mut self) {
        self.pace.started();
        let options = self.options.clone().version(VersionMatch::Exact(self.version.clone()));
        self.connection = Connection::Connecting(self.api.watch().options(options).into_future());
    }

    /// Handles a step of the open watch. Returns the event for the caller, if any.
    fn take(&mut self, event: Option<RawEvent>) -> Option<RawEvent> {
        match event {
            None => {
                self.wait(None);
                None
            }
            Some(Ok(WatchEvent::Error(status))) => self.resume_after(Error::from(status)).map(Err),
            Some(Ok(event)) => self.give(event),
            Some(Err(error)) if error.kind() == ErrorKind::Decode => self.unreadable(error).map(Err),
            Some(Err(error)) => self.resume_after(error).map(Err),
        }
    }

    /// Returns an event to the caller and continues after its version.
    fn give(&mut self, event: WatchEvent<RawObject>) -> Option<RawEvent> {
        let version = match &event {
            WatchEvent::Bookmark(bookmark) => bookmark.resource_version.clone(),
            event => event.object().and_then(RawObject::resource_version).as_deref().unwrap_or_default().into(),
        };
        if version.is_empty() {
            // Events that are lost from here on could not be requested again.
            self.connection = Connection::Ended;
            return Some(Err(Error::new(
                ErrorKind::Decode,
                "event has no resourceVersion, so the watch cannot resume after it",
            )));
        }
        // The version advances even if the object cannot be decoded, because a retry would fail in the same way.
        self.version = version;
        self.pace.progressed();
        self.unreadable = 0;
        let hidden = matches!(event, WatchEvent::Bookmark(_)) && !self.bookmarks_wanted;
        (!hidden).then_some(Ok(event))
    }

    /// Handles an event that cannot be decoded, or the last one of a connection that broke inside it.
    fn unreadable(&mut self, error: Error) -> Option<Error> {
        let Connection::Open { watch, .. } = &mut self.connection else { return Some(error) };
        match watch.poll_raw(&mut Context::from_waker(Waker::noop())) {
            // The connection ended with this event, so the server sends it again.
            Poll::Ready(None) => self.resume_after(error),
            Poll::Ready(event) => {
                self.ahead = event;
                Some(error)
            }
            Poll::Pending => Some(error),
        }
    }

    /// Resumes after a transient error; returns an error that ends the watch.
    fn resume_after(&mut self, error: Error) -> Option<Error> {
        self.unreadable = if error.kind() == ErrorKind::Decode { self.unreadable + 1 } else { 0 };
        if is_transient(&error) && self.unreadable < MAX_UNREADABLE {
            tracing::debug!(%error, version = %self.version, "restarting watch");
            self.wait(error.retry_after());
            self.last_error = Some(error);
            return None;
        }
        self.connection = Connection::Ended;
        Some(error)
    }

    fn wait(&mut self, asked: Option<Duration>) {
        self.ahead = None;
        self.connection = Connection::Waiting { until: self.pace.next_start(asked), sleep: None };
    }
}

impl<K: Resource> Stream for RetryWatch<K> {
    type Item = Result<WatchEvent<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.poll_raw(context));
        Poll::Ready(event.map(|event| event.and_then(decode)))
    }
}

impl<K> fmt::Debug for RetryWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.connection {
            Connection::Waiting { .. } => "waiting",
            Connection::Connecting(_) => "connecting",
            Connection::Open { .. } => "open",
            Connection::Ended => "ended",
        };
        f.debug_struct("RetryWatch").field("version", &self.version).field("state", &state).finish_non_exhaustive()
    }
}

/// The schedule of connections.
struct ConnectionSchedule {
    delays: Delays,
    started: Instant,
    apart: Duration,
}

impl ConnectionSchedule {
    fn new() -> Self {
        let mut pace = Self { delays: pace().delays(), started: Instant::now(), apart: Duration::ZERO };
        pace.progressed();
        pace
    }

    fn started(&mut self) {
        self.started = Instant::now();
    }

    /// Resets the delay after an event.
    fn progressed(&mut self) {
        self.delays = pace().delays();
        self.apart = self.delays.next().unwrap_or(MAX_DELAY);
    }

    fn next_start(&mut self, asked: Option<Duration>) -> Instant {
        let now = Instant::now();
        // An idle watch that lasted is as good as one with events, because servers end watches periodically.
        if now - self.started >= MAX_DELAY {
            self.progressed();
        }
        let start = (self.started + self.apart).max(now + asked.unwrap_or_default());
        self.apart = self.delays.next().unwrap_or(MAX_DELAY);
        start
    }
}

fn pace() -> Backoff {
    Backoff::default().first(Duration::from_secs(1)).factor(2.0).jitter(0.2).steps(u32::MAX).max(MAX_DELAY)
}

/// Returns whether a retry may resolve the error.
fn is_transient(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Transport | ErrorKind::Timeout | ErrorKind::TooManyRequests | ErrorKind::Unavailable => true,
        // The issuer of credentials may be unavailable temporarily.
        ErrorKind::Auth => true,
        // A proxy's page, or a stream that broke inside an event. Consecutive failures are limited.
        ErrorKind::Decode => true,
        _ => false,
    }
}

fn decode<K: Resource>(event: WatchEvent<RawObject>) -> Result<WatchEvent<K>, Error> {
    Ok(match event {
        WatchEvent::Added(object) => WatchEvent::Added(object.decode()?),
        WatchEvent::Modified(object) => WatchEvent::Modified(object.decode()?),
        WatchEvent::Deleted(object) => WatchEvent::Deleted(object.decode()?),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    })
}

/// The maximum time between the starts of connections.
const MAX_DELAY: Duration = Duration::from_secs(30);
/// How long a server may take to end a watch whose timeout has passed.
const GRACE: Duration = Duration::from_secs(30);
/// The maximum age of a connection without a timeout. Kubernetes ends such watches after an hour at the latest.
const MAX_AGE: Duration = Duration::from_secs(65 * 60);
/// The maximum number of consecutive connections that cannot be decoded.
const MAX_UNREADABLE: u32 = 4;

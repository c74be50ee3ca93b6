//! A watch that outlives its connections: it goes on by itself after the last version it has seen.
//!
//! No event is given twice and none is left out; where that cannot be kept, it ends with an error, never silently.
//! Connections begin at least a second apart, and further apart while they bring nothing.
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

/// The changes after a version, over as many watch requests as it takes.
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
///         Err(error) if error.is_gone() => break, // List anew, and watch from there.
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
    pace: ConnectionPace,
    /// What was read ahead.
    ahead: Option<RawEvent>,
    /// How many connections in a row could not be read.
    unreadable: u32,
    /// Why there is no connection.
    trouble: Option<Error>,
}

type RawEvent = Result<WatchEvent<RawObject>, Error>;

// Futures are stored here and not in that of `next`, so that a caller who drops it does not start them over.
enum Connection<K> {
    /// The sleep is created when it is first polled, which needs a runtime.
    Waiting {
        until: Instant,
        sleep: Option<Pin<Box<Sleep>>>,
    },
    Connecting(Pin<Box<dyn Future<Output = Result<Watch<K>, Error>> + Send>>),
    Open(Box<Watch<K>>),
    Ended,
}

impl<K: Resource> RetryWatch<K> {
    /// Watches from the version in the options, which must be [`WatchOptions::after`] one.
    ///
    /// Bookmarks are always asked for, and given out if the options ask for them.
    ///
    /// # Errors
    ///
    /// If the options do not say after which version to start.
    pub fn new(api: Api<K>, options: WatchOptions) -> Result<Self, Error> {
        let version = match &options.version {
            VersionMatch::Exact(version) if options.send_initial_events.is_none() => version.clone(),
            _ => return Err(Error::new(ErrorKind::Invalid, "a watch that resumes starts after a version")),
        };
        if version.is_empty() || version.as_str() == "0" {
            return Err(Error::new(ErrorKind::Invalid, format!("{:?} is no version to start after", version.as_str())));
        }
        let bookmarks_wanted = options.allow_bookmarks;
        Ok(Self {
            api,
            options: options.bookmarks(),
            bookmarks_wanted,
            version,
            connection: Connection::Waiting { until: Instant::now(), sleep: None },
            pace: ConnectionPace::new(),
            ahead: None,
            unreadable: 0,
            trouble: None,
        })
    }

    /// The version up to which everything was given out; a watch may go on from here.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.version
    }

    /// Why the last connection was lost or could not be made, until there is one again.
    ///
    /// For callers who wait for [`next`](Self::next) with a time limit, and want to say what keeps it.
    pub fn trouble(&self) -> Option<&Error> {
        self.trouble.as_ref()
    }

    /// The next event; `None` only after an error that ended the watch.
    ///
    /// # Errors
    ///
    /// [`Gone`](ErrorKind::Gone) if the server no longer has the changes: list anew. Other errors that waiting does
    /// not mend, such as [`Forbidden`](ErrorKind::Forbidden), end the watch too. An event whose object cannot be decoded
    /// is an error as well, after which the watch goes on; so is one that cannot be read at all.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing, and neither starts a connection nor a wait over.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        Some(self.next_raw().await?.and_then(decode))
    }

    /// The next event with its object in wire form; otherwise as [`next`](Self::next).
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
                        self.trouble = None;
                        self.connection = Connection::Open(Box::new(watch));
                    }
                    Err(error) => {
                        if let Some(error) = self.resume_after(error) {
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                },
                Connection::Open(watch) => {
                    let event = match self.ahead.take() {
                        Some(event) => Some(event),
                        None => ready!(watch.poll_raw(context)),
                    };
                    if let Some(outcome) = self.take(event) {
                        return Poll::Ready(Some(outcome));
                    }
                }
            }
        }
    }

    fn connect(&mut self) {
        self.pace.started();
        let options = self.options.clone().version(VersionMatch::Exact(self.version.clone()));
        self.connection = Connection::Connecting(self.api.watch().options(options).into_future());
    }

    /// What a step of the open watch means for the caller; nothing, if it is about the watch itself.
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

    /// Gives out an event and goes on after its version.
    fn give(&mut self, event: WatchEvent<RawObject>) -> Option<RawEvent> {
        let version = match &event {
            WatchEvent::Bookmark(bookmark) => bookmark.resource_version.clone(),
            event => event.object().and_then(RawObject::resource_version).as_deref().unwrap_or_default().into(),
        };
        if version.is_empty() {
            // Whatever is lost from here on could not be asked for again.
            self.connection = Connection::Ended;
            return Some(Err(Error::new(ErrorKind::Decode, "an event has no resourceVersion to go on from")));
        }
        // Also where the object turns out not to be readable: it would not be the next time either.
        self.version = version;
        self.pace.progressed();
        self.unreadable = 0;
        let hidden = matches!(event, WatchEvent::Bookmark(_)) && !self.bookmarks_wanted;
        (!hidden).then_some(Ok(event))
    }

    /// An event that cannot be read, or the last one of a connection that broke inside it.
    fn unreadable(&mut self, error: Error) -> Option<Error> {
        let Connection::Open(watch) = &mut self.connection else { return Some(error) };
        match watch.poll_raw(&mut Context::from_waker(Waker::noop())) {
            // The connection ended with this event: the server sends it again from its beginning.
            Poll::Ready(None) => self.resume_after(error),
            Poll::Ready(event) => {
                self.ahead = event;
                Some(error)
            }
            Poll::Pending => Some(error),
        }
    }

    /// Goes on after an error that may pass; gives it back if it ends the watch.
    fn resume_after(&mut self, error: Error) -> Option<Error> {
        self.unreadable = if error.kind() == ErrorKind::Decode { self.unreadable + 1 } else { 0 };
        if passes(&error) && self.unreadable < MAX_UNREADABLE {
            tracing::debug!(%error, version = %self.version, "a watch is started again");
            self.wait(error.retry_after());
            self.trouble = Some(error);
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
            Connection::Open(_) => "open",
            Connection::Ended => "ended",
        };
        f.debug_struct("RetryWatch").field("version", &self.version).field("state", &state).finish_non_exhaustive()
    }
}

/// When the next connection may begin.
struct ConnectionPace {
    delays: Delays,
    started: Instant,
    apart: Duration,
}

impl ConnectionPace {
    fn new() -> Self {
        let mut pace = Self { delays: pace().delays(), started: Instant::now(), apart: Duration::ZERO };
        pace.progressed();
        pace
    }

    fn started(&mut self) {
        self.started = Instant::now();
    }

    /// Something came: connections need not be further apart.
    fn progressed(&mut self) {
        self.delays = pace().delays();
        self.apart = self.delays.next().unwrap_or(MAX_APART);
    }

    fn next_start(&mut self, asked: Option<Duration>) -> Instant {
        let now = Instant::now();
        // An idle watch that lasted is as good as one with events: the server ends those now and then.
        if now - self.started >= MAX_APART {
            self.progressed();
        }
        let start = (self.started + self.apart).max(now + asked.unwrap_or_default().min(MAX_ASKED));
        self.apart = self.delays.next().unwrap_or(MAX_APART);
        start
    }
}

fn pace() -> Backoff {
    Backoff::default().first(Duration::from_secs(1)).factor(2.0).jitter(0.2).steps(u32::MAX).max(MAX_APART)
}

/// Whether waiting may mend it.
fn passes(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Transport | ErrorKind::Timeout | ErrorKind::TooManyRequests | ErrorKind::Unavailable => true,
        // Whoever gives out credentials may be away for a moment.
        ErrorKind::Auth => true,
        // A proxy's page, or a stream that broke inside an event: only if it does not go on like that.
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

/// The furthest apart that connections begin.
const MAX_APART: Duration = Duration::from_secs(30);
/// A server that asks for more is not taken at its word.
const MAX_ASKED: Duration = Duration::from_secs(300);
/// So many connections in a row that cannot be read are no accident.
const MAX_UNREADABLE: u32 = 4;

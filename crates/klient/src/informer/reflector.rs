//! The reflector: keeps a store equal to the state of the server. Step 3 of an object's way.
//!
//! A state machine: list, or open a watch that begins with the current state; then follow the watch; after a break resume from
//! the last version seen, and relist only where that cannot work. Each watch event becomes a [`Delta`](super::Delta) in the
//! reflector's [`DeltaFifo`]; when nothing more is at hand, the fifo's content goes to the store as one batch. No failure ends
//! the reflector: every failure leads to a retry with a longer delay each time. In client-go: `Reflector`.

mod backoff;
mod errors;
mod follow;
mod initial;
mod narrow;
mod options;
mod status;
mod unreadable;
mod version;

use std::{convert::Infallible, sync::Arc, time::Duration};

use hashbrown::HashSet;
use klient_core::{ListOptions, ObjectKey, ResourceVersion, VersionMatch, WatchOptions};
use klient_proto::RawObject;
use tokio::time::Instant;

pub(super) use self::status::StatusBoard;
use self::{backoff::Backoff, narrow::Narrowing};
pub use self::{
    options::{ErrorHandler, FirstRead, ReflectorOptions},
    status::{InformerState, InformerStatus, RelistReason},
};
use super::{
    delta_fifo::{DeltaBatch, DeltaFifo},
    list_watch::ListWatch,
    store::{Keyed, ThreadSafeStore},
};
use crate::Error;

/// The destination of a reflector's objects.
pub trait ReflectorStore: Send {
    /// An object in the form in which the store keeps it.
    type Object: Keyed;

    /// Converts an object that arrived from the server. Called once for each object, before it is part of a batch.
    ///
    /// # Errors
    ///
    /// Returns an error if the object cannot be stored. The object is counted, and its last known state is kept; the others are
    /// not affected.
    fn ingest(&mut self, object: RawObject) -> Result<Self::Object, Error>;

    /// Converts an object of a list. A store that has the same state of the object returns that one, so that unchanged
    /// objects keep their allocation.
    ///
    /// # Errors
    ///
    /// Returns an error if the object cannot be stored, as [`ingest`](Self::ingest) does.
    fn ingest_listed(&mut self, object: RawObject) -> Result<Self::Object, Error> {
        self.ingest(object)
    }

    /// Returns the stored objects. The fifo reads them to find out which objects a new list deletes.
    ///
    /// A store that returns `None` must itself delete what a [replaced](DeltaBatch::replaced) batch does not have. It cannot tell
    /// a deleted object from one that [`ingest`](Self::ingest) refused: both are missing from the batch.
    fn known_objects(&self) -> Option<ThreadSafeStore<Self::Object>> {
        None
    }

    /// Applies a batch of deltas in one step.
    fn apply(&mut self, batch: DeltaBatch<Self::Object>);
}

/// Lists and watches a resource, and sends the changes to a store.
///
/// Each informer contains one. A reflector can also fill any [`ReflectorStore`] without an informer:
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Api, Client, informer::{CachedObject, Reflector, ThreadSafeStore}};
///
/// # async fn mirror() -> Result<(), klient::Error> {
/// let pods: Api<Pod> = Api::all(Client::infer()?);
/// let store = ThreadSafeStore::<CachedObject<Pod>>::new();
/// tokio::spawn(Reflector::new(pods, store.clone()).run());
/// # Ok(())
/// # }
/// ```
pub struct Reflector<L, S: ReflectorStore> {
    source: L,
    fifo: DeltaFifo<S::Object>,
    store: S,
    options: ReflectorOptions,
    board: Arc<StatusBoard>,
    backoff: Backoff,
    /// The delays between relists because of events that could not be read.
    unreadable_backoff: Backoff,
    /// When to read the whole state, because an event or an object of the last list could not be read. The end of a watch does
    /// not change it: the next watch may begin after that event.
    relist_at: Option<Instant>,
    /// The objects whose current state could not be read.
    unreadable: HashSet<ObjectKey, foldhash::quality::RandomState>,
    /// The version up to which the store has everything; empty before the first list.
    version: ResourceVersion,
    /// Whether the server cannot serve `version`, so that the next list must be of the most recent one.
    version_unavailable: bool,
    /// Whether the server's versions went back, so that equal versions no longer mean equal objects.
    version_went_back: bool,
    /// Whether this server sends events with versions below that of the list, so that they prove nothing.
    events_unordered: bool,
    /// Whether the connection failed and nothing has arrived on a watch since: the server may be a different one.
    reconnecting: bool,
    /// When the server's current version was last read to compare it with `version`.
    version_checked: Option<Instant>,
    /// Whether the server splits even lists of any version into pages.
    pages_anyway: bool,
    /// Whether the last watch expired, and none has made progress since.
    expired: bool,
    /// The number of consecutive watches without an event.
    empty_watches: u32,
    /// Whether the server sends bookmarks, so that silence means a dead connection.
    bookmarks_seen: bool,
    /// The slots whose objects are stored, if not all objects are.
    narrowing: Option<Box<Narrowing<S::Object>>>,
}

/// The next action of the state machine.
enum Step<W> {
    /// Read the whole state, by a watch if that is configured and available.
    Begin(RelistReason),
    /// Read the whole state by lists.
    List(RelistReason),
    /// Open a watch from the last version.
    Watch,
    /// Follow an open watch.
    Follow(W, Duration),
    /// Compare the server's current version with the last one seen, then watch.
    CheckVersion,
    /// Wait before the next step.
    Wait(Duration, Retry),
}

/// The action after a delay.
#[derive(Clone, Copy)]
enum Retry {
    Begin(RelistReason),
    Watch,
}

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Creates a reflector that fills a store from a source.
    pub fn new(source: L, store: S) -> Self {
        let board = Arc::new(StatusBoard::new(source.describe(), None));
        Self {
            source,
            fifo: store.known_objects().map_or_else(DeltaFifo::new, DeltaFifo::with_known_objects),
            store,
            options: ReflectorOptions::default(),
            board,
            backoff: Backoff::default(),
            unreadable_backoff: Backoff::default(),
            relist_at: None,
            unreadable: HashSet::default(),
            version: ResourceVersion::default(),
            version_unavailable: false,
            version_went_back: false,
            events_unordered: false,
            reconnecting: false,
            version_checked: None,
            pages_anyway: false,
            expired: false,
            empty_watches: 0,
            bookmarks_seen: false,
            narrowing: None,
        }
    }

    /// Sets the options of lists and watches.
    #[must_use]
    pub fn options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self
    }

    /// Shares the status with an informer.
    pub(super) fn board(mut self, board: Arc<StatusBoard>) -> Self {
        self.board = board;
        self
    }

    /// Returns a function that reads the current status. Call it before [`run`](Self::run), which takes the reflector.
    pub fn status(&self) -> impl Fn() -> InformerStatus + Send + Sync + 'static {
        let board = Arc::clone(&self.board);
        move || board.status()
    }

    /// Lists and watches until the future is dropped.
    #[doc(alias = "ListAndWatch")]
    pub async fn run(mut self) -> Infallible {
        let mut step = Step::Begin(RelistReason::Initial);
        loop {
            step = match step {
                Step::Begin(_) | Step::List(_) if self.wants_nothing() => self.idle().await,
                Step::Begin(reason) if self.begins_with_watch() => self.watch_list(reason).await,
                Step::Begin(reason) | Step::List(reason) => self.list(reason).await,
                Step::Watch => self.watch().await,
                Step::Follow(watch, limit) => self.follow(watch, limit).await,
                Step::CheckVersion => self.check_version().await,
                Step::Wait(delay, retry) => {
                    tokio::time::sleep(delay).await;
                    match retry {
                        Retry::Begin(reason) => Step::Begin(reason),
                        Retry::Watch => Step::Watch,
                    }
                }
            };
        }
    }

    fn begins_with_watch(&self) -> bool {
        self.options.first_read == FirstRead::WatchList && self.source.offers_watch_list()
    }

    /// Moves everything in the fifo to the store, as one batch.
    fn flush(&mut self) {
        self.fifo.bookmark(self.version.clone());
        let Some(batch) = self.fifo.pop_batch() else { return };
        tracing::trace!(
            target: "klient::informer::delta_fifo",
            resource = self.source.describe(),
            deltas = batch.deltas.len(),
            replaced = batch.replaced,
            "popped batch"
        );
        self.store.apply(batch);
    }

    fn list_options(&self) -> ListOptions {
        let mut options = ListOptions::default();
        options.label_selector.clone_from(&self.options.label_selector);
        options.field_selector.clone_from(&self.options.field_selector);
        options.shard_selector = self.shard_selector();
        options
    }

    fn watch_options(&self, version: VersionMatch) -> (WatchOptions, Duration) {
        let shortest = self.options.min_watch_timeout;
        let limit = Duration::try_from_secs_f64(shortest.as_secs_f64() * (1.0 + crate::retry::random()));
        let limit = limit.unwrap_or(Duration::MAX);
        let mut options = WatchOptions::default().version(version).bookmarks().timeout(limit);
        options.label_selector.clone_from(&self.options.label_selector);
        options.field_selector.clone_from(&self.options.field_selector);
        options.shard_selector = self.shard_selector();
        (options, limit)
    }
}

impl<L, S: ReflectorStore> std::fmt::Debug for Reflector<L, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflector").field("version", &self.version).finish_non_exhaustive()
    }
}

//! The reflector: keeps a store equal to what the server has, whatever happens on the way. Step 3 of an object's way.
//!
//! A state machine: list, or let a watch begin with the current state; then follow changes; after a break go on from the last
//! version seen, and list again only where that cannot work. Nothing here gives up: every failure leads to another try, later
//! each time. In client-go: `Reflector`.

mod backoff;
mod errors;
mod follow;
mod initial;
mod options;
mod status;

use std::{convert::Infallible, sync::Arc, time::Duration};

use klient_core::{ListOptions, ResourceVersion, VersionMatch, WatchOptions};
use klient_proto::RawObject;

use self::backoff::Pace;
pub(super) use self::status::StatusBoard;
pub use self::{
    options::{ErrorHandler, FirstRead, ReflectorOptions},
    status::{InformerState, InformerStatus, Relist},
};
use super::{list_watch::ListWatch, store::Keyed};
use crate::Error;

/// What a reflector fills.
pub trait ReflectorStore: Send {
    /// What it keeps of an object.
    type Object: Keyed;

    /// Makes what is kept of an object from its wire form. Called for each object that arrives, before it is part of anything.
    ///
    /// # Errors
    ///
    /// If the object cannot be kept. It is counted and left out; the others go on.
    fn ingest(&mut self, object: RawObject) -> Result<Self::Object, Error>;

    /// As [`ingest`](Self::ingest), for the object of a change: there is no need to look whether the store has that state.
    ///
    /// # Errors
    ///
    /// As for [`ingest`](Self::ingest).
    fn ingest_change(&mut self, object: RawObject) -> Result<Self::Object, Error> {
        self.ingest(object)
    }

    /// These are all objects, at a version.
    fn replace(&mut self, objects: Vec<Self::Object>, version: &ResourceVersion);

    /// One object changed.
    fn change(&mut self, change: Change<Self::Object>);

    /// Everything up to a version was given. Called when nothing more is at hand: what was given since the last time may take
    /// effect in one step.
    fn flush(&mut self, version: &ResourceVersion);
}

/// A change of one object.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// It was made, or came to match the selectors.
    Added(T),
    /// It was changed.
    Modified(T),
    /// It was deleted, or no longer matches the selectors.
    Deleted(T),
}

/// Lists and watches, and tells a store.
///
/// An informer has one inside; by itself it fills any [`ReflectorStore`]:
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Api, Client};
/// use klient::informer::{CachedObject, Reflector, ThreadSafeStore};
///
/// # async fn mirror() -> Result<(), klient::Error> {
/// let pods: Api<Pod> = Api::all(Client::infer()?);
/// let store = ThreadSafeStore::<CachedObject<Pod>>::new();
/// tokio::spawn(Reflector::new(pods, store.clone()).run());
/// # Ok(())
/// # }
/// ```
pub struct Reflector<L, S> {
    source: L,
    store: S,
    options: ReflectorOptions,
    board: Arc<StatusBoard>,
    pace: Pace,
    /// Up to where the store has everything; empty before the first list.
    version: ResourceVersion,
    /// The version cannot be had any more: ask for the newest instead.
    version_unavailable: bool,
    /// A server that pages even lists of any version.
    pages_anyway: bool,
    /// How many times in a row a watch brought nothing.
    fruitless: u32,
    /// Whether the server sends bookmarks: their absence means something then.
    bookmarks_seen: bool,
}

/// What to do next.
enum Step<W> {
    /// Get the whole state, in the way that suits.
    Begin(Relist),
    /// Get the whole state by lists.
    List(Relist),
    /// Ask for changes after the version.
    Watch,
    /// Take what a watch brings.
    Follow(W, Duration),
    /// Wait, then go on.
    Wait(Duration, Then),
}

#[derive(Clone, Copy)]
enum Then {
    Begin(Relist),
    Watch,
}

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Fills a store from a source.
    pub fn new(source: L, store: S) -> Self {
        let board = Arc::new(StatusBoard::new(source.describe(), None));
        Self {
            source,
            store,
            options: ReflectorOptions::default(),
            board,
            pace: Pace::default(),
            version: ResourceVersion::default(),
            version_unavailable: false,
            pages_anyway: false,
            fruitless: 0,
            bookmarks_seen: false,
        }
    }

    /// Sets how to list and watch.
    #[must_use]
    pub fn options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self
    }

    /// Puts its status where others can see it.
    pub(super) fn board(mut self, board: Arc<StatusBoard>) -> Self {
        self.board = board;
        self
    }

    /// How it stands, at any time: take this before [`run`](Self::run).
    pub fn status(&self) -> impl Fn() -> InformerStatus + Send + Sync + 'static {
        let board = Arc::clone(&self.board);
        move || board.status()
    }

    /// Lists and watches for ever. Dropping the future ends it.
    pub async fn run(mut self) -> Infallible {
        let mut step = Step::Begin(Relist::First);
        loop {
            step = match step {
                Step::Begin(reason) if self.begins_with_watch() => self.watch_list(reason).await,
                Step::Begin(reason) | Step::List(reason) => self.list(reason).await,
                Step::Watch => self.watch().await,
                Step::Follow(watch, limit) => self.follow(watch, limit).await,
                Step::Wait(delay, then) => {
                    tokio::time::sleep(delay).await;
                    match then {
                        Then::Begin(reason) => Step::Begin(reason),
                        Then::Watch => Step::Watch,
                    }
                }
            };
        }
    }

    fn begins_with_watch(&self) -> bool {
        self.options.first_read == FirstRead::WatchList && self.source.offers_watch_list()
    }

    fn list_options(&self) -> ListOptions {
        let mut options = ListOptions::default();
        options.label_selector.clone_from(&self.options.label_selector);
        options.field_selector.clone_from(&self.options.field_selector);
        options
    }

    fn watch_options(&self, version: VersionMatch) -> (WatchOptions, Duration) {
        let shortest = self.options.min_watch_timeout;
        let limit = shortest + shortest.mul_f64(crate::retry::random());
        let mut options = WatchOptions::default().version(version).bookmarks().timeout(limit);
        options.label_selector.clone_from(&self.options.label_selector);
        options.field_selector.clone_from(&self.options.field_selector);
        (options, limit)
    }
}

impl<L, S> std::fmt::Debug for Reflector<L, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflector").field("version", &self.version).finish_non_exhaustive()
    }
}

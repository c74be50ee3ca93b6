//! Watches: changes after the last version, until the watch ends.

use std::time::Duration;

use klient_core::{ResourceVersion, VersionMatch, WatchEvent};
use klient_proto::RawObject;
use tokio::time::Instant;

use super::{ListWatch, Reflector, ReflectorStore, RelistReason, Step, narrow::wait_for_change};
use crate::{
    Error, ErrorKind, deadline,
    informer::{
        delta_fifo::{Delta, Tombstone},
        list_watch::WatchEvents,
        store::Keyed as _,
    },
};

/// A watch that ends before this without an event did not work.
const SHORT: Duration = Duration::from_secs(1);
/// The time that a watch may last beyond the limit in its request.
const GRACE: Duration = Duration::from_secs(30);
/// The number of events after which a batch is applied even if more are at hand. Few enough that they, and the states that
/// they replace, are still in the processor's cache when handlers see them.
const BATCH: u64 = 32;
/// The time without an event after which a watch that replaces a failed one is suspected to wait for a version that this server
/// does not have yet.
const SUSPICIOUS: Duration = Duration::from_secs(5);

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Opens a watch from the last version.
    pub(super) async fn watch(&mut self) -> Step<L::Watch> {
        if let Some(step) = self.follow_wanted() {
            return step;
        }
        let (options, limit) = self.watch_options(VersionMatch::Exact(self.version.clone()));
        match self.source.watch(options, self.options.managed_fields).await {
            Ok(watch) => {
                tracing::debug!(resource = self.source.describe(), version = %self.version, "watching");
                Step::Follow(watch, limit)
            }
            Err(error) => self.after_watch_error(&error),
        }
    }

    /// Follows a watch until it ends.
    pub(super) async fn follow(&mut self, mut watch: L::Watch, limit: Duration) -> Step<L::Watch> {
        self.board.following();
        let mut progress = Progress::new(self.version.clone(), limit);
        let mut wanted = self.wanted_changes();
        if let Some(step) = self.follow_wanted() {
            return step;
        }
        let wake = tokio::time::sleep_until(self.dead_at(&progress));
        tokio::pin!(wake);
        let end = loop {
            let event = tokio::select! {
                biased;
                event = watch.next(), if progress.unflushed < BATCH => event,
                () = std::future::ready(()), if progress.unflushed > 0 => {
                    let full = progress.unflushed >= BATCH;
                    self.flush_events(&mut progress);
                    if full {
                        // Handlers go first. Otherwise old states pile up in front of them for as long as more is at hand.
                        crate::sync::yield_to_others().await;
                    }
                    if let Some(step) = self.follow_wanted() {
                        return step;
                    }
                    // From the first bookmark on, silence means a dead connection; and an unreadable event sets a time to relist.
                    let dead = self.dead_at(&progress);
                    if dead < wake.deadline() {
                        wake.as_mut().reset(dead);
                    }
                    continue;
                }
                () = wait_for_change(&mut wanted, self.has_strays()), if wanted.is_some() => {
                    match self.follow_wanted() {
                        Some(step) => return step,
                        None => continue,
                    }
                }
                () = &mut wake => {
                    let dead = self.dead_at(&progress);
                    if dead > Instant::now() {
                        wake.as_mut().reset(dead);
                        continue;
                    }
                    if self.relist_at.is_some_and(|at| at <= Instant::now()) {
                        return Step::Begin(RelistReason::Unreadable);
                    }
                    if self.reconnecting && self.may_check_version() {
                        return Step::CheckVersion;
                    }
                    break WatchEnd::Silent(progress.last_event.elapsed());
                }
            };
            match self.take_event(event, &watch, &mut progress) {
                None => {}
                Some(end) => break end,
            }
        };
        if progress.unflushed > 0 {
            self.flush_events(&mut progress);
        }
        if progress.events > 0 {
            self.empty_watches = 0;
        }
        if progress.events > 0 && progress.opened.elapsed() >= SHORT {
            self.expired = false;
            self.backoff.reset();
        }
        self.after_watch(end, &progress)
    }

    fn flush_events(&mut self, progress: &mut Progress) {
        let events = std::mem::take(&mut progress.unflushed);
        tracing::trace!(resource = self.source.describe(), events, version = %self.version, "received events");
        progress.last_event = Instant::now();
        self.flush();
        self.board.received(events, &self.version);
    }

    /// Queues the delta of one event. Returns how the watch ended, if it did.
    fn take_event(
        &mut self,
        event: Option<Result<WatchEvent<RawObject>, Error>>,
        watch: &L::Watch,
        progress: &mut Progress,
    ) -> Option<WatchEnd> {
        let is_deletion = matches!(event, Some(Ok(WatchEvent::Deleted(_))));
        let (delta, object): (ToDelta<S::Object>, RawObject) = match event {
            None => return Some(WatchEnd::Closed),
            Some(Ok(WatchEvent::Added(object))) => (Delta::Added, object),
            Some(Ok(WatchEvent::Modified(object))) => (Delta::Updated, object),
            Some(Ok(WatchEvent::Deleted(object))) => (|object| Delta::Deleted(Tombstone::Final(object)), object),
            Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                self.bookmarks_seen = true;
                self.board.bookmarked();
                if self.is_behind(&bookmark.resource_version, progress) {
                    return Some(WatchEnd::WentBack(bookmark.resource_version));
                }
                self.advance(bookmark.resource_version, progress);
                return None;
            }
            Some(Ok(WatchEvent::Error(status))) => return Some(WatchEnd::Failed(Error::from(status))),
            Some(Err(error)) if watch.is_ended() => return Some(WatchEnd::Failed(error)),
            Some(Err(error)) => {
                self.report_unreadable(&error);
                // The event may have been about any object. Only a list shows the state of all.
                if self.relist_at.is_none() {
                    self.relist_at = Some(Instant::now() + self.unreadable_backoff.delay(None));
                }
                self.advance(ResourceVersion::default(), progress);
                return None;
            }
        };
        let version: ResourceVersion = object.resource_version().as_deref().unwrap_or_default().into();
        // Some servers send a deletion with the version of the object's last change, which may be any older one.
        if !is_deletion && self.is_behind(&version, progress) {
            return Some(WatchEnd::WentBack(version));
        }
        let raw = object.clone();
        match self.store.ingest(object) {
            Ok(object) => {
                self.note_readable(object.key());
                if self.keeps_event(&object, is_deletion) {
                    self.fifo.push(delta(object));
                }
            }
            Err(error) if is_deletion => self.delete_unreadable(&raw.key(), &error),
            Err(error) => self.keep_unreadable(raw.key(), &error),
        }
        // Also past an object that cannot be stored: the server would send it again and again.
        self.advance(version, progress);
        None
    }

    /// Counts an event, and notes that everything up to its version has arrived.
    fn advance(&mut self, version: ResourceVersion, progress: &mut Progress) {
        progress.events += 1;
        progress.unflushed += 1;
        self.reconnecting = false;
        // Never back: events that arrive twice or out of order would otherwise be requested again.
        if !version.is_empty() && !self.version.is_newer_than(&version) {
            self.version = version;
        }
    }

    /// Returns whether a version is older than the one that the watch was opened from. A server sends no such version unless
    /// its own versions went back.
    fn is_behind(&self, version: &ResourceVersion, progress: &Progress) -> bool {
        !self.events_unordered && progress.from.is_newer_than(version)
    }

    fn after_watch(&mut self, end: WatchEnd, progress: &Progress) -> Step<L::Watch> {
        let events = progress.events;
        tracing::debug!(resource = self.source.describe(), events, version = %self.version, "watch ended");
        let short = events == 0 && progress.opened.elapsed() < SHORT;
        match end {
            WatchEnd::Closed if short => self.after_empty_watch(),
            WatchEnd::Closed => self.resume(events),
            WatchEnd::Silent(silence) => {
                let message =
                    format!("no event or bookmark arrived on the watch for {} s, reopening it", silence.as_secs());
                self.report(&Error::new(ErrorKind::Timeout, message));
                self.resume(events)
            }
            // The connection broke after it worked. Most likely there is another server to resume from.
            WatchEnd::Failed(error) if error.kind() == ErrorKind::Transport && !short => {
                self.report(&error);
                self.resume(events)
            }
            WatchEnd::Failed(error) => self.after_watch_error(&error),
            WatchEnd::WentBack(version) => self.after_version_went_back(&version),
        }
    }

    /// Resumes after a watch. One without any event may have waited for a version that this server does not have yet.
    fn resume(&self, events: u64) -> Step<L::Watch> {
        if events == 0 && self.may_check_version() { Step::CheckVersion } else { Step::Watch }
    }

    /// Returns when a watch counts as dead if nothing more arrives.
    fn dead_at(&self, progress: &Progress) -> Instant {
        let mut end = deadline::after(progress.opened, progress.limit) + GRACE;
        if let Some(at) = self.relist_at {
            end = end.min(at);
        }
        if self.reconnecting && self.may_check_version() {
            return end.min(progress.opened + SUSPICIOUS);
        }
        if self.bookmarks_seen { end.min(deadline::after(progress.last_event, self.options.max_silence)) } else { end }
    }
}

/// A constructor of a delta from an object.
type ToDelta<T> = fn(T) -> Delta<T>;

/// The progress of one watch.
struct Progress {
    /// The version that the watch was opened from.
    from: ResourceVersion,
    opened: Instant,
    limit: Duration,
    last_event: Instant,
    /// The number of events and bookmarks.
    events: u64,
    /// The number of events and bookmarks that are not applied yet.
    unflushed: u64,
}

impl Progress {
    fn new(from: ResourceVersion, limit: Duration) -> Self {
        let opened = Instant::now();
        Self { from, opened, limit, last_event: opened, events: 0, unflushed: 0 }
    }
}

/// The way in which a watch ended.
enum WatchEnd {
    /// The server closed the watch.
    Closed,
    /// The watch failed.
    Failed(Error),
    /// Nothing arrived for this time.
    Silent(Duration),
    /// The server sent this version, which is older than the one that the watch was opened from.
    WentBack(ResourceVersion),
}

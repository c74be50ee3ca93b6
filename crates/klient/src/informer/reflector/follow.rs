//! Changes: a watch from the last version, until it ends.

use std::time::Duration;

use klient_core::{ResourceVersion, VersionMatch, WatchEvent};
use klient_proto::RawObject;
use tokio::time::Instant;

use super::{Change, ListWatch, Reflector, ReflectorStore, Step};
use crate::{Error, ErrorKind, informer::list_watch::WatchEvents};

/// A watch that ends before this and brought nothing was no watch.
const SHORT: Duration = Duration::from_secs(1);
/// How long after its time a watch may end.
const GRACE: Duration = Duration::from_secs(30);
/// How many events are taken before they take effect, even if there are more at hand. Few enough that they, and the states that
/// they replace, are still in the processor's cache when handlers see them.
const BATCH: u64 = 32;

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Asks for the changes after the last version.
    pub(super) async fn watch(&mut self) -> Step<L::Watch> {
        let (options, limit) = self.watch_options(VersionMatch::Exact(self.version.clone()));
        match self.source.watch(options, self.options.managed_fields).await {
            Ok(watch) => {
                tracing::debug!(resource = self.source.describe(), version = %self.version, "watches");
                Step::Follow(watch, limit)
            }
            Err(error) => self.after_watch_error(&error),
        }
    }

    /// Takes what a watch brings until it ends.
    pub(super) async fn follow(&mut self, mut watch: L::Watch, limit: Duration) -> Step<L::Watch> {
        self.board.following();
        let opened = Instant::now();
        let mut last = opened;
        let mut events: u64 = 0;
        // Events that were taken and have not taken effect.
        let mut fresh: u64 = 0;
        let end = opened + limit + GRACE;
        let wake = tokio::time::sleep_until(self.dead_at(last, end));
        tokio::pin!(wake);
        let ended = loop {
            let event = tokio::select! {
                biased;
                event = watch.next(), if fresh < BATCH => event,
                () = std::future::ready(()), if fresh > 0 => {
                    last = Instant::now();
                    self.take_effect(fresh);
                    if fresh >= BATCH {
                        // Handlers go first. Otherwise old states pile up in front of them for as long as more is at hand.
                        tokio::task::yield_now().await;
                    }
                    fresh = 0;
                    // The first bookmark of all says that silence means something.
                    let dead = self.dead_at(last, end);
                    if dead < wake.deadline() {
                        wake.as_mut().reset(dead);
                    }
                    continue;
                }
                () = &mut wake => {
                    let dead = self.dead_at(last, end);
                    if dead <= Instant::now() {
                        break Ended::Silent(last.elapsed());
                    }
                    wake.as_mut().reset(dead);
                    continue;
                }
            };
            match self.take(event, &watch) {
                Taken::Nothing => {}
                Taken::Event => {
                    events += 1;
                    fresh += 1;
                }
                Taken::End(end) => break end,
            }
        };
        if fresh > 0 {
            self.take_effect(fresh);
        }
        if events > 0 {
            self.fruitless = 0;
        }
        self.after(ended, events, opened)
    }

    fn take_effect(&mut self, events: u64) {
        tracing::trace!(resource = self.source.describe(), events, version = %self.version, "events came");
        self.store.flush(&self.version);
        self.board.took(events, &self.version);
    }

    fn take(&mut self, event: Option<Result<WatchEvent<RawObject>, Error>>, watch: &L::Watch) -> Taken {
        let (change, object): (Make<S::Object>, RawObject) = match event {
            None => return Taken::End(Ended::Normally),
            Some(Ok(WatchEvent::Added(object))) => (Change::Added, object),
            Some(Ok(WatchEvent::Modified(object))) => (Change::Modified, object),
            Some(Ok(WatchEvent::Deleted(object))) => (Change::Deleted, object),
            Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                self.bookmarks_seen = true;
                self.board.bookmarked();
                self.advance(bookmark.resource_version);
                return Taken::Event;
            }
            Some(Ok(WatchEvent::Error(status))) => return Taken::End(Ended::Failed(Error::from(status))),
            Some(Err(error)) if watch.is_ended() => return Taken::End(Ended::Failed(error)),
            Some(Err(error)) => {
                self.report_unreadable(&error);
                return Taken::Nothing;
            }
        };
        let version: ResourceVersion = object.resource_version().as_deref().unwrap_or_default().into();
        match self.store.ingest_change(object) {
            Ok(object) => self.store.change(change(object)),
            Err(error) => self.report_unreadable(&error),
        }
        // Also past an object that cannot be kept: it would come again and again.
        self.advance(version);
        Taken::Event
    }

    fn advance(&mut self, version: ResourceVersion) {
        // Never back: events that come twice or out of order would otherwise be asked for again.
        if !version.is_empty() && !self.version.is_newer_than(&version) {
            self.version = version;
        }
    }

    fn after(&mut self, ended: Ended, events: u64, opened: Instant) -> Step<L::Watch> {
        tracing::debug!(resource = self.source.describe(), events, version = %self.version, "the watch has ended");
        let short = events == 0 && opened.elapsed() < SHORT;
        match ended {
            Ended::Normally if short => self.after_fruitless(),
            Ended::Normally => Step::Watch,
            Ended::Silent(silence) => {
                let what = format!("a watch was silent for {} s and is given up", silence.as_secs());
                self.report(&Error::new(ErrorKind::Timeout, what));
                Step::Watch
            }
            // A connection that broke after it worked: most likely there is another server to go on with.
            Ended::Failed(error) if error.kind() == ErrorKind::Transport && !short => {
                self.report(&error);
                Step::Watch
            }
            Ended::Failed(error) => self.after_watch_error(&error),
        }
    }

    /// When a watch is dead if nothing comes.
    fn dead_at(&self, last: Instant, end: Instant) -> Instant {
        if self.bookmarks_seen { end.min(last + self.options.max_silence) } else { end }
    }
}

/// Makes a change of an object.
type Make<T> = fn(T) -> Change<T>;

enum Taken {
    Nothing,
    Event,
    End(Ended),
}

/// How a watch ended.
enum Ended {
    /// The server closed it.
    Normally,
    Failed(Error),
    /// Nothing came for so long.
    Silent(Duration),
}

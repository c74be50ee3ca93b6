//! Reads of the whole state: by a list in pages, or by a watch that begins with the current state.

use std::time::Duration;

use hashbrown::HashMap;
use klient_core::{ObjectKey, ResourceVersion, VersionMatch, WatchEvent};
use klient_proto::RawObject;
use tokio::time::Instant;

use super::{
    ListWatch, Reflector, ReflectorStore, RelistReason, Step, errors::is_version_unavailable, unreadable::ReadState,
};
use crate::{
    Error, ErrorKind, deadline,
    informer::{
        list_watch::{ListItems as _, WatchEvents},
        store::Keyed as _,
    },
};

const PAGE: u32 = 500;

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Reads the whole state by lists, and replaces the content of the store.
    pub(super) async fn list(&mut self, reason: RelistReason) -> Step<L::Watch> {
        self.board.started();
        self.begin_read();
        match self.read_list().await {
            Ok((_, version)) if self.is_unexpectedly_old(&version) => self.after_version_went_back(&version),
            Ok((state, version)) => {
                self.replace(state, version, reason);
                Step::Watch
            }
            Err(error) => self.after_list_error(&error, reason),
        }
    }

    pub(super) fn replace(&mut self, state: ReadState<S::Object>, version: ResourceVersion, reason: RelistReason) {
        // A list with an object of unknown key may hide any change. It is read again, paced as after an unreadable event.
        self.relist_at = (!state.is_complete).then(|| Instant::now() + self.unreadable_backoff.delay(None));
        let objects = self.keep_last_known(state);
        tracing::debug!(
            resource = self.source.describe(),
            objects = objects.len(),
            %version,
            reason = reason.as_str(),
            "listed"
        );
        self.note_listed(&version);
        self.version = version;
        self.version_unavailable = false;
        self.reconnecting = false;
        self.empty_watches = 0;
        self.fifo.replace(objects, self.version.clone());
        self.flush();
        self.board.listed(reason, &self.version);
        self.end_read();
    }

    /// Returns whether a list is older than the last version seen although cached objects were reused for it. They must not be:
    /// after the versions went back, equal versions do not mean equal objects.
    fn is_unexpectedly_old(&self, version: &ResourceVersion) -> bool {
        !self.version_went_back && self.version.is_newer_than(version)
    }

    fn ingest_listed(&mut self, object: RawObject) -> Result<S::Object, Error> {
        if self.version_went_back { self.store.ingest(object) } else { self.store.ingest_listed(object) }
    }

    async fn read_list(&mut self) -> Result<(ReadState<S::Object>, ResourceVersion), Error> {
        let version = self.wanted_version();
        let limit = self.options.page_size.unwrap_or(match &version {
            _ if self.pages_anyway => PAGE,
            // The server answers from its cache, without pages.
            VersionMatch::NotOlderThan(_) => 0,
            _ => PAGE,
        });
        let any_version = version == VersionMatch::Any;
        let first = self.list_options().version(version).limit(limit);
        let mut state = ReadState::default();
        let mut end = self.read_page(first, &mut state).await?;
        while let Some(token) = end.1.take() {
            self.pages_anyway |= any_version;
            match self.read_page(self.list_options().limit(limit).continue_token(token), &mut state).await {
                Ok(next) => end.1 = next.1,
                // The pages so far are of an expired version. A list in one piece cannot expire half-way.
                Err(error) if is_version_unavailable(&error) => {
                    state = ReadState::default();
                    end = self.read_page(self.list_options(), &mut state).await?;
                }
                Err(error) => return Err(error),
            }
        }
        if end.0.is_empty() || end.0.as_str() == "0" {
            return Err(Error::new(
                ErrorKind::Decode,
                "the list has no resourceVersion to watch from, so it cannot be followed",
            ));
        }
        Ok((state, end.0))
    }

    /// Reads one page. Returns the version of the list and the token of the next page.
    async fn read_page(
        &mut self,
        options: klient_core::ListOptions,
        state: &mut ReadState<S::Object>,
    ) -> Result<(ResourceVersion, Option<String>), Error> {
        let mut list = self.source.list(options, self.options.managed_fields).await?;
        let mut unreadable: Option<Error> = None;
        while let Some(item) = list.next().await {
            if let Some(error) = unreadable.take() {
                self.report_unreadable(&error);
                state.is_complete = false;
            }
            let object = match item {
                Ok(object) => object,
                Err(error) => {
                    unreadable = Some(error);
                    continue;
                }
            };
            let raw = object.clone();
            match self.ingest_listed(object) {
                Ok(object) if self.keeps(&object) => state.objects.push(object),
                Ok(_) => {}
                Err(error) => {
                    self.report_unreadable(&error);
                    state.unreadable.insert(raw.key());
                }
            }
        }
        // Without an end, the last error was about the list itself.
        let Some(end) = list.end() else {
            return Err(unreadable
                .unwrap_or_else(|| Error::new(ErrorKind::Decode, "the list ended before its closing metadata")));
        };
        if let Some(error) = unreadable {
            self.report_unreadable(&error);
            state.is_complete = false;
        }
        let metadata = end.metadata;
        let token = metadata.continue_.filter(|token| !token.is_empty());
        Ok((metadata.resource_version.unwrap_or_default().into(), token))
    }

    fn wanted_version(&self) -> VersionMatch {
        if self.reads_new_slots() {
            return VersionMatch::MostRecent;
        }
        match (self.version.is_empty(), self.version_unavailable || self.options.consistent_first_read) {
            (false, _) if !self.version_unavailable => VersionMatch::NotOlderThan(self.version.clone()),
            (true, false) => VersionMatch::Any,
            _ => VersionMatch::MostRecent,
        }
    }

    /// Reads the whole state by a watch that begins with it, and follows that watch.
    pub(super) async fn watch_list(&mut self, reason: RelistReason) -> Step<L::Watch> {
        self.board.started();
        self.begin_read();
        let version = match self.wanted_version() {
            VersionMatch::Any => VersionMatch::MostRecent,
            version => version,
        };
        let (options, limit) = self.watch_options(version);
        let options = options.send_initial_events(true);
        let mut watch = match self.source.watch(options, self.options.managed_fields).await {
            Ok(watch) => watch,
            Err(error) if error.kind() == ErrorKind::Invalid => {
                tracing::info!(resource = self.source.describe(), %error, "server does not send initial events, listing");
                self.source.lacks_watch_list();
                return Step::List(reason);
            }
            Err(error) => return self.after_watch_list_error(&error, reason),
        };
        match self.initial_events(&mut watch).await {
            Initial::Complete(_, version) if self.is_unexpectedly_old(&version) => {
                self.after_version_went_back(&version)
            }
            Initial::Complete(state, version) => {
                self.replace(state, version, reason);
                Step::Follow(watch, limit)
            }
            Initial::Lacking => {
                self.source.lacks_watch_list();
                Step::List(reason)
            }
            Initial::Broken => Step::List(reason),
            Initial::Failed(error) => self.after_watch_list_error(&error, reason),
        }
    }

    async fn initial_events(&mut self, watch: &mut L::Watch) -> Initial<S::Object> {
        let mut objects: HashMap<ObjectKey, S::Object, foldhash::quality::RandomState> = HashMap::default();
        let mut state = ReadState::default();
        let deadline: Duration = self.options.watch_list_deadline;
        let silence = tokio::time::sleep(deadline);
        tokio::pin!(silence);
        let mut last = Instant::now();
        loop {
            let event = tokio::select! {
                biased;
                event = watch.next() => event,
                () = &mut silence => {
                    if last.elapsed() < deadline {
                        silence.as_mut().reset(deadline::after(last, deadline));
                        continue;
                    }
                    tracing::info!(resource = self.source.describe(), "initial events did not arrive in time, listing");
                    return Initial::Lacking;
                }
            };
            last = Instant::now();
            match event {
                None => return Initial::Broken,
                Some(Ok(WatchEvent::Bookmark(bookmark))) if bookmark.initial_events_end => {
                    state.objects = objects.into_values().collect();
                    return Initial::Complete(state, bookmark.resource_version);
                }
                Some(Ok(WatchEvent::Bookmark(_))) => {}
                Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    let raw = object.clone();
                    match self.ingest_listed(object) {
                        Ok(object) if !self.keeps(&object) => {
                            state.unreadable.remove(object.key());
                            objects.remove(object.key());
                        }
                        Ok(object) => {
                            state.unreadable.remove(object.key());
                            objects.insert(object.key().clone(), object);
                        }
                        Err(error) => {
                            self.report_unreadable(&error);
                            let key = raw.key();
                            objects.remove(&key);
                            state.unreadable.insert(key);
                        }
                    }
                }
                Some(Ok(WatchEvent::Deleted(object))) => {
                    let key = object.key();
                    state.unreadable.remove(&key);
                    objects.remove(&key);
                }
                Some(Ok(WatchEvent::Error(status))) => return Initial::Failed(Error::from(status)),
                Some(Err(error)) if watch.is_ended() => return Initial::Failed(error),
                Some(Err(error)) => {
                    self.report_unreadable(&error);
                    state.is_complete = false;
                }
            }
        }
    }
}

/// The outcome of the initial events of a watch.
enum Initial<T> {
    /// All of them arrived.
    Complete(ReadState<T>, ResourceVersion),
    /// The server does not send them.
    Lacking,
    /// The watch ended before they were complete.
    Broken,
    Failed(Error),
}

//! The whole state: by a list in pages, or by a watch that begins with it.

use std::time::Duration;

use hashbrown::HashMap;
use klient_core::{ObjectKey, ResourceVersion, VersionMatch, WatchEvent};
use klient_proto::RawObject;
use tokio::time::Instant;

use super::{ListWatch, Reflector, ReflectorStore, Relist, Step, errors::is_version_trouble};
use crate::{
    Error, ErrorKind,
    informer::{
        list_watch::{ListItems as _, WatchEvents},
        store::Keyed as _,
    },
};

const PAGE: u32 = 500;

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Reads the whole state by lists, and gives it to the store.
    pub(super) async fn list(&mut self, reason: Relist) -> Step<L::Watch> {
        self.board.started();
        match self.read_list().await {
            Ok((objects, version)) => {
                self.replace(objects, version, reason);
                Step::Watch
            }
            Err(error) => self.after_list_error(&error, reason),
        }
    }

    fn replace(&mut self, objects: Vec<S::Object>, version: ResourceVersion, reason: Relist) {
        tracing::debug!(resource = self.source.describe(), objects = objects.len(), %version, "read the whole state");
        self.version = version;
        self.version_unavailable = false;
        self.fruitless = 0;
        self.store.replace(objects, &self.version);
        self.store.flush(&self.version);
        self.board.listed(reason, &self.version);
    }

    async fn read_list(&mut self) -> Result<(Vec<S::Object>, ResourceVersion), Error> {
        let version = self.wanted_version();
        let limit = self.options.page_size.unwrap_or(match &version {
            _ if self.pages_anyway => PAGE,
            // Served from the server's cache, whole.
            VersionMatch::NotOlderThan(_) => 0,
            _ => PAGE,
        });
        let any_version = version == VersionMatch::Any;
        let first = self.list_options().version(version).limit(limit);
        let mut objects = Vec::new();
        let mut end = self.read_page(first, &mut objects).await?;
        while let Some(token) = end.1.take() {
            self.pages_anyway |= any_version;
            match self.read_page(self.list_options().limit(limit).continue_token(token), &mut objects).await {
                Ok(next) => end.1 = next.1,
                // The pages so far are of a state that is gone: one that needs no second page cannot expire.
                Err(error) if is_version_trouble(&error) => {
                    objects.clear();
                    end = self.read_page(self.list_options(), &mut objects).await?;
                }
                Err(error) => return Err(error),
            }
        }
        if end.0.is_empty() || end.0.as_str() == "0" {
            return Err(Error::new(ErrorKind::Decode, "the list has no resourceVersion to watch from"));
        }
        Ok((objects, end.0))
    }

    /// Reads one page; gives back the version of the list and the token for the next page.
    async fn read_page(
        &mut self,
        options: klient_core::ListOptions,
        objects: &mut Vec<S::Object>,
    ) -> Result<(ResourceVersion, Option<String>), Error> {
        let mut list = self.source.list(options, self.options.managed_fields).await?;
        let mut unreadable: Option<Error> = None;
        while let Some(item) = list.next().await {
            if let Some(error) = unreadable.take() {
                self.report_unreadable(&error);
            }
            match item.and_then(|object| self.store.ingest(object)) {
                Ok(object) => objects.push(object),
                Err(error) => unreadable = Some(error),
            }
        }
        // The last error was about the list itself if that has no end.
        let Some(end) = list.end() else {
            return Err(unreadable.unwrap_or_else(|| Error::new(ErrorKind::Decode, "the list has no end")));
        };
        if let Some(error) = unreadable {
            self.report_unreadable(&error);
        }
        let metadata = end.metadata;
        let token = metadata.continue_.filter(|token| !token.is_empty());
        Ok((metadata.resource_version.unwrap_or_default().into(), token))
    }

    fn wanted_version(&self) -> VersionMatch {
        match (self.version.is_empty(), self.version_unavailable || self.options.consistent_first_read) {
            (false, _) if !self.version_unavailable => VersionMatch::NotOlderThan(self.version.clone()),
            (true, false) => VersionMatch::Any,
            _ => VersionMatch::MostRecent,
        }
    }

    /// Reads the whole state by a watch that begins with it, and goes on with that watch.
    pub(super) async fn watch_list(&mut self, reason: Relist) -> Step<L::Watch> {
        self.board.started();
        let version = match self.wanted_version() {
            VersionMatch::Any => VersionMatch::MostRecent,
            version => version,
        };
        let (options, limit) = self.watch_options(version);
        let options = options.send_initial_events(true);
        let mut watch = match self.source.watch(options, self.options.managed_fields).await {
            Ok(watch) => watch,
            Err(error) if error.kind() == ErrorKind::Invalid => {
                tracing::info!(resource = self.source.describe(), %error, "no initial events from this server; listing");
                self.source.lacks_watch_list();
                return Step::List(reason);
            }
            Err(error) => return self.after_list_error(&error, reason),
        };
        match self.initial_events(&mut watch).await {
            Initial::Complete(objects, version) => {
                self.replace(objects, version, reason);
                Step::Follow(watch, limit)
            }
            Initial::Lacking => {
                self.source.lacks_watch_list();
                Step::List(reason)
            }
            Initial::Broken => Step::List(reason),
            Initial::Failed(error) => self.after_list_error(&error, reason),
        }
    }

    async fn initial_events(&mut self, watch: &mut L::Watch) -> Initial<S::Object> {
        let mut objects: HashMap<ObjectKey, S::Object, foldhash::quality::RandomState> = HashMap::default();
        let patience: Duration = self.options.watch_list_deadline;
        let silence = tokio::time::sleep(patience);
        tokio::pin!(silence);
        let mut last = Instant::now();
        loop {
            let event = tokio::select! {
                biased;
                event = watch.next() => event,
                () = &mut silence => {
                    if last.elapsed() < patience {
                        silence.as_mut().reset(last + patience);
                        continue;
                    }
                    tracing::info!(resource = self.source.describe(), "initial events do not come; listing");
                    return Initial::Lacking;
                }
            };
            last = Instant::now();
            match event {
                None => return Initial::Broken,
                Some(Ok(WatchEvent::Bookmark(bookmark))) if bookmark.initial_events_end => {
                    return Initial::Complete(objects.into_values().collect(), bookmark.resource_version);
                }
                Some(Ok(WatchEvent::Bookmark(_))) => {}
                Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => match self.store.ingest(object) {
                    Ok(object) => drop(objects.insert(object.key().clone(), object)),
                    Err(error) => self.report_unreadable(&error),
                },
                Some(Ok(WatchEvent::Deleted(object))) => drop(objects.remove(&RawObject::key(&object))),
                Some(Ok(WatchEvent::Error(status))) => return Initial::Failed(Error::from(status)),
                Some(Err(error)) if watch.is_ended() => return Initial::Failed(error),
                Some(Err(error)) => self.report_unreadable(&error),
            }
        }
    }
}

/// How the initial events of a watch ended.
enum Initial<T> {
    Complete(Vec<T>, ResourceVersion),
    /// The server does not send any.
    Lacking,
    /// The watch ended before they did.
    Broken,
    Failed(Error),
}

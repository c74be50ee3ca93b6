//! Following changes.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use klient_core::{Resource, ResourceVersion, VersionMatch, WatchOptions};
use klient_proto::SplitOptions;

use super::{ResponseFuture, select_methods};
use crate::{
    Api, Error,
    client::{
        RetryWatch, Watch as Events,
        endpoint::{Endpoint, Shape},
    },
};

/// A request to follow changes. See [`Api::watch`](crate::Api::watch).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Watch<K> {
    endpoint: Arc<Endpoint>,
    options: WatchOptions,
    split: SplitOptions,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Watch<K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>) -> Self {
        let split = SplitOptions::default().managed_fields(endpoint.client.managed_fields());
        Self { endpoint, options: WatchOptions::default(), split, kind: PhantomData }
    }

    /// Starts after this resource version, as a list or an event reported it.
    #[doc(alias = "resourceVersion")]
    pub fn after(mut self, version: impl Into<ResourceVersion>) -> Self {
        self.options = self.options.version(VersionMatch::Exact(version.into()));
        self
    }

    /// Starts with the current objects as added events, and a bookmark after the last of them.
    #[doc(alias = "sendInitialEvents")]
    #[doc(alias = "WatchList")]
    pub fn initial_events(mut self) -> Self {
        self.options = self.options.send_initial_events(true).bookmarks();
        self
    }

    select_methods!(options);

    /// Asks for bookmarks: events that only report how far the watch has come.
    #[doc(alias = "allowWatchBookmarks")]
    pub fn bookmarks(mut self) -> Self {
        self.options = self.options.bookmarks();
        self
    }

    /// Sets after how long the server ends the watch.
    #[doc(alias = "timeoutSeconds")]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout(timeout);
        self
    }

    /// Sets all options at once.
    pub fn options(mut self, options: WatchOptions) -> Self {
        self.options = options;
        self
    }

    /// Chooses which bytes of each object are kept.
    pub fn split(mut self, split: SplitOptions) -> Self {
        self.split = split;
        self
    }

    /// Returns a watch that reconnects by itself, and continues after the last version it has seen.
    ///
    /// # Errors
    ///
    /// If the request does not start [`after`](Self::after) a version.
    #[doc(alias = "RetryWatcher")]
    pub fn retrying(self) -> Result<RetryWatch<K>, Error> {
        RetryWatch::new(Api::from_endpoint(self.endpoint), self.options)
    }
}

impl<K: Resource> IntoFuture for Watch<K> {
    type Output = Result<Events<K>, Error>;
    type IntoFuture = ResponseFuture<'static, Events<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = self.endpoint.builder::<K>(Shape::Watch).watch(&self.options)?;
            self.endpoint.call(request, None).watch_with(self.split).await
        })
    }
}

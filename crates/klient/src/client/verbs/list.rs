//! Reading many objects.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use klient_core::{List as Objects, ListOptions, Resource, VersionMatch};
use klient_proto::{ListEnd, RawObject, SplitOptions};

use super::{ResponseFuture, select_methods};
use crate::{
    Api, Error, ErrorKind,
    client::{
        ListStream, Pager,
        endpoint::{Endpoint, Shape},
    },
};

/// A request to read many objects. See [`Api::list`](crate::Api::list).
///
/// Awaited, it reads all of them into memory; [`stream`](Self::stream) and [`pages`](Self::pages) do not.
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct List<K> {
    endpoint: Arc<Endpoint>,
    options: ListOptions,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> List<K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, options: ListOptions::default(), kind: PhantomData }
    }

    select_methods!(options);

    /// Sets how many objects one response may have.
    pub fn limit(mut self, limit: u32) -> Self {
        self.options = self.options.limit(limit);
        self
    }

    /// Continues after the page that this token came with.
    #[doc(alias = "continue")]
    pub fn continue_token(mut self, token: impl Into<String>) -> Self {
        self.options = self.options.continue_token(token);
        self
    }

    /// Sets how fresh the list must be.
    #[doc(alias = "resourceVersion")]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.options = self.options.version(version);
        self
    }

    /// Sets how long the server may take.
    #[doc(alias = "timeoutSeconds")]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout(timeout);
        self
    }

    /// Sets all options at once.
    pub fn options(mut self, options: ListOptions) -> Self {
        self.options = options;
        self
    }

    /// Returns a pager, which reads the list 500 objects at a time unless [`limit`](Self::limit) says otherwise.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn count(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let mut pages = pods.list().labels("app=web").pages();
    /// while let Some(page) = pages.next_page().await? {
    ///     println!("{} more pods", page.items.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "ListPager")]
    pub fn pages(self) -> Pager<K> {
        Pager::new(Api::from_endpoint(self.endpoint), self.options)
    }

    /// Sends the request, and returns the objects as they arrive.
    ///
    /// # Errors
    ///
    /// If the list cannot be started.
    pub async fn stream(self) -> Result<ListStream<K>, Error> {
        let split = SplitOptions::default().managed_fields(self.endpoint.client.managed_fields());
        self.stream_with(split).await
    }

    /// Sends the request, and returns the objects as they arrive. `split` chooses which bytes of each object are kept.
    ///
    /// # Errors
    ///
    /// If the list cannot be started.
    pub async fn stream_with(self, split: SplitOptions) -> Result<ListStream<K>, Error> {
        let request = self.endpoint.builder::<K>(Shape::List).list(&self.options)?;
        self.endpoint.call(request, None).items(&self.endpoint.resource).list_stream(split).await
    }

    /// Sends the request, and calls `sink` with each object in wire form as soon as its last byte has arrived.
    ///
    /// # Errors
    ///
    /// For any reason a server or connection gives. An object that cannot be read is an error for `sink`, and the rest
    /// follows.
    pub async fn for_each_raw(
        self,
        split: SplitOptions,
        mut sink: impl FnMut(Result<RawObject, Error>),
    ) -> Result<ListEnd, Error> {
        let endpoint = Arc::clone(&self.endpoint);
        let mut stream = self.stream_with(split).await?;
        // There is no limit on the whole: a server that stops sending ends the stream.
        while let Some(item) = stream.next_raw().await {
            match item {
                Err(error) if stream.is_broken() => return Err(error),
                item => sink(item),
            }
        }
        let end = stream.end().ok_or_else(|| Error::new(ErrorKind::Decode, "list response is incomplete"))?;
        endpoint.check_list_kind(&end.kind)?;
        Ok(end)
    }
}

impl<K: Resource> IntoFuture for List<K> {
    type Output = Result<Objects<K>, Error>;
    type IntoFuture = ResponseFuture<'static, Objects<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = self.endpoint.builder::<K>(Shape::List).list(&self.options)?;
            let list = self.endpoint.call(request, None).items(&self.endpoint.resource).list().await?;
            self.endpoint.check_list_kind(list.types.as_ref().map_or("", |types| types.kind.as_str()))?;
            Ok(list)
        })
    }
}

//! Creating objects, and posting to subresources.

use std::sync::Arc;

use klient_core::{CreateOptions, RequestBuilder, Resource, Status};

use super::{ResponseFuture, write_methods};
use crate::{
    Error,
    client::{call::Call, endpoint::Endpoint},
};

/// A request to create an object. See [`Api::create`](crate::Api::create).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Create<'a, K> {
    endpoint: Arc<Endpoint>,
    /// The object that a subresource belongs to; `None` without one.
    parent: Option<String>,
    object: &'a K,
    options: CreateOptions,
}

/// A request to post to a subresource that responds with a status, such as an eviction.
/// See [`Subresource::post`](crate::client::Subresource::post).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Post<'a, K> {
    create: Create<'a, K>,
}

impl<'a, K: Resource> Create<'a, K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, object: &'a K) -> Self {
        Self { endpoint, parent: None, object, options: CreateOptions::default() }
    }

    pub(in crate::client) fn below(endpoint: Arc<Endpoint>, parent: &str, object: &'a K) -> Self {
        Self { endpoint, parent: Some(parent.to_owned()), object, options: CreateOptions::default() }
    }

    write_methods!(CreateOptions);

    /// Expects a status as the response.
    pub(in crate::client) fn post(self) -> Post<'a, K> {
        Post { create: self }
    }

    async fn send<T, F: Future<Output = Result<T, Error>>>(self, finish: impl Fn(Call) -> F) -> Result<T, Error> {
        let Self { endpoint, parent, object, options } = self;
        let build = |builder: RequestBuilder<'_>, body| match parent.as_deref() {
            Some(parent) => builder.create_subresource(parent, &options, body),
            None => builder.create(&options, body),
        };
        let finish = |call: Call| finish(call.dry_run(options.dry_run));
        endpoint.write(object, parent.as_deref(), build, finish).await
    }
}

impl<K: Resource> Post<'_, K> {
    /// Has the server do everything but store the result.
    pub fn dry_run(mut self) -> Self {
        self.create = self.create.dry_run();
        self
    }

    /// Sets all options at once.
    pub fn options(mut self, options: CreateOptions) -> Self {
        self.create = self.create.options(options);
        self
    }
}

impl<'a, K: Resource> IntoFuture for Create<'a, K> {
    type Output = Result<K, Error>;
    type IntoFuture = ResponseFuture<'a, K>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send(Call::object))
    }
}

impl<'a, K: Resource> IntoFuture for Post<'a, K> {
    type Output = Result<Status, Error>;
    type IntoFuture = ResponseFuture<'a, Status>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.create.send(Call::status))
    }
}

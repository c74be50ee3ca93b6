//! Reading one object.

use std::{marker::PhantomData, sync::Arc};

use klient_core::{GetOptions, Resource, VersionMatch};

use super::ResponseFuture;
use crate::client::endpoint::{Endpoint, Shape};

/// A request to read one object. See [`Api::get`](crate::Api::get).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Get<K> {
    endpoint: Arc<Endpoint>,
    name: String,
    options: GetOptions,
    kind: PhantomData<fn() -> K>,
}

/// A request to read one object that may not exist. See [`Api::get_opt`](crate::Api::get_opt).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct GetOptional<K> {
    get: Get<K>,
}

impl<K: Resource> Get<K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, name: &str) -> Self {
        Self { endpoint, name: name.to_owned(), options: GetOptions::default(), kind: PhantomData }
    }

    /// Sets how fresh the object must be.
    #[doc(alias = "resourceVersion")]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.options = self.options.version(version);
        self
    }

    /// Sets all options at once.
    pub fn options(mut self, options: GetOptions) -> Self {
        self.options = options;
        self
    }

    /// Turns a missing object into `None`.
    pub(in crate::client) fn optional(self) -> GetOptional<K> {
        GetOptional { get: self }
    }
}

impl<K: Resource> GetOptional<K> {
    /// Sets how fresh the object must be.
    #[doc(alias = "resourceVersion")]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.get = self.get.version(version);
        self
    }

    /// Sets all options at once.
    pub fn options(mut self, options: GetOptions) -> Self {
        self.get = self.get.options(options);
        self
    }
}

impl<K: Resource> IntoFuture for Get<K> {
    type Output = Result<K, crate::Error>;
    type IntoFuture = ResponseFuture<'static, K>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = self.endpoint.builder::<K>(Shape::Object).get(&self.name, &self.options)?;
            self.endpoint.call(request, Some(&self.name)).object().await
        })
    }
}

impl<K: Resource> IntoFuture for GetOptional<K> {
    type Output = Result<Option<K>, crate::Error>;
    type IntoFuture = ResponseFuture<'static, Option<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.get.await {
                Ok(object) => Ok(Some(object)),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            }
        })
    }
}

//! Replacing objects.

use std::sync::Arc;

use klient_core::{RequestBuilder, Resource, UpdateOptions};

use super::{ResponseFuture, write_methods};
use crate::{
    Error, ErrorKind,
    client::{call::Call, endpoint::Endpoint},
};

/// A request to replace an object. See [`Api::update`](crate::Api::update).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Update<'a, K> {
    endpoint: Arc<Endpoint>,
    name: Option<String>,
    object: &'a K,
    options: UpdateOptions,
}

impl<'a, K: Resource> Update<'a, K> {
    /// Replaces the object that `object` is named after.
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, object: &'a K) -> Self {
        Self { endpoint, name: object.metadata().name.clone(), object, options: UpdateOptions::default() }
    }

    /// Replaces a subresource of the object `name`.
    pub(in crate::client) fn named(endpoint: Arc<Endpoint>, name: &str, object: &'a K) -> Self {
        Self { endpoint, name: Some(name.to_owned()), object, options: UpdateOptions::default() }
    }

    write_methods!(UpdateOptions);
}

impl<'a, K: Resource> IntoFuture for Update<'a, K> {
    type Output = Result<K, Error>;
    type IntoFuture = ResponseFuture<'a, K>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { endpoint, name, object, options } = self;
            let name = name.filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| {
                let message = format!("cannot update {}: the object has no name", endpoint.resource.group_resource());
                Error::new(ErrorKind::Invalid, message)
            })?;
            let build = |builder: RequestBuilder<'_>, body| builder.update(&name, &options, body);
            let finish = |call: Call| call.dry_run(options.dry_run).object();
            endpoint.write(object, Some(&name), build, finish).await
        })
    }
}

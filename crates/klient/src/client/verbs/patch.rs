//! Changing a part of an object.

use std::{marker::PhantomData, sync::Arc};

use klient_core::{Patch as Changes, PatchOptions, Resource};

use super::{ResponseFuture, write_methods};
use crate::{
    Error,
    client::endpoint::{Endpoint, Shape},
};

/// A request to change a part of an object. See [`Api::patch`](crate::Api::patch).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Patch<K> {
    endpoint: Arc<Endpoint>,
    name: String,
    changes: Changes,
    options: PatchOptions,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Patch<K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, name: &str, changes: Changes) -> Self {
        Self { endpoint, name: name.to_owned(), changes, options: PatchOptions::default(), kind: PhantomData }
    }

    write_methods!(PatchOptions);
}

impl<K: Resource> IntoFuture for Patch<K> {
    type Output = Result<K, Error>;
    type IntoFuture = ResponseFuture<'static, K>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { endpoint, name, changes, options, .. } = self;
            let request = endpoint.builder::<K>(Shape::Object).patch(&name, &options, &changes)?;
            endpoint.call(request, Some(&name)).dry_run(options.dry_run).object().await
        })
    }
}

//! Deleting many objects at once.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use klient_core::{DeleteCollectionOptions, DeleteOptions, ListOptions, PropagationPolicy, Resource};

use super::{ResponseFuture, delete::delete_methods, select_methods};
use crate::{
    Error,
    client::endpoint::{Endpoint, Shape},
};

/// A request to delete all objects that match. See [`Api::delete_collection`](crate::Api::delete_collection).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct DeleteCollection<K> {
    endpoint: Arc<Endpoint>,
    which: ListOptions,
    options: DeleteOptions,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> DeleteCollection<K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, which: ListOptions::default(), options: DeleteOptions::default(), kind: PhantomData }
    }

    select_methods!(which);

    delete_methods!();

    /// Sets all options at once.
    pub fn options(mut self, options: DeleteCollectionOptions) -> Self {
        (self.which, self.options) = (options.list, options.delete);
        self
    }
}

impl<K: Resource> IntoFuture for DeleteCollection<K> {
    type Output = Result<(), Error>;
    type IntoFuture = ResponseFuture<'static, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let options = DeleteCollectionOptions::default().list(self.which).delete(self.options);
            let request = self.endpoint.builder::<K>(Shape::Object).delete_collection(&options)?;
            // The response lists everything that was deleted, however much that is: it is read and dropped.
            self.endpoint.call(request, None).discard().await
        })
    }
}

//! Evicting a pod.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{api::policy::v1::Eviction, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use klient_core::{CreateOptions, DeleteOptions, PropagationPolicy, Status};

use super::{Create, ResponseFuture, delete::delete_methods};
use crate::{Error, client::endpoint::Endpoint};

/// A request to delete a pod if its disruption budgets allow it. See [`Api::evict`](crate::Api::evict).
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Evict {
    endpoint: Arc<Endpoint>,
    name: String,
    options: DeleteOptions,
}

impl Evict {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, name: &str) -> Self {
        Self { endpoint, name: name.to_owned(), options: DeleteOptions::default() }
    }

    delete_methods!();

    /// Sets all options of the delete at once.
    pub fn options(mut self, options: DeleteOptions) -> Self {
        self.options = options;
        self
    }
}

impl IntoFuture for Evict {
    type Output = Result<Status, Error>;
    type IntoFuture = ResponseFuture<'static, Status>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { endpoint, name, options } = self;
            let metadata = ObjectMeta {
                name: Some(name.clone()),
                namespace: endpoint.namespace().map(str::to_owned),
                ..ObjectMeta::default()
            };
            let eviction = Eviction { metadata, delete_options: Some(options.to_openapi()?) };
            let mut create = CreateOptions::default();
            create.dry_run = options.dry_run;
            Create::below(endpoint, &name, &eviction).options(create).post().await
        })
    }
}

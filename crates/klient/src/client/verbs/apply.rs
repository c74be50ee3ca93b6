//! Server-side apply.

use std::{marker::PhantomData, sync::Arc};

use klient_core::{ApplyOptions, Resource};
use serde::Serialize;

use super::{ResponseFuture, write_methods};
use crate::{
    Error, ErrorKind,
    client::endpoint::{Endpoint, Shape},
};

/// A server-side apply. See [`Api::apply`](crate::Api::apply).
#[derive(Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Apply<K> {
    endpoint: Arc<Endpoint>,
    name: String,
    fields: Result<Vec<u8>, serde_json::Error>,
    options: ApplyOptions,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Apply<K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, name: &str, fields: &impl Serialize) -> Self {
        let fields = serde_json::to_vec(fields);
        Self { endpoint, name: name.to_owned(), fields, options: ApplyOptions::new(""), kind: PhantomData }
    }

    write_methods!(ApplyOptions);

    /// Takes over fields that other managers own, instead of failing with a conflict.
    pub fn force(mut self) -> Self {
        self.options = self.options.force();
        self
    }
}

impl<K: Resource> IntoFuture for Apply<K> {
    type Output = Result<K, Error>;
    type IntoFuture = ResponseFuture<'static, K>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { endpoint, name, fields, options, .. } = self;
            let fields = fields.map_err(|error| {
                let message = format!("cannot serialize the fields to apply to {name:?} as JSON");
                Error::new(ErrorKind::Invalid, message).with_source(error)
            })?;
            let request = endpoint.builder::<K>(Shape::Object).apply(&name, &options, fields)?;
            endpoint.call(request, Some(&name)).dry_run(options.dry_run).object().await
        })
    }
}

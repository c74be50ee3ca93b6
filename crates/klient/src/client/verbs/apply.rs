//! Server-side apply.

use std::{marker::PhantomData, sync::Arc};

use klient_core::{
    ApplyOptions, Resource,
    fields::{ExtractError, is_applied},
};
use serde::Serialize;
use serde_json::Value;

use super::{ResponseFuture, write_methods};
use crate::{
    Error, ErrorKind,
    client::endpoint::{Endpoint, Shape},
    metrics::Registry,
};

/// A server-side apply. See [`Api::apply`](crate::Api::apply).
#[derive(Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Apply<K> {
    endpoint: Arc<Endpoint>,
    configuration: Result<Value, serde_json::Error>,
    options: ApplyOptions,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Apply<K> {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, configuration: &impl Serialize) -> Self {
        let configuration = serde_json::to_value(configuration);
        Self { endpoint, configuration, options: ApplyOptions::new(""), kind: PhantomData }
    }

    write_methods!(ApplyOptions);

    /// Takes over fields that other managers own, instead of failing with a conflict.
    pub fn force(mut self) -> Self {
        self.options = self.options.force();
        self
    }
}

impl<K: Resource> Apply<K> {
    /// Sends the configuration only if it differs from what its manager owns in `live`: an object of an informer's cache, or one
    /// that was read before.
    ///
    /// The response is `None` if nothing was sent, which `klient_applies_skipped_total` counts. The object must have its managed
    /// fields, which informers and clients drop unless they are configured to keep them. Without them, the configuration is always
    /// sent. So it is if the object lacks a field that the manager owns, or if another manager has taken over one.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use serde_json::json;
    /// use klient::{Api, ObjectKey, SharedInformer, wire::ManagedFields};
    ///
    /// # async fn apply(maps: Api<ConfigMap>) -> klient::Result<()> {
    /// let informer = SharedInformer::builder(maps.clone()).managed_fields(ManagedFields::Keep).build();
    /// informer.start();
    /// informer.wait_for_sync().await?;
    ///
    /// let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "blue"}});
    /// if let Some(cached) = informer.lister().get(&ObjectKey::namespaced("shop", "settings")) {
    ///     let sent = maps.apply(&settings).manager("my-operator").if_changed(&cached).await?;
    ///     println!("changed: {}", sent.is_some());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn if_changed(self, live: &impl Serialize) -> ApplyIfChanged<K> {
        let subresource = self.endpoint.subresource.as_deref().unwrap_or_default();
        let is_changed = match (serde_json::to_value(live), &self.configuration) {
            (Ok(live), Ok(configuration)) => {
                let applied = is_applied(&live, &self.options.field_manager, subresource, configuration);
                let unknown = |error: &ExtractError| tracing::debug!(%error, "cannot compare, applying");
                !applied.inspect_err(unknown).unwrap_or_default()
            }
            _ => true,
        };
        ApplyIfChanged { apply: self, is_changed }
    }
}

/// A server-side apply that is sent only if it changes something. See [`Apply::if_changed`].
#[derive(Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct ApplyIfChanged<K> {
    apply: Apply<K>,
    is_changed: bool,
}

impl<K: Resource> IntoFuture for ApplyIfChanged<K> {
    type Output = Result<Option<K>, Error>;
    type IntoFuture = ResponseFuture<'static, Option<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            if self.is_changed {
                return self.apply.await.map(Some);
            }
            let help = "Server-side applies that were not sent, because they would have changed nothing.";
            Registry::global().counter("klient_applies_skipped_total", help, &[]).add(1);
            Ok(None)
        })
    }
}

impl<K: Resource> IntoFuture for Apply<K> {
    type Output = Result<K, Error>;
    type IntoFuture = ResponseFuture<'static, K>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { endpoint, configuration, options, .. } = self;
            let configuration = configuration.map_err(|error| {
                Error::new(ErrorKind::Invalid, "cannot serialize the configuration to apply as JSON").with_source(error)
            })?;
            let name = configuration["metadata"]["name"].as_str().ok_or_else(|| {
                let message = "the configuration to apply has no name: set `metadata.name`";
                Error::new(ErrorKind::Invalid, message)
            })?;
            let fields = configuration.to_string().into_bytes();
            let request = endpoint.builder::<K>(Shape::Object).apply(name, &options, fields)?;
            endpoint.call(request, Some(name)).dry_run(options.dry_run).object().await
        })
    }
}

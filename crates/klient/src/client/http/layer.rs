//! Layers around a client's transport.

use std::sync::Arc;

use crate::client::{ClientBuilder, http::transport::Transport};

impl ClientBuilder {
    /// Wraps the client's transport in another one: to log, to measure, to add headers, or to inject failures in tests.
    ///
    /// The last layer added is the outermost. A layer sees every attempt, retries included, with all headers,
    /// `Authorization` among them. The request's extensions contain its [`Verb`](klient_core::Verb).
    ///
    /// ```no_run
    /// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    ///
    /// use bytes::Bytes;
    /// use klient::{Client, client::{config::Config, http::{SendFuture, Transport}}};
    ///
    /// /// Counts responses that are not successful.
    /// struct Failures {
    ///     inner: Arc<dyn Transport>,
    ///     count: Arc<AtomicU64>,
    /// }
    ///
    /// impl Transport for Failures {
    ///     fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
    ///         Box::pin(async move {
    ///             let response = self.inner.send(request).await;
    ///             if !response.as_ref().is_ok_and(|response| response.status().is_success()) {
    ///                 self.count.fetch_add(1, Ordering::Relaxed);
    ///             }
    ///             response
    ///         })
    ///     }
    /// }
    ///
    /// let count = Arc::<AtomicU64>::default();
    /// let client = Client::builder_from_config(&Config::infer()?)?
    ///     .layer(|inner| Failures { inner, count: Arc::clone(&count) })
    ///     .build();
    /// # Ok::<(), klient::Error>(())
    /// ```
    #[doc(alias = "WrapTransport")]
    #[must_use]
    pub fn layer<T: Transport>(mut self, layer: impl FnOnce(Arc<dyn Transport>) -> T) -> Self {
        self.inner.transport = Arc::new(layer(Arc::clone(&self.inner.transport)));
        self
    }
}

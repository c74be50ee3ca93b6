//! Layers around a client's transport.

use std::sync::Arc;

use crate::client::{ClientBuilder, http::transport::Transport};

impl ClientBuilder {
    /// Puts a transport of yours around the one there is: to log, to measure, to add headers, to fail in tests.
    ///
    /// The last one added is the outermost. A layer sees every attempt, those that repeat a request included, as it goes
    /// out: with all headers, `Authorization` among them. The kind of request is in its extensions, as a
    /// [`Verb`](klient_core::Verb).
    ///
    /// ```no_run
    /// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    ///
    /// use bytes::Bytes;
    /// use klient::{Client, client::{config::Config, http::{SendFuture, Transport}}};
    ///
    /// /// Counts answers that are no success.
    /// struct Failures {
    ///     inner: Arc<dyn Transport>,
    ///     count: Arc<AtomicU64>,
    /// }
    ///
    /// impl Transport for Failures {
    ///     fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
    ///         Box::pin(async move {
    ///             let answer = self.inner.send(request).await;
    ///             if !answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
    ///                 self.count.fetch_add(1, Ordering::Relaxed);
    ///             }
    ///             answer
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

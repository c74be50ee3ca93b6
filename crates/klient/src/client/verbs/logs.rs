//! Reading the log of a container.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use klient_core::{LogOptions, subresource};

use super::ResponseFuture;
use crate::{
    Error,
    client::{Api, LogStream, RestRequest, endpoint::Endpoint, logs::LogLines},
};

/// A request for the log of a container. See [`Api::logs`](crate::Api::logs).
///
/// Awaited, it reads the whole log into memory, up to 64 MiB; [`stream`](Self::stream) reads it line by line.
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Logs {
    endpoint: Arc<Endpoint>,
    name: String,
    options: LogOptions,
}

impl Logs {
    pub(in crate::client) fn new(endpoint: Arc<Endpoint>, name: &str) -> Self {
        Self { endpoint, name: name.to_owned(), options: LogOptions::default() }
    }

    /// Chooses the container; needed if the pod has several.
    pub fn container(mut self, container: impl Into<String>) -> Self {
        self.options = self.options.container(container);
        self
    }

    /// Keeps the stream open for what the container writes from now on.
    pub fn follow(mut self) -> Self {
        self.options = self.options.follow();
        self
    }

    /// Reads only so many lines from the end.
    pub fn tail_lines(mut self, lines: u64) -> Self {
        self.options = self.options.tail_lines(lines);
        self
    }

    /// Reads only lines that are at most this old.
    #[doc(alias = "sinceSeconds")]
    pub fn since(mut self, age: Duration) -> Self {
        self.options = self.options.since(age);
        self
    }

    /// Reads the log of the container's previous run.
    pub fn previous(mut self) -> Self {
        self.options = self.options.previous();
        self
    }

    /// Starts each line with the time at which it was written.
    pub fn timestamps(mut self) -> Self {
        self.options = self.options.timestamps();
        self
    }

    /// Sets all options at once.
    pub fn options(mut self, options: LogOptions) -> Self {
        self.options = options;
        self
    }

    /// Sends the request, and returns the log as it arrives.
    ///
    /// # Errors
    ///
    /// If there is no such pod or container, or for any other reason a server or connection gives.
    pub async fn stream(self) -> Result<LogStream, Error> {
        let follow = self.options.follow;
        let mut request = self.request();
        if follow {
            // A kubelet sends the response's head when the container first writes, which may be never.
            request = request.without_head_timeout();
        }
        Ok(LogStream::new(request.stream().await?))
    }

    /// Returns the log line by line. With [`follow`](Self::follow), it survives broken connections and restarts of the container, without
    /// losing or repeating a line.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn follow(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let mut lines = pods.logs("web").follow().tail_lines(10).lines();
    /// while let Some(line) = lines.next().await? {
    ///     println!("{}", line.text);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lines(self) -> LogLines {
        let pods = Api::with_endpoint(self.endpoint);
        LogLines::new(pods, &self.name, self.options)
    }

    fn request(self) -> RestRequest {
        let Self { endpoint, name, options } = self;
        let request = endpoint.client.rest().get().resource(&endpoint.resource);
        let request = match endpoint.namespace() {
            Some(namespace) => request.namespace(namespace),
            None => request,
        };
        request.name(name).subresource(subresource::LOG).options(|query| options.append_query(query))
    }
}

impl IntoFuture for Logs {
    type Output = Result<Bytes, Error>;
    type IntoFuture = ResponseFuture<'static, Bytes>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.request().bytes())
    }
}

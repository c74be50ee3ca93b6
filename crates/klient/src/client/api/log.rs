//! What the containers of a pod have written, and go on to write.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use k8s_openapi::api::core::v1::Pod;
use klient_core::{LogOptions, Target, subresource};

use super::Api;
use crate::{
    Error,
    client::{http::body::Body, rest::RestRequest},
};

impl Api<Pod> {
    /// What a container has written so far, up to 64 MiB.
    ///
    /// # Errors
    ///
    /// If there is no such pod or container, or for any other reason a server or connection gives.
    #[doc(alias = "GetLogs")]
    pub async fn log(&self, name: &str, options: &LogOptions) -> Result<Bytes, Error> {
        self.log_request(name, options).bytes().await
    }

    /// What a container has written, line by line; and, if [followed](LogOptions::follow), what it writes from now on.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use klient::{Api, options::LogOptions};
    /// # async fn tail(pods: Api<Pod>) -> Result<(), klient::Error> {
    /// let mut log = pods.log_stream("web-0", &LogOptions::default().follow().tail_lines(10)).await?;
    /// while let Some(line) = log.line().await? {
    ///     println!("{line}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`log`](Self::log).
    pub async fn log_stream(&self, name: &str, options: &LogOptions) -> Result<LogStream, Error> {
        let mut request = self.log_request(name, options);
        if options.follow {
            // Kubelets begin to answer when the container writes, which may be never.
            request = request.patient();
        }
        Ok(LogStream { body: request.stream().await?, line: Vec::new(), rest: Bytes::new() })
    }

    fn log_request(&self, name: &str, options: &LogOptions) -> RestRequest {
        let request = self.client.rest().get().resource(&self.resource);
        let request = match &self.target {
            Target::Namespace(namespace) => request.namespace(namespace),
            Target::AllNamespaces | Target::Cluster => request,
        };
        request.name(name).subresource(subresource::LOG).options(|query| options.append_query(query))
    }
}

/// What a container writes, as it arrives. A stream of chunks, or of lines with [`line`](Self::line).
///
/// Dropping it ends the request.
pub struct LogStream {
    body: Body,
    /// A line whose end has not come.
    line: Vec<u8>,
    rest: Bytes,
}

impl LogStream {
    /// The next line, without its end; `None` when the log ends.
    ///
    /// Bytes that are not UTF-8 are replaced. A line of more than 1 MiB is given in pieces.
    ///
    /// # Errors
    ///
    /// If the connection breaks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn line(&mut self) -> Result<Option<String>, Error> {
        loop {
            let end = self.rest.iter().position(|byte| *byte == b'\n');
            let room = MAX_LINE - self.line.len();
            match end {
                Some(end) if end <= room => {
                    let piece = self.rest.split_to(end + 1);
                    self.line.extend_from_slice(&piece[..end]);
                    return Ok(Some(self.take_line()));
                }
                _ if self.rest.len() > room => {
                    let piece = self.rest.split_to(room);
                    self.line.extend_from_slice(&piece);
                    return Ok(Some(self.take_line()));
                }
                _ => {
                    self.line.extend_from_slice(&self.rest);
                    self.rest = Bytes::new();
                }
            }
            match self.body.chunk().await? {
                Some(chunk) => self.rest = chunk,
                None if self.line.is_empty() => return Ok(None),
                None => return Ok(Some(self.take_line())),
            }
        }
    }

    fn take_line(&mut self) -> String {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl Stream for LogStream {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.line.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.line).into())));
        }
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.rest))));
        }
        Poll::Ready(ready!(self.body.poll_chunk(context)).transpose())
    }
}

impl fmt::Debug for LogStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogStream")
    }
}

const MAX_LINE: usize = 1 << 20;

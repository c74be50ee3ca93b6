//! The body of a response, as a stream.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};

use crate::{Error, ErrorKind, error::BoxError};

/// The body of a response: chunks of bytes, in order.
///
/// Dropping it cancels the rest of the response.
pub struct Body {
    inner: Pin<Box<dyn HttpBody<Data = Bytes, Error = BoxError> + Send>>,
}

impl Body {
    /// Wraps any body, for custom transports.
    pub fn new<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self { inner: Box::pin(http_body_util::BodyExt::map_err(body, Into::into)) }
    }

    /// Creates a body from bytes.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self::new(http_body_util::Full::new(bytes.into()))
    }

    /// Returns the next chunk, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection breaks before the end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no data.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Polls for the next chunk; see [`chunk`](Self::chunk).
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        loop {
            return Poll::Ready(match ready!(self.inner.as_mut().poll_frame(context)) {
                None => Ok(None),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => Ok(Some(data)),
                    // Kubernetes does not use trailers.
                    Err(_) => continue,
                },
                Some(Err(error)) => {
                    let what = "connection closed before the response was complete";
                    Err(Error::new(ErrorKind::Transport, what).with_source(error))
                }
            });
        }
    }

    /// Reads the whole body, up to `limit` bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is longer, or if the connection breaks.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, Error> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let too_long = || Error::new(ErrorKind::Decode, format!("response is longer than {limit} bytes"));
        if first.len() > limit {
            return Err(too_long());
        }
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut whole = Vec::with_capacity((first.len() + second.len()).max(16 << 10));
        whole.extend_from_slice(&first);
        let mut next = Some(second);
        while let Some(chunk) = next {
            if whole.len() + chunk.len() > limit {
                return Err(too_long());
            }
            whole.extend_from_slice(&chunk);
            next = self.chunk().await?;
        }
        Ok(whole.into())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.inner.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

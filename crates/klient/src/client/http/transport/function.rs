//! A function as a transport, for a server in the same process.

use std::{fmt, future::Future};

use bytes::Bytes;

use super::{SendFuture, Transport};
use crate::{client::http::body::Body, error::BoxError};

/// A transport that calls a function, such as an embedded server's.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use klient::{Client, client::http::FnTransport};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), klient::Error> {
/// let handler = |request: http::Request<Bytes>| async move {
///     http::Response::new(Full::new(Bytes::from(request.uri().path().to_owned())))
/// };
/// let client = Client::builder(FnTransport::new(handler)).build();
/// assert_eq!(client.rest().get().path("/version").bytes().await?, "/version");
/// # Ok(())
/// # }
/// ```
pub struct FnTransport<F> {
    function: F,
}

impl<F, A, B> FnTransport<F>
where
    F: Fn(http::Request<Bytes>) -> A + Send + Sync + 'static,
    A: Future<Output = http::Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// Creates a transport that calls this function.
    pub fn new(function: F) -> Self {
        Self { function }
    }
}

impl<F, A, B> Transport for FnTransport<F>
where
    F: Fn(http::Request<Bytes>) -> A + Send + Sync + 'static,
    A: Future<Output = http::Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        let response = (self.function)(request);
        Box::pin(async move { Ok(response.await.map(Body::new)) })
    }
}

impl<F> fmt::Debug for FnTransport<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FnTransport")
    }
}

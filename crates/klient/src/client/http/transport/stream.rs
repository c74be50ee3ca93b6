//! A byte stream to a server or a proxy.

use tokio::io::{AsyncRead, AsyncWrite};

/// A stream over TCP, or over TLS to a proxy.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// A boxed stream. The cost of the box is negligible compared to a system call.
pub(super) type BoxStream = Box<dyn Stream>;

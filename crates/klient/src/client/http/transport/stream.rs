//! The bytes to and from a server or a proxy, whatever carries them.

use tokio::io::{AsyncRead, AsyncWrite};

/// TCP, TLS to a proxy over TCP, or anything like them.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// Some stream. The cost of the box is nothing beside that of a system call.
pub(super) type BoxStream = Box<dyn Stream>;

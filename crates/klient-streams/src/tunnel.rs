//! Bytes in the messages of a WebSocket: the carrier of SPDY in `SPDY/3.1+portforward.k8s.io`.
//!
//! Messages are arbitrary pieces of the bytes. Each write becomes one message.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    spdy::Role,
    websocket::{Received, WebSocket},
};

/// The name of the subprotocol.
pub const PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";

/// A byte stream in the messages of a WebSocket.
pub struct Tunnel<T> {
    socket: WebSocket<T>,
    arrived: Bytes,
    is_ended: bool,
    is_closed: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Tunnel<T> {
    /// Creates one end of a tunnel over a connection after its handshake.
    pub fn new(io: T, role: Role) -> Self {
        Self { socket: WebSocket::new(io, role), arrived: Bytes::new(), is_ended: false, is_closed: false }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Tunnel<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.arrived.is_empty() && !self.is_ended {
            match ready!(self.socket.poll_receive(context))? {
                Received::Binary(bytes) => self.arrived = bytes,
                Received::Closed(None) => self.is_ended = true,
                Received::Closed(Some(reason)) => {
                    let message = format!("the peer closed the tunnel with {reason}");
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, message)));
                }
                Received::Pong(_) | Received::Other => {}
            }
        }
        let taken = self.arrived.len().min(buf.remaining());
        buf.put_slice(&self.arrived[..taken]);
        self.arrived.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Tunnel<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.socket.poll_ready(context))?;
        let taken = &buf[..buf.len().min(MAX_WRITE)];
        self.socket.send(BytesMut::from(taken))?;
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_closed {
            self.is_closed = true;
            self.socket.close(None)?;
        }
        self.socket.poll_flush(context)
    }
}

impl<T> std::fmt::Debug for Tunnel<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tunnel")
    }
}

/// A data frame with its head.
const MAX_WRITE: usize = (32 << 10) + 8;

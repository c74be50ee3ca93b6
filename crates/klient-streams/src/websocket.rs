//! WebSocket connections after their handshake: binary messages, pings and the close. The only file that names the
//! WebSocket library.
//!
//! A message is sent as one frame, because servers of Kubernetes take the first byte of each frame for a channel.
//! Messages that arrive in several frames are joined.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream as _;
use futures_sink::Sink as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_websockets::{ClientBuilder, CloseCode, Config, Error, Limits, Message, ServerBuilder, WebSocketStream};

use crate::spdy::Role;

/// One end of a WebSocket connection.
pub(crate) struct WebSocket<T> {
    stream: WebSocketStream<T>,
    /// The number of pings whose responses may not have been sent.
    unsent_pongs: usize,
}

/// A message from the peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Binary(Bytes),
    Pong(Bytes),
    /// The peer closed the connection, with a reason if it was not an orderly end.
    Closed(Option<String>),
    /// A ping, which is responded to by the library.
    Other,
}

impl<T: AsyncRead + AsyncWrite + Unpin> WebSocket<T> {
    pub(crate) fn new(io: T, role: Role) -> Self {
        let limits = Limits::default().max_payload_len(Some(MAX_MESSAGE));
        let config = Config::default().frame_size(MAX_MESSAGE).flush_threshold(FLUSH_AT);
        let stream = match role {
            Role::Client => ClientBuilder::new().limits(limits).config(config).take_over(io),
            Role::Server => ServerBuilder::new().limits(limits).config(config).serve(io),
        };
        Self { stream, unsent_pongs: 0 }
    }

    /// Polls for the next message. Fails if the connection ends without being closed.
    pub(crate) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Received>> {
        let message = match ready!(Pin::new(&mut self.stream).poll_next(context)) {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Poll::Ready(Err(failed(error))),
            None => {
                let message = "the connection ended without being closed";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
            }
        };
        Poll::Ready(Ok(if message.is_binary() {
            Received::Binary(message.into_payload().into())
        } else if message.is_text() {
            let what = "received a text message, which the protocols of Kubernetes do not have";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
        } else if message.is_pong() {
            Received::Pong(message.into_payload().into())
        } else if let Some((code, reason)) = message.as_close() {
            let is_orderly = code == CloseCode::NORMAL_CLOSURE || code == CloseCode::NO_STATUS_RECEIVED;
            Received::Closed((!is_orderly).then(|| format!("code {}: {reason}", u16::from(code))))
        } else {
            self.unsent_pongs += 1;
            if self.unsent_pongs > MAX_PONGS {
                let what = "the peer sends pings and does not read the responses";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
            }
            Received::Other
        }))
    }

    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_ready(context).map_err(failed)
    }

    /// Sends a binary message of at most 32 KiB and a few bytes, after [`poll_ready`](Self::poll_ready).
    pub(crate) fn send(&mut self, message: BytesMut) -> io::Result<()> {
        Pin::new(&mut self.stream).start_send(Message::binary(message)).map_err(failed)
    }

    pub(crate) fn ping(&mut self, payload: &[u8]) -> io::Result<()> {
        Pin::new(&mut self.stream).start_send(Message::ping(Bytes::copy_from_slice(payload))).map_err(failed)
    }

    /// Announces the end of the connection.
    pub(crate) fn close(&mut self, problem: Option<&str>) -> io::Result<()> {
        let code = problem.map_or(CloseCode::NORMAL_CLOSURE, |_| CloseCode::INTERNAL_SERVER_ERROR);
        // A close frame has room for 123 bytes.
        let reason: String = problem.unwrap_or_default().chars().filter(char::is_ascii).take(120).collect();
        Pin::new(&mut self.stream).start_send(Message::close(Some(code), &reason)).map_err(failed)
    }

    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context).map_err(failed);
        if flushed.is_ready() {
            self.unsent_pongs = 0;
        }
        flushed
    }
}

fn failed(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::PayloadTooLong { len, max_len } => {
            let what = format!("received a message of {len} bytes, more than {max_len}");
            io::Error::new(io::ErrorKind::InvalidData, what)
        }
        Error::AlreadyClosed => io::Error::new(io::ErrorKind::BrokenPipe, "the connection is closed"),
        error => io::Error::new(io::ErrorKind::InvalidData, format!("malformed WebSocket frame: {error}")),
    }
}

/// Servers send 32 KiB at a time. Longer messages would be held in memory until their end.
const MAX_MESSAGE: usize = 4 << 20;
/// The number of unsent bytes after which writers wait.
const FLUSH_AT: usize = 64 << 10;
const MAX_PONGS: usize = 1000;

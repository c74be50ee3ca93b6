//! The channel protocols of exec and attach: messages of a WebSocket whose first byte is the channel.
//!
//! `v5.channel.k8s.io` adds the close of one channel to `v4.channel.k8s.io`. [`Message`] is the encoding, without
//! sockets; [`session`] is one end of a session.

use std::{
    io,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, Sleep},
};

use crate::{
    keep_alive::{KeepAlive, Pings, Tick},
    mux::{Command, End, Framing, Handle, Mux, Stream},
    spdy::Role,
    websocket::{Received, WebSocket},
};

/// The input of the process.
pub const STDIN: u8 = 0;
/// The output of the process.
pub const STDOUT: u8 = 1;
/// The error output of the process.
pub const STDERR: u8 = 2;
/// The status at the end of the session.
pub const STATUS: u8 = 3;
/// The sizes of the terminal.
pub const RESIZE: u8 = 4;
/// The number in messages that close another channel.
pub const CLOSE: u8 = 255;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `v4.channel.k8s.io`.
    V4,
    /// `v5.channel.k8s.io`: a channel can be closed.
    V5,
}

impl Version {
    /// Returns the name of the subprotocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4.channel.k8s.io",
            Self::V5 => "v5.channel.k8s.io",
        }
    }

    /// Returns the version of a subprotocol.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::V5, Self::V4].into_iter().find(|version| version.name() == name)
    }
}

/// A message, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Data of a channel. Servers send an empty one first.
    Data {
        /// The channel.
        channel: u8,
        /// The data.
        data: Bytes,
    },
    /// The end of a channel's data.
    Close {
        /// The channel.
        channel: u8,
    },
}

impl Message {
    /// Decodes a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the message is empty, or if it closes no channel or several.
    pub fn decode(version: Version, mut message: Bytes) -> io::Result<Self> {
        let malformed = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("malformed message: {what}"));
        let Some(channel) = message.first().copied() else { return Err(malformed("it has no channel")) };
        if version == Version::V5 && channel == CLOSE {
            return match message[..] {
                [_, channel] => Ok(Self::Close { channel }),
                _ => Err(malformed("it must close exactly one channel")),
            };
        }
        bytes::Buf::advance(&mut message, 1);
        Ok(Self::Data { channel, data: message })
    }
}

/// A handle to a session. The session ends when the last handle and the last stream are dropped.
#[derive(Clone)]
pub struct Session {
    handle: Handle,
}

impl Session {
    /// Closes the session after the data that was written so far.
    pub fn close(&self) {
        self.handle.close();
    }

    /// Waits for the end of the session.
    ///
    /// # Errors
    ///
    /// Returns the reason, if the session was not closed in an orderly way.
    pub async fn ended(&self) -> io::Result<()> {
        std::future::poll_fn(|context| self.handle.poll_end(context)).await
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

/// Creates one end of a session with these channels, and the future that drives it. Messages on other channels are
/// ignored. Without a `keep_alive`, no pings are sent.
pub fn session<T, const N: usize>(
    io: T,
    role: Role,
    version: Version,
    keep_alive: Option<KeepAlive>,
    channels: [u8; N],
) -> (Session, [Stream; N], impl Future<Output = ()> + Send + use<T, N>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    let framing = Framing { headroom: 1, half_close: version == Version::V5 || role == Role::Server };
    let (mux, handle) = Mux::new(framing, 0);
    let streams = channels.map(|channel| handle.fixed(u32::from(channel)));
    let mut driver = Driver {
        socket: WebSocket::new(io, role),
        role,
        version,
        mux,
        pings: keep_alive.map(Pings::new),
        undelivered: None,
        has_status: false,
        closing: None,
    };
    let driving = async move {
        let end = std::future::poll_fn(|context| driver.poll(context)).await;
        driver.mux.end(end);
    };
    (Session { handle }, streams, driving)
}

struct Driver<T> {
    socket: WebSocket<T>,
    role: Role,
    version: Version,
    mux: Mux,
    pings: Option<Pings>,
    /// Data for a channel that is full. Nothing is read until the channel has room.
    undelivered: Option<(u8, Bytes)>,
    /// Whether the server has sent the status, which is the last message.
    has_status: bool,
    /// The time limit for the peer's close, after ours.
    closing: Option<std::pin::Pin<Box<Sleep>>>,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Driver<T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        let driven = self.drive(context);
        self.mux.wake_readers();
        match driven {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(End { error: None }),
            // The peer has nothing more to send after the status or our close, so that it need not close.
            Poll::Ready(Err(_)) if self.closing.is_some() || self.has_status => Poll::Ready(End { error: None }),
            Poll::Ready(Err(error)) => {
                if error.kind() == io::ErrorKind::InvalidData && self.socket.close(Some(&error.to_string())).is_ok() {
                    // One attempt: the peer may not read.
                    let _ = self.socket.poll_flush(context);
                }
                Poll::Ready(End::broken(&error))
            }
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let is_stuck = self.send(context)?;
            if self.mux.is_abandoned() && self.closing.is_none() {
                self.socket.close(None)?;
                let _ = self.socket.poll_flush(context);
                return Poll::Ready(Ok(()));
            }
            let is_flushed = self.socket.poll_flush(context)?.is_ready();
            if let Some(timer) = &mut self.closing
                && timer.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Ok(()));
            }
            // After a flush, there is room for the commands that had to wait.
            let mut has_more = is_stuck && is_flushed;
            let received = self.receive(context)?;
            self.mux.wake_readers();
            match received {
                Step::Closed => return Poll::Ready(Ok(())),
                Step::More => has_more = true,
                Step::Waiting => {}
            }
            let is_reading = self.undelivered.is_none();
            match self.pings.as_mut().map(|pings| pings.poll(context, is_reading)) {
                Some(Poll::Ready(Tick::Ping(number))) if self.closing.is_none() => {
                    self.socket.ping(&number.to_be_bytes())?;
                }
                Some(Poll::Ready(Tick::Dead)) => {
                    let message = self.pings.as_ref().map(Pings::dead).unwrap_or_default();
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
                }
                Some(Poll::Ready(Tick::Ping(_))) => {}
                _ if has_more => {}
                _ => return Poll::Pending,
            }
        }
    }

    /// Sends what users wrote. Returns whether the socket has no room for more.
    fn send(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        while self.closing.is_none() {
            if self.socket.poll_ready(context)?.is_pending() {
                return Ok(true);
            }
            let Some(command) = self.mux.next_command(context) else { return Ok(false) };
            match command {
                Command::Data { id, mut buffer } => {
                    buffer[0] = channel(id);
                    self.socket.send(buffer)?;
                    if let Some(pings) = &mut self.pings {
                        pings.data_sent();
                    }
                }
                // Only clients close channels; the server's end of the session does it for its channels.
                Command::Finish { id } if self.role == Role::Client && self.version == Version::V5 => {
                    self.socket.send(BytesMut::from(&[CLOSE, channel(id)][..]))?;
                }
                Command::Close => {
                    self.socket.close(None)?;
                    self.closing = Some(Box::pin(tokio::time::sleep_until(Instant::now() + CLOSE_LIMIT)));
                }
                Command::Finish { .. } | Command::Reset { .. } | Command::Open { .. } | Command::Accept { .. } => {}
            }
        }
        Ok(false)
    }

    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<Step> {
        if let Some((channel, data)) = self.undelivered.take() {
            self.deliver(channel, data, context);
        }
        for _ in 0..BATCH {
            if self.undelivered.is_some() {
                return Ok(Step::Waiting);
            }
            let Poll::Ready(received) = self.socket.poll_receive(context) else { return Ok(Step::Waiting) };
            if let Some(pings) = &mut self.pings {
                pings.heard();
            }
            match received? {
                Received::Binary(message) => match Message::decode(self.version, message)? {
                    Message::Data { channel, data } => self.deliver(channel, data, context),
                    Message::Close { channel } if self.role == Role::Server => {
                        self.mux.peer_finished(u32::from(channel));
                    }
                    Message::Close { .. } => {}
                },
                Received::Pong(payload) => {
                    if let (Some(pings), Ok(number)) = (&mut self.pings, payload[..].try_into()) {
                        pings.pong(u32::from_be_bytes(number));
                    }
                }
                Received::Closed(None) => return Ok(Step::Closed),
                Received::Closed(Some(reason)) => {
                    let message = format!("the peer closed the session with {reason}");
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, message));
                }
                Received::Other => {}
            }
        }
        Ok(Step::More)
    }

    fn deliver(&mut self, channel: u8, data: Bytes, context: &Context<'_>) {
        self.has_status |= self.role == Role::Client && channel == STATUS && !data.is_empty();
        if let Err(data) = self.mux.deliver(u32::from(channel), data, context) {
            self.undelivered = Some((channel, data));
        }
    }
}

/// The outcome of receiving.
enum Step {
    /// There may be more to receive.
    More,
    /// The driver is woken when there is more.
    Waiting,
    Closed,
}

/// Channels are created from bytes.
fn channel(id: u32) -> u8 {
    id.to_le_bytes()[0]
}

/// How long the peer's close may take after ours.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);
/// The number of messages that are received before others get a turn.
const BATCH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_a_channel() {
        let decode = |version, message: &'static [u8]| Message::decode(version, Bytes::from_static(message));
        let data = |channel, data: &'static [u8]| Message::Data { channel, data: Bytes::from_static(data) };
        assert_eq!(decode(Version::V5, b"\x01hello").unwrap(), data(1, b"hello"));
        assert_eq!(decode(Version::V5, b"\x01").unwrap(), data(1, b""));
        assert_eq!(decode(Version::V5, b"\xff\x00").unwrap(), Message::Close { channel: 0 });
        assert_eq!(decode(Version::V4, b"\xff\x00").unwrap(), data(255, b"\0"));
        for malformed in [&b""[..], b"\xff", b"\xff\x00\x01"] {
            assert!(decode(Version::V5, malformed).is_err(), "{malformed:?}");
        }
    }
}

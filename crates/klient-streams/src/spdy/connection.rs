//! One end of a connection, and the future that drives it.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use super::{
    frame::{CANCEL, Frame, FrameReader, FrameWriter, HEAD, REFUSED_STREAM},
    header::Headers,
};
use crate::{
    keep_alive::{KeepAlive, Pings, Tick},
    mux::{Command, End, Framing, Handle, Mux, Stream},
};

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that sent the HTTP request.
    Client,
    /// The end that responded to it.
    Server,
}

/// A handle to a connection. The connection ends when the last handle and the last stream are dropped.
#[derive(Clone)]
pub struct Connection {
    handle: Handle,
}

/// A stream that the peer opened.
#[derive(Debug)]
pub struct Accepted {
    /// The stream.
    pub stream: Stream,
    /// The headers that it was opened with.
    pub headers: Headers,
}

/// Creates one end of a connection, and the future that drives it. Without a `keep_alive`, no pings are sent.
pub fn connection<T>(
    io: T,
    role: Role,
    keep_alive: Option<KeepAlive>,
) -> (Connection, impl Future<Output = ()> + Send + use<T>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    let first = if role == Role::Client { 1 } else { 2 };
    let (mux, handle) = Mux::new(Framing { headroom: HEAD, half_close: true }, first);
    let mut driver = Driver {
        io,
        role,
        mux,
        pings: keep_alive.map(Pings::new),
        reader: FrameReader::default(),
        writer: FrameWriter::default(),
        arrived: BytesMut::new(),
        undelivered: None,
        outgoing: VecDeque::new(),
        outgoing_bytes: 0,
        last_accepted: 0,
        is_closing: false,
    };
    let driving = async move {
        let end = std::future::poll_fn(|context| driver.poll(context)).await;
        driver.mux.end(end);
    };
    (Connection { handle }, driving)
}

impl Connection {
    /// Opens a stream, and waits until the peer has accepted it: data that is sent before would be lost.
    ///
    /// # Errors
    ///
    /// Returns an error if the peer refuses the stream, does not respond within 30 seconds, or if the connection ends.
    pub async fn open(&self, headers: Headers) -> io::Result<Stream> {
        let stream = self.handle.open(headers)?;
        let opening = std::future::poll_fn(|context| stream.poll_open(context));
        match tokio::time::timeout(OPEN_LIMIT, opening).await {
            Ok(outcome) => outcome.map(|()| stream),
            Err(_) => {
                let message = format!("the peer did not accept the stream within {} s", OPEN_LIMIT.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            }
        }
    }

    /// Returns the next stream that the peer opens, or `None` at the end of the connection.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no stream.
    pub async fn accept(&self) -> Option<Accepted> {
        let accepted = std::future::poll_fn(|context| self.handle.poll_accept(context)).await;
        accepted.map(|(stream, headers)| Accepted { stream, headers })
    }

    /// Closes the connection after the data that was written so far.
    pub fn close(&self) {
        self.handle.close();
    }

    /// Waits for the end of the connection.
    ///
    /// # Errors
    ///
    /// Returns the reason, if the connection was not closed by this end.
    pub async fn ended(&self) -> io::Result<()> {
        std::future::poll_fn(|context| self.handle.poll_end(context)).await
    }

    /// Returns whether the connection has ended.
    pub fn has_ended(&self) -> bool {
        self.handle.has_ended()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("has_ended", &self.has_ended()).finish_non_exhaustive()
    }
}

struct Driver<T> {
    io: T,
    role: Role,
    mux: Mux,
    pings: Option<Pings>,
    reader: FrameReader,
    writer: FrameWriter,
    arrived: BytesMut,
    /// Data for a stream that is full. Nothing is read until the stream has room.
    undelivered: Option<(u32, bool, Bytes)>,
    outgoing: VecDeque<Bytes>,
    outgoing_bytes: usize,
    last_accepted: u32,
    is_closing: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Driver<T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        let driven = self.drive(context);
        self.mux.wake_readers();
        driven
    }

    fn drive(&mut self, context: &mut Context<'_>) -> Poll<End> {
        loop {
            let mut has_more = match self.take_commands(context) {
                Ok(has_more) => has_more,
                Err(error) => return Poll::Ready(End::broken(&error)),
            };
            if self.mux.is_abandoned() {
                self.push(FrameWriter::go_away(self.last_accepted));
                // One attempt: an owner that was dropped waits for nothing.
                let _ = self.poll_write(context);
                return Poll::Ready(End { error: None });
            }
            match self.poll_write(context) {
                Poll::Ready(Ok(())) if self.is_closing => {
                    let _ = Pin::new(&mut self.io).poll_shutdown(context);
                    return Poll::Ready(End { error: None });
                }
                Poll::Ready(Err(error)) => return Poll::Ready(End::broken(&error)),
                Poll::Ready(Ok(())) => {}
                // The socket wakes the driver when it has room.
                Poll::Pending => has_more = false,
            }
            let read = self.poll_read(context);
            self.mux.wake_readers();
            match read {
                Poll::Ready(Ok(())) => has_more = true,
                Poll::Ready(Err(error)) => return Poll::Ready(End::broken(&error)),
                Poll::Pending => {}
            }
            let is_reading = self.undelivered.is_none();
            let tick = self.pings.as_mut().map(|pings| pings.poll(context, is_reading));
            match tick {
                Some(Poll::Ready(Tick::Ping(number))) => {
                    // The numbers of a client's pings are odd.
                    self.push(FrameWriter::ping(number.wrapping_mul(2) | u32::from(self.role == Role::Client)));
                }
                Some(Poll::Ready(Tick::Dead)) => {
                    let message = self.pings.as_ref().map(Pings::dead).unwrap_or_default();
                    return Poll::Ready(End::because(io::ErrorKind::TimedOut, message));
                }
                _ if has_more => {}
                _ => return Poll::Pending,
            }
        }
    }

    /// Encodes commands until enough is waiting to be written. Returns whether there may be more.
    fn take_commands(&mut self, context: &Context<'_>) -> io::Result<bool> {
        while self.outgoing_bytes < OUTGOING && !self.is_closing {
            let Some(command) = self.mux.next_command(context) else { return Ok(false) };
            match command {
                Command::Open { id, headers } => {
                    let frame = self.writer.syn_stream(id, &headers).map_err(io::Error::other)?;
                    self.push(frame);
                }
                Command::Accept { id } => {
                    let frame = self.writer.syn_reply(id).map_err(io::Error::other)?;
                    self.push(frame);
                }
                Command::Data { id, mut buffer } => {
                    FrameWriter::data_head(&mut buffer, id, false);
                    self.push(buffer);
                    if let Some(pings) = &mut self.pings {
                        pings.data_sent();
                    }
                }
                Command::Finish { id } => {
                    let mut head = BytesMut::zeroed(HEAD);
                    FrameWriter::data_head(&mut head, id, true);
                    self.push(head);
                }
                Command::Reset { id } => self.push(FrameWriter::rst_stream(id, CANCEL)),
                Command::Close => {
                    self.push(FrameWriter::go_away(self.last_accepted));
                    self.is_closing = true;
                }
            }
        }
        Ok(true)
    }

    fn push(&mut self, frame: BytesMut) {
        self.outgoing_bytes += frame.len();
        self.outgoing.push_back(frame.freeze());
    }

    /// Writes what is waiting. Ready when all of it is written.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let written = if self.io.is_write_vectored() {
                let mut slices = [io::IoSlice::new(&[]); SLICES];
                for (slice, frame) in slices.iter_mut().zip(&self.outgoing) {
                    *slice = io::IoSlice::new(frame);
                }
                let used = self.outgoing.len().min(SLICES);
                ready!(Pin::new(&mut self.io).poll_write_vectored(context, &slices[..used]))?
            } else {
                let Some(first) = self.outgoing.front() else { break };
                ready!(Pin::new(&mut self.io).poll_write(context, first))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing_bytes -= written;
            let mut left = written;
            while let Some(first) = self.outgoing.front_mut() {
                if left < first.len() {
                    first.advance(left);
                    break;
                }
                left -= first.len();
                self.outgoing.pop_front();
            }
        }
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// Reads what has arrived. Ready if something was read and more may be there.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some((id, fin, data)) = self.undelivered.take() {
            self.deliver(id, fin, data, context);
        }
        for _ in 0..BATCH {
            // The frames that have arrived are handled before more is read.
            while self.undelivered.is_none() {
                let Some(frame) = self.reader.next(&mut self.arrived).map_err(invalid)? else { break };
                self.receive(frame, context)?;
            }
            if self.undelivered.is_some() {
                return Poll::Pending;
            }
            self.arrived.reserve(READ);
            let reading = std::pin::pin!(self.io.read_buf(&mut self.arrived));
            if ready!(reading.poll(context))? == 0 {
                let message = "the connection ended without being closed";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
            }
            if let Some(pings) = &mut self.pings {
                pings.heard();
            }
            if self.outgoing_bytes > 0 {
                // Responses to pings are written before the next read.
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn receive(&mut self, frame: Frame, context: &Context<'_>) -> io::Result<()> {
        match frame {
            Frame::Data { id, fin, data } => self.deliver(id, fin, data, context),
            Frame::SynStream { id, fin, headers } => {
                let is_theirs = (id % 2 == 1) == (self.role == Role::Server);
                if !is_theirs || id <= self.last_accepted {
                    return Err(invalid(super::SpdyError::new("stream has a number of the wrong end or order")));
                }
                self.last_accepted = id;
                if !self.mux.accept(id, headers, fin) {
                    self.push(FrameWriter::rst_stream(id, REFUSED_STREAM));
                }
            }
            Frame::SynReply { id, fin, .. } => {
                self.mux.opened(id);
                if fin {
                    self.mux.peer_finished(id);
                }
            }
            Frame::RstStream { id, .. } => self.mux.reset(id),
            Frame::Headers { id, fin: true } => self.mux.peer_finished(id),
            Frame::Headers { .. } => {}
            Frame::Ping(id) => {
                let is_ours = (id % 2 == 1) == (self.role == Role::Client);
                if !is_ours {
                    if self.outgoing.len() > MAX_WAITING {
                        return Err(invalid(super::SpdyError::new("too many pings")));
                    }
                    self.push(FrameWriter::ping(id));
                } else if let Some(pings) = &mut self.pings {
                    pings.pong(id / 2);
                }
            }
            Frame::GoAway => {
                let message = "the peer closed the connection";
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, message));
            }
        }
        Ok(())
    }

    fn deliver(&mut self, id: u32, fin: bool, data: Bytes, context: &Context<'_>) {
        match self.mux.deliver(id, data, context) {
            Ok(()) if fin => self.mux.peer_finished(id),
            Ok(()) => {}
            Err(data) => self.undelivered = Some((id, fin, data)),
        }
    }
}

fn invalid(error: super::SpdyError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// As in client-go.
const OPEN_LIMIT: Duration = Duration::from_secs(30);
const OUTGOING: usize = 64 << 10;
const READ: usize = 64 << 10;
const SLICES: usize = 16;
/// The number of reads before others get a turn.
const BATCH: usize = 32;
/// The number of frames that may wait while a peer sends pings.
const MAX_WAITING: usize = 10_000;

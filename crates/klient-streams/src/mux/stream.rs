//! The user's side of one stream: a reader and a writer.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use super::{Command, INCOMING, MAX_DATA, OUTGOING, Shared, Side, closed, wake};

/// A stream of a connection, in both directions.
///
/// Dropping it before both directions have ended resets the stream. Dropping one half alone closes that direction.
pub struct Stream {
    // Fields are dropped in this order: a writer that is dropped after the reader resets the stream.
    reader: StreamReader,
    writer: StreamWriter,
}

/// The receiving half of a stream.
pub struct StreamReader {
    shared: Arc<Shared>,
    id: u32,
    current: Bytes,
    ends_at_reset: bool,
}

/// The sending half of a stream. Dropping it ends the data.
pub struct StreamWriter {
    shared: Arc<Shared>,
    id: u32,
}

impl Stream {
    pub(super) fn new(shared: &Arc<Shared>, id: u32) -> Self {
        shared.lock().handles += 2;
        Self {
            reader: StreamReader { shared: Arc::clone(shared), id, current: Bytes::new(), ends_at_reset: false },
            writer: StreamWriter { shared: Arc::clone(shared), id },
        }
    }

    /// Returns the two halves.
    pub fn into_split(self) -> (StreamReader, StreamWriter) {
        (self.reader, self.writer)
    }

    /// Returns the receiving half. The other direction is neither used nor closed.
    pub fn into_reader(self) -> StreamReader {
        self.writer.ignore();
        self.reader
    }

    /// Returns the sending half. Data that arrives is discarded.
    pub fn into_writer(self) -> StreamWriter {
        if let Some(slot) = self.reader.shared.lock().slots.get_mut(&self.reader.id) {
            slot.is_read = Side::Ignored;
        }
        self.writer
    }

    /// Polls until the peer has accepted the stream.
    pub(crate) fn poll_open(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.reader.shared.lock();
        let end = state.end.clone();
        match (state.slots.get_mut(&self.reader.id), end) {
            // A stream may have been accepted, and reset or ended with its connection, since the last poll. Its reader reports that, after
            // the data that arrived.
            (Some(slot), _) if slot.is_open => Poll::Ready(Ok(())),
            (Some(slot), _) if slot.is_reset => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the peer refused the stream")))
            }
            (Some(_), Some(end)) => Poll::Ready(Err(closed(&end))),
            (Some(slot), None) => {
                slot.opener = Some(context.waker().clone());
                Poll::Pending
            }
            (None, _) => Poll::Ready(Ok(())),
        }
    }
}

impl StreamReader {
    /// Returns the reader of a stream whose data ends when the peer resets the stream. Go's servers end sessions so.
    #[must_use]
    pub fn ending_at_reset(mut self) -> Self {
        self.ends_at_reset = true;
        self
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error if the stream or its connection ended before the data did.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no data.
    pub async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Polls for the next bytes; see [`chunk`](Self::chunk).
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if !self.current.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.current))));
        }
        let mut state = self.shared.lock();
        let end = state.end.clone();
        let Some(slot) = state.slots.get_mut(&self.id) else { return Poll::Ready(Ok(None)) };
        if let Some(chunk) = slot.incoming.pop_front() {
            slot.incoming_bytes -= chunk.len();
            let has_room = slot.incoming_bytes <= INCOMING / 2;
            let mut woken = None;
            if has_room && state.stalled == Some(self.id) {
                state.stalled = None;
                woken = state.driver.take();
            }
            drop(state);
            wake(woken);
            return Poll::Ready(Ok(Some(chunk)));
        }
        if slot.peer_finished || (slot.is_reset && self.ends_at_reset) {
            return Poll::Ready(Ok(None));
        }
        if slot.is_reset {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, "the peer reset the stream")));
        }
        match end {
            Some(end) => Poll::Ready(end.to_error().map_or(Ok(None), Err)),
            None => {
                slot.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl AsyncBufRead for StreamReader {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        if this.current.is_empty() {
            this.current = ready!(this.poll_chunk(context))?.unwrap_or_default();
        }
        Poll::Ready(Ok(&this.current))
    }

    fn consume(mut self: Pin<&mut Self>, amount: usize) {
        let amount = amount.min(self.current.len());
        self.current.advance(amount);
    }
}

impl AsyncRead for StreamReader {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let arrived = ready!(self.as_mut().poll_fill_buf(context))?;
        let taken = arrived.len().min(buf.remaining());
        buf.put_slice(&arrived[..taken]);
        self.consume(taken);
        Poll::Ready(Ok(()))
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let mut woken = Vec::new();
        if let Some(slot) = state.slots.get_mut(&self.id) {
            slot.incoming.clear();
            slot.incoming_bytes = 0;
            let was_used = slot.is_read == Side::Used;
            if was_used {
                slot.is_read = Side::Done;
            }
            // Both ends must know that the rest is not read, or the peer would wait with it for ever.
            if was_used && slot.is_written == Side::Done && !slot.peer_finished && !slot.is_reset {
                slot.is_reset = true;
                woken.extend(state.command(Command::Reset { id: self.id }));
            }
            if state.stalled == Some(self.id) {
                state.stalled = None;
                woken.extend(state.driver.take());
            }
            state.forget_if_done(self.id);
        }
        woken.extend(state.drop_handle());
        drop(state);
        woken.into_iter().for_each(std::task::Waker::wake);
    }
}

impl StreamWriter {
    /// Gives up the direction without closing it.
    fn ignore(&self) {
        if let Some(slot) = self.shared.lock().slots.get_mut(&self.id) {
            slot.is_written = Side::Ignored;
        }
    }

    /// Ends the data, if that has not happened yet.
    fn finish(&self) {
        let mut state = self.shared.lock();
        let Some(slot) = state.slots.get_mut(&self.id) else { return };
        if slot.is_written != Side::Used {
            return;
        }
        slot.is_written = Side::Done;
        let woken = if slot.is_reset { None } else { state.command(Command::Finish { id: self.id }) };
        state.forget_if_done(self.id);
        drop(state);
        wake(woken);
    }
}

impl AsyncWrite for StreamWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.lock();
        if let Some(end) = &state.end {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, closed(end).to_string())));
        }
        let Some(slot) = state.slots.get_mut(&self.id) else {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the stream is closed")));
        };
        if slot.is_reset {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the peer reset the stream")));
        }
        if slot.is_written != Side::Used {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the stream is closed for writing")));
        }
        if slot.outgoing_bytes >= OUTGOING {
            slot.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let taken = &buf[..buf.len().min(MAX_DATA)];
        if taken.is_empty() {
            return Poll::Ready(Ok(0));
        }
        slot.outgoing_bytes += taken.len();
        let headroom = self.shared.framing.headroom;
        match state.commands.back_mut() {
            // Small writes become one message.
            Some(Command::Data { id, buffer }) if *id == self.id && buffer.len() + taken.len() <= MAX_DATA => {
                buffer.extend_from_slice(taken);
                Poll::Ready(Ok(taken.len()))
            }
            _ => {
                let mut buffer = BytesMut::with_capacity((headroom + taken.len()).max(SMALLEST_BUFFER));
                buffer.resize(headroom, 0);
                buffer.extend_from_slice(taken);
                let woken = state.command(Command::Data { id: self.id, buffer });
                drop(state);
                wake(woken);
                Poll::Ready(Ok(taken.len()))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        let end = state.end.clone();
        match state.slots.get_mut(&self.id) {
            Some(slot) if slot.outgoing_bytes > 0 && !slot.is_reset => match end {
                Some(end) => Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, closed(&end).to_string()))),
                None => {
                    slot.writer = Some(context.waker().clone());
                    Poll::Pending
                }
            },
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(context))?;
        if !self.shared.framing.half_close {
            let message = "the protocol of the connection cannot close one direction";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::Unsupported, message)));
        }
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let mut woken = Vec::new();
        if let Some(slot) = state.slots.get_mut(&self.id) {
            let must_reset = slot.is_read == Side::Done && !slot.is_reset && !slot.peer_finished;
            let must_finish = slot.is_written == Side::Used && !slot.is_reset && self.shared.framing.half_close;
            if slot.is_written == Side::Used {
                slot.is_written = Side::Done;
            }
            if must_reset && slot.is_written == Side::Done {
                slot.is_reset = true;
                woken.extend(state.command(Command::Reset { id: self.id }));
            } else if must_finish {
                woken.extend(state.command(Command::Finish { id: self.id }));
            }
            state.forget_if_done(self.id);
        }
        woken.extend(state.drop_handle());
        drop(state);
        woken.into_iter().for_each(std::task::Waker::wake);
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(context, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(context, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

macro_rules! opaque_debug {
    ($($name:ident)*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}
opaque_debug!(Stream StreamReader StreamWriter);

/// Room for a few small writes that become one message.
const SMALLEST_BUFFER: usize = 512;

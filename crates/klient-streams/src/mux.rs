//! Streams that share one connection: bounded buffers between their users and the future that drives the connection.
//!
//! A stream holds at most [`INCOMING`] bytes and one message that its user has not read, and [`OUTGOING`] bytes that the
//! driver has not taken. While one stream is full the driver does not read, because neither SPDY nor the channels of
//! Kubernetes have windows. No waker is called while the lock is held.
//!
//! A wake-up of another thread costs more than a message. Readers are therefore woken once for all data of a turn of the driver, and
//! a side that waits for room is woken when half of the buffer is free.

mod stream;

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::{Bytes, BytesMut};

pub use self::stream::{Stream, StreamReader, StreamWriter};
use crate::spdy::header::Headers;

/// The driver's side of the streams of a connection.
pub(crate) struct Mux {
    shared: Arc<Shared>,
    /// The readers that have data since the last call of [`wake_readers`](Self::wake_readers).
    readers: Vec<Waker>,
}

/// The properties of a protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    /// The number of bytes that each buffer has before its data.
    pub(crate) headroom: usize,
    /// Whether one direction of a stream can be closed.
    pub(crate) half_close: bool,
}

/// A thing that a user of a stream has the driver do.
#[derive(Debug)]
pub(crate) enum Command {
    Open {
        id: u32,
        headers: Headers,
    },
    Accept {
        id: u32,
    },
    /// Data after the headroom of the protocol.
    Data {
        id: u32,
        buffer: BytesMut,
    },
    Finish {
        id: u32,
    },
    Reset {
        id: u32,
    },
    Close,
}

/// The user's side of a connection, apart from its streams. The connection is closed when the last handle and the last
/// stream are dropped.
pub(crate) struct Handle {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    framing: Framing,
}

#[derive(Default)]
struct State {
    slots: HashMap<u32, Slot>,
    commands: VecDeque<Command>,
    driver: Option<Waker>,
    /// The full stream that the driver waits for.
    stalled: Option<u32>,
    accepted: VecDeque<(u32, Headers)>,
    acceptor: Option<Waker>,
    end: Option<End>,
    ended: Vec<Waker>,
    next_id: u32,
    handles: usize,
}

/// The state of one stream.
#[derive(Default)]
struct Slot {
    incoming: VecDeque<Bytes>,
    incoming_bytes: usize,
    reader: Option<Waker>,
    is_read: Side,
    peer_finished: bool,
    is_reset: bool,
    is_open: bool,
    opener: Option<Waker>,
    /// The number of bytes that the driver has not taken.
    outgoing_bytes: usize,
    writer: Option<Waker>,
    is_written: Side,
}

/// The state of the user's half of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Side {
    #[default]
    Used,
    /// Closed or dropped.
    Done,
    /// Given up at the start, by the other half.
    Ignored,
}

/// The end of a connection: `None` if it was closed in an orderly way.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) error: Option<(io::ErrorKind, Arc<str>)>,
}

impl End {
    pub(crate) fn broken(error: &io::Error) -> Self {
        Self { error: Some((error.kind(), error.to_string().into())) }
    }

    pub(crate) fn because(kind: io::ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self { error: Some((kind, message.into())) }
    }

    fn to_error(&self) -> Option<io::Error> {
        self.error.as_ref().map(|(kind, message)| io::Error::new(*kind, message.to_string()))
    }
}

impl Mux {
    /// Creates the streams of a connection, whose own streams get the numbers from `first` in steps of two.
    pub(crate) fn new(framing: Framing, first: u32) -> (Self, Handle) {
        let state = State { next_id: first, handles: 1, ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), framing });
        (Self { shared: Arc::clone(&shared), readers: Vec::new() }, Handle { shared })
    }

    /// Takes the next command, or registers the driver's waker.
    pub(crate) fn next_command(&self, context: &Context<'_>) -> Option<Command> {
        let mut state = self.shared.lock();
        let Some(command) = state.commands.pop_front() else {
            state.driver = Some(context.waker().clone());
            return None;
        };
        let mut woken = None;
        if let Command::Data { id, buffer } = &command
            && let Some(slot) = state.slots.get_mut(id)
        {
            slot.outgoing_bytes -= (buffer.len() - self.shared.framing.headroom).min(slot.outgoing_bytes);
            if slot.outgoing_bytes <= OUTGOING / 2 {
                woken = slot.writer.take();
            }
        }
        drop(state);
        wake(woken);
        Some(command)
    }

    /// Returns whether no user is left.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.lock().handles == 0
    }

    /// Gives data to the reader of a stream, or returns it if the stream is full. The driver is woken when it has room.
    /// [`wake_readers`](Self::wake_readers) wakes the reader.
    pub(crate) fn deliver(&mut self, id: u32, data: Bytes, context: &Context<'_>) -> Result<(), Bytes> {
        let mut state = self.shared.lock();
        let Some(slot) = state.slots.get_mut(&id) else { return Ok(()) };
        if slot.is_read != Side::Used || data.is_empty() || slot.peer_finished || slot.is_reset {
            return Ok(());
        }
        if slot.incoming_bytes >= INCOMING {
            state.stalled = Some(id);
            state.driver = Some(context.waker().clone());
            return Err(data);
        }
        slot.incoming_bytes += data.len();
        slot.incoming.push_back(data);
        self.readers.extend(slot.reader.take());
        Ok(())
    }

    /// Wakes the readers that data was delivered to. The driver calls it before it waits.
    pub(crate) fn wake_readers(&mut self) {
        self.readers.drain(..).for_each(Waker::wake);
    }

    /// Records that the peer sends no more data on a stream.
    pub(crate) fn peer_finished(&self, id: u32) {
        self.change(id, |slot| slot.peer_finished = true);
    }

    /// Records that the peer accepted a stream.
    pub(crate) fn opened(&self, id: u32) {
        self.change(id, |slot| slot.is_open = true);
    }

    /// Records that the peer ended a stream in both directions.
    pub(crate) fn reset(&self, id: u32) {
        self.change(id, |slot| slot.is_reset = true);
    }

    fn change(&self, id: u32, change: impl FnOnce(&mut Slot)) {
        let mut state = self.shared.lock();
        let Some(slot) = state.slots.get_mut(&id) else { return };
        change(slot);
        let woken = [slot.reader.take(), slot.writer.take(), slot.opener.take()];
        state.forget_if_done(id);
        drop(state);
        woken.into_iter().for_each(wake);
    }

    /// Adds a stream that the peer opened. Returns whether there was room for it.
    pub(crate) fn accept(&self, id: u32, headers: Headers, fin: bool) -> bool {
        let mut state = self.shared.lock();
        if state.slots.len() >= MAX_STREAMS || state.slots.contains_key(&id) {
            return false;
        }
        state.slots.insert(id, Slot { is_open: true, peer_finished: fin, ..Slot::default() });
        state.accepted.push_back((id, headers));
        let woken = state.acceptor.take();
        drop(state);
        wake(woken);
        true
    }

    /// Ends all streams. What has arrived can still be read.
    pub(crate) fn end(&self, end: End) {
        let mut state = self.shared.lock();
        if state.end.is_some() {
            return;
        }
        state.end = Some(end);
        state.commands.clear();
        let mut woken = std::mem::take(&mut state.ended);
        woken.extend(state.acceptor.take());
        for slot in state.slots.values_mut() {
            woken.extend([slot.reader.take(), slot.writer.take(), slot.opener.take()].into_iter().flatten());
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Mux {
    fn drop(&mut self) {
        self.wake_readers();
        // The driver may be dropped with its runtime.
        self.end(End::because(io::ErrorKind::ConnectionAborted, "the task of the connection was stopped"));
    }
}

impl Handle {
    /// Returns the stream of a number that both ends know. Each can be taken once.
    pub(crate) fn fixed(&self, id: u32) -> Stream {
        self.shared.lock().slots.insert(id, Slot { is_open: true, ..Slot::default() });
        Stream::new(&self.shared, id)
    }

    /// Opens a stream. It can be used when the peer has accepted it.
    pub(crate) fn open(&self, headers: Headers) -> io::Result<Stream> {
        let mut state = self.shared.lock();
        if let Some(end) = &state.end {
            return Err(closed(end));
        }
        let id = state.next_id;
        if id > MAX_ID {
            return Err(io::Error::other("the connection has no more numbers for streams"));
        }
        state.next_id += 2;
        state.slots.insert(id, Slot::default());
        let woken = state.command(Command::Open { id, headers });
        drop(state);
        wake(woken);
        Ok(Stream::new(&self.shared, id))
    }

    /// Polls for a stream that the peer opened, or `None` if the connection has ended.
    pub(crate) fn poll_accept(&self, context: &Context<'_>) -> Poll<Option<(Stream, Headers)>> {
        let mut state = self.shared.lock();
        let Some((id, headers)) = state.accepted.pop_front() else {
            if state.end.is_some() {
                return Poll::Ready(None);
            }
            state.acceptor = Some(context.waker().clone());
            return Poll::Pending;
        };
        let woken = state.command(Command::Accept { id });
        drop(state);
        wake(woken);
        Poll::Ready(Some((Stream::new(&self.shared, id), headers)))
    }

    /// Closes the connection after the data that was written so far.
    pub(crate) fn close(&self) {
        let woken = self.shared.lock().command(Command::Close);
        wake(woken);
    }

    /// Polls for the end of the connection.
    pub(crate) fn poll_end(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        match &state.end {
            Some(end) => Poll::Ready(end.to_error().map_or(Ok(()), Err)),
            None => {
                if !state.ended.iter().any(|waker| waker.will_wake(context.waker())) {
                    state.ended.push(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// Returns whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.lock().end.is_some()
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        self.shared.lock().handles += 1;
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let woken = self.shared.lock().drop_handle();
        wake(woken);
    }
}

impl Shared {
    /// Locks the state. A panic elsewhere does not leave it inconsistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a command. Returns the driver's waker.
    fn command(&mut self, command: Command) -> Option<Waker> {
        if self.end.is_none() {
            self.commands.push_back(command);
        }
        self.driver.take()
    }

    fn drop_handle(&mut self) -> Option<Waker> {
        self.handles -= 1;
        if self.handles == 0 { self.driver.take() } else { None }
    }

    /// Removes a stream that neither end uses.
    fn forget_if_done(&mut self, id: u32) {
        let is_done = self.slots.get(&id).is_some_and(|slot| {
            slot.is_read != Side::Used && slot.is_written != Side::Used && (slot.peer_finished || slot.is_reset)
        });
        if is_done {
            self.slots.remove(&id);
        }
    }
}

/// Returns the error of a write to a connection that has ended.
fn closed(end: &End) -> io::Error {
    end.to_error().unwrap_or_else(|| io::Error::new(io::ErrorKind::BrokenPipe, "the connection is closed"))
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The number of unread bytes after which a stream is full.
pub(crate) const INCOMING: usize = 128 << 10;
/// The number of bytes after which a writer waits for the driver.
pub(crate) const OUTGOING: usize = 128 << 10;
/// The number of bytes in one message or frame, as in Go's implementation.
pub(crate) const MAX_DATA: usize = 32 << 10;
/// The number of streams that a peer can have open at a time.
const MAX_STREAMS: usize = 16 << 10;
const MAX_ID: u32 = 0x7fff_fffe;

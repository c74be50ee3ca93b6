//! One forwarded connection.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use klient_streams::{Stream, StreamReader, StreamWriter};
use tokio::{
    io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

use super::session::Shared;

/// A connection to a port of a pod.
///
/// Shutting down the writing side tells the pod so, and leaves the reading side open. Dropping the connection before its end
/// resets it. A read fails with the pod's message if the pod could not serve the connection.
pub struct ForwardedConnection {
    reader: StreamReader,
    writer: StreamWriter,
    problem: Problem,
    shared: Arc<Shared>,
    pod: String,
    has_received: bool,
}

/// The stream on which a pod reports a problem of the connection. It ends empty after a success.
struct Problem {
    stream: StreamReader,
    text: Vec<u8>,
    is_ended: bool,
    is_reported: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl ForwardedConnection {
    pub(super) fn new(shared: Arc<Shared>, pod: String, data: Stream, problem: StreamReader) -> Self {
        shared.counters.connections.fetch_add(1, Ordering::Relaxed);
        shared.counters.active.fetch_add(1, Ordering::Relaxed);
        let (reader, writer) = data.into_split();
        let problem = Problem { stream: problem, text: Vec::new(), is_ended: false, is_reported: false, timer: None };
        Self { reader, writer, problem, shared, pod, has_received: false }
    }

    /// Returns the name of the pod.
    pub fn pod(&self) -> &str {
        &self.pod
    }

    /// Polls for the reason of an end. A pod that closes a connection before it sent anything probably failed: its
    /// message may arrive after the end.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Error>> {
        let problem = &mut self.problem;
        while !problem.is_ended {
            match problem.stream.poll_chunk(context) {
                Poll::Ready(Ok(Some(chunk))) => {
                    let room = MAX_TEXT.saturating_sub(problem.text.len());
                    problem.text.extend_from_slice(&chunk[..chunk.len().min(room)]);
                }
                Poll::Ready(Ok(None) | Err(_)) => problem.is_ended = true,
                Poll::Pending if self.has_received => break,
                Poll::Pending => {
                    let timer = problem.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
                    ready!(timer.as_mut().poll(context));
                    break;
                }
            }
        }
        if problem.text.is_empty() {
            return Poll::Ready(None);
        }
        if !problem.is_reported {
            problem.is_reported = true;
            self.shared.connection_failed(&self.pod);
        }
        let text = String::from_utf8_lossy(&problem.text);
        Poll::Ready(Some(io::Error::new(io::ErrorKind::ConnectionRefused, format!("pod {}: {text}", self.pod))))
    }
}

impl AsyncBufRead for ForwardedConnection {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        // The buffer is polled twice, because it cannot be borrowed while the end is examined.
        let outcome = ready!(Pin::new(&mut this.reader).poll_fill_buf(context)).map(<[u8]>::is_empty);
        if !matches!(outcome, Ok(false)) {
            return Poll::Ready(match (ready!(this.poll_end(context)), outcome) {
                (Some(problem), _) => Err(problem),
                (None, Err(error)) => Err(error),
                (None, Ok(_)) => Ok(&[]),
            });
        }
        this.has_received = true;
        Pin::new(&mut this.reader).poll_fill_buf(context)
    }

    fn consume(mut self: Pin<&mut Self>, amount: usize) {
        self.shared.counters.bytes_received.fetch_add(amount as u64, Ordering::Relaxed);
        Pin::new(&mut self.reader).consume(amount);
    }
}

impl AsyncRead for ForwardedConnection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let arrived = ready!(self.as_mut().poll_fill_buf(context))?;
        let taken = arrived.len().min(buf.remaining());
        buf.put_slice(&arrived[..taken]);
        self.consume(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ForwardedConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.writer).poll_write(context, buf))?;
        self.shared.counters.bytes_sent.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

impl Drop for ForwardedConnection {
    fn drop(&mut self) {
        self.shared.counters.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for ForwardedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardedConnection").field("pod", &self.pod).finish_non_exhaustive()
    }
}

/// How long the pod's message may take after the end of a connection that received nothing.
const PATIENCE: Duration = Duration::from_secs(2);
const MAX_TEXT: usize = 4 << 10;

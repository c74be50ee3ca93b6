//! Pipes between async tasks and threads that read or write archives.

use std::io::{self, Read, Write};

use bytes::Bytes;
use tokio::sync::mpsc;

/// The end of a pipe that a thread writes to.
pub(super) struct PipeWriter {
    chunks: mpsc::Sender<Bytes>,
    buffer: Vec<u8>,
}

/// The end of a pipe that a thread reads from.
pub(super) struct PipeReader {
    chunks: mpsc::Receiver<Bytes>,
    rest: Bytes,
}

pub(super) fn writer() -> (PipeWriter, mpsc::Receiver<Bytes>) {
    let (chunks, receiver) = mpsc::channel(CHUNKS);
    (PipeWriter { chunks, buffer: Vec::with_capacity(CHUNK) }, receiver)
}

pub(super) fn reader() -> (mpsc::Sender<Bytes>, PipeReader) {
    let (sender, chunks) = mpsc::channel(CHUNKS);
    (sender, PipeReader { chunks, rest: Bytes::new() })
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK));
        self.chunks.blocking_send(chunk.into()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Read for PipeReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.chunks.blocking_recv() {
                Some(chunk) => self.rest = chunk,
                None => return Ok(0),
            }
        }
        let taken = self.rest.len().min(out.len());
        out[..taken].copy_from_slice(&self.rest.split_to(taken));
        Ok(taken)
    }
}

/// The size of chunks: that of a WebSocket message.
const CHUNK: usize = 32 << 10;
/// The number of chunks that wait.
const CHUNKS: usize = 4;

//! A recording that is written to a file as it happens, by a thread of its own.
//!
//! The thread never delays the program: what it cannot write in time is counted, and the count is written instead.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{
    Entry, Header, Step,
    entry::{create_private, write_line},
    recorder::{Kept, Moment},
};

/// The sending half of a file.
#[derive(Debug)]
pub(super) struct FileWriter {
    /// `None` once the file is closed.
    queue: Option<SyncSender<Moment>>,
    lost: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

impl FileWriter {
    /// Creates a file, which ends at `limit` bytes.
    pub(super) fn create(path: &Path, header: &Header, limit: u64) -> std::io::Result<Self> {
        let mut file = Limited { file: BufWriter::new(create_private(path)?), left: limit };
        write_line(&mut file, header)?;
        let (queue, moments) = sync_channel(CAPACITY);
        let shown = path.display().to_string();
        let thread = std::thread::Builder::new().name("klient-recording".to_owned()).spawn(move || {
            if let Err(error) = write_all(&mut file, &moments) {
                tracing::error!(file = shown, error = &error as &dyn std::error::Error, "recording ended");
            }
        })?;
        Ok(Self { queue: Some(queue), lost: AtomicU64::new(0), thread: Some(thread) })
    }

    /// Passes an entry to the thread, or counts it.
    pub(super) fn push(&self, moment: Moment) {
        let Some(queue) = &self.queue else { return };
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let missing = Moment { at: moment.at, size: 0, kept: Kept::Step(Step::Lost { entries: lost }) };
            if queue.try_send(missing).is_err() {
                self.lost.fetch_add(lost + 1, Ordering::Relaxed);
                return;
            }
        }
        // A thread that ended has logged why.
        if let Err(TrySendError::Full(_)) = queue.try_send(moment) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes what is left.
impl Drop for FileWriter {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The thread does not panic, and has logged its error.
            let _ = thread.join();
        }
    }
}

fn write_all(file: &mut Limited, moments: &Receiver<Moment>) -> std::io::Result<()> {
    loop {
        match moments.recv_timeout(FLUSH_AFTER) {
            Ok(moment) => {
                write_line(file, &Entry { at: moment.at, step: moment.kept.to_step() })?;
            }
            Err(RecvTimeoutError::Timeout) => file.flush()?,
            Err(RecvTimeoutError::Disconnected) => return file.flush(),
        }
    }
}

/// A file that ends at a number of bytes.
struct Limited {
    file: BufWriter<File>,
    left: u64,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.left < bytes.len() as u64 {
            return Err(std::io::Error::other("the recording has reached its maximum size"));
        }
        let written = self.file.write(bytes)?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// The number of entries that wait for the thread.
const CAPACITY: usize = 4096;
/// A file is complete up to this long ago.
const FLUSH_AFTER: Duration = Duration::from_millis(500);

//! `Recorder`: the handle that a program holds, and the ring of the last entries.
//!
//! The ring holds the entries of the last minutes, and no more than a number of bytes. The state of the caches at its begin is not stored: it is
//! the state of the caches when the recording is saved, with the changes of the ring undone.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    fmt,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use k8s_openapi::jiff;
use klient_core::{ObjectKey, Resource};

use super::{
    Change, Entry, Header, RecordedObject, Recording, Step, StepReason, TurnEnd, TurnMark,
    entry::{VERSION, create_private},
    file::FileWriter,
    object::{Redaction, without_contents},
};
use crate::{
    Error, ErrorKind,
    controller::{Reason, Reasons},
    informer::Event,
};

/// A recorder of what controllers see and do. Clones are handles to the same recorder.
///
/// See the [module](super) for an example.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

/// A builder of a [`Recorder`].
#[derive(Clone, Debug)]
pub struct RecorderBuilder {
    last: Duration,
    max_bytes: usize,
    redaction: Redaction,
}

struct Inner {
    /// The same moment by two clocks.
    started: (Instant, jiff::Timestamp),
    options: RecorderBuilder,
    turns: AtomicU64,
    file: Option<FileWriter>,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    moments: VecDeque<Moment>,
    bytes: usize,
    /// Whether entries were removed.
    is_cut: bool,
    caches: Vec<CacheState>,
}

/// The resource of a cache, and its objects.
type CacheContents = (Arc<str>, Vec<Box<dyn RecordedObject>>);

/// The resource of a cache, and a function that returns its objects.
type CacheState = (Arc<str>, Box<dyn Fn() -> Vec<Box<dyn RecordedObject>> + Send + Sync>);

/// An entry in memory.
pub(super) struct Moment {
    pub(super) at: u64,
    pub(super) size: usize,
    pub(super) kept: Kept,
}

/// A step in memory: with objects as the cache has them, converted when they are written.
pub(super) enum Kept {
    Step(Step),
    Object {
        resource: Arc<str>,
        change: Change,
        object: Box<dyn RecordedObject>,
        /// The state before, for the state of the caches at the begin of the ring.
        old: Option<Box<dyn RecordedObject>>,
        is_redacted: bool,
    },
}

impl Recorder {
    /// Returns a builder of a recorder.
    pub fn builder() -> RecorderBuilder {
        RecorderBuilder { last: Duration::from_secs(600), max_bytes: 64 << 20, redaction: Redaction::default() }
    }

    /// Returns the recording of the last minutes. A recorder that writes to a file has none.
    pub fn recording(&self) -> Recording {
        let caches: Vec<CacheContents> = {
            let ring = self.lock();
            ring.caches.iter().map(|(resource, objects)| (Arc::clone(resource), objects())).collect()
        };
        let ring = self.lock();
        let mut entries = Vec::with_capacity(ring.moments.len());
        // The times of a recording count from its begin.
        let begin = ring.moments.front().filter(|_| ring.is_cut).map_or(0, |moment| moment.at);
        if ring.is_cut {
            entries.extend(self.state_at_begin(&ring, &caches).map(|step| Entry { at: 0, step }));
        }
        // Reconciles that began before the ring cannot be replayed.
        let mut known = HashSet::new();
        for moment in &ring.moments {
            let step = moment.kept.to_step();
            let is_known = match &step {
                Step::Started { turn, .. } => known.insert(*turn),
                Step::Request { turn, .. } | Step::Ended { turn, .. } => known.contains(turn),
                _ => true,
            };
            if is_known {
                entries.push(Entry { at: moment.at - begin, step });
            }
        }
        let (_, started) = self.inner.started;
        let started = started.saturating_add(Duration::from_micros(begin)).unwrap_or(started);
        Recording { header: Header { whole: !ring.is_cut, ..header(started) }, entries }
    }

    /// Saves the recording of the last minutes to a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written, or if the recorder writes to a file of its own already.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        if self.inner.file.is_some() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the recorder writes to a file already: it holds no entries to save",
            ));
        }
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Invalid, format!("cannot write recording {}", path.display())).with_source(error)
        };
        // A reader never sees half of a recording.
        let temporary = temporary(path);
        let write = || -> std::io::Result<()> {
            let mut file = std::io::BufWriter::new(create_private(&temporary)?);
            self.recording().write(&mut file)?;
            file.flush()?;
            drop(file);
            std::fs::rename(&temporary, path)
        };
        write().map_err(failed)
    }

    /// Records the events of a batch.
    pub(crate) fn events<K: Resource>(&self, resource: &Arc<str>, events: &[Event<K>]) {
        let at = self.now();
        let is_redacted = self.inner.options.redaction.covers(resource);
        for event in events {
            if event.is_resync() {
                continue;
            }
            let (change, old): (_, Option<Box<dyn RecordedObject>>) = match event {
                Event::Added { in_initial_list: true, .. } => (Change::Found, None),
                Event::Added { .. } => (Change::Added, None),
                Event::Updated { old, .. } => (Change::Updated, Some(Box::new(old.clone()))),
                Event::Deleted(_) => (Change::Deleted, None),
            };
            let object: Box<dyn RecordedObject> = Box::new(event.object().clone());
            let size = object.size() + old.as_ref().map_or(0, |old| old.size()) + PER_ENTRY;
            let kept = Kept::Object { resource: Arc::clone(resource), change, object, old, is_redacted };
            self.push(Moment { at, size, kept });
        }
    }

    /// Adds a cache, whose state is part of a recording that does not go back to its first list.
    pub(crate) fn add_cache(
        &self,
        resource: Arc<str>,
        objects: impl Fn() -> Vec<Box<dyn RecordedObject>> + Send + Sync + 'static,
    ) {
        self.lock().caches.push((resource, Box::new(objects)));
    }

    /// Records that an event added a key.
    pub(crate) fn queued(&self, controller: &str, key: &ObjectKey, reason: &Reason) {
        let reason = StepReason::from(reason);
        self.push_step(Step::Queued { controller: controller.to_owned(), key: key.clone(), reason });
    }

    /// Records the begin of a reconcile, and returns its mark.
    pub(crate) fn started(
        &self,
        controller: &str,
        key: &ObjectKey,
        reasons: &Reasons,
        failures: u32,
        seen: Option<String>,
    ) -> TurnMark {
        let turn = self.inner.turns.fetch_add(1, Ordering::Relaxed);
        let reasons = reasons.iter().map(StepReason::from).collect();
        let (controller, key) = (controller.to_owned(), key.clone());
        self.push_step(Step::Started { turn, controller, key, reasons, failures, seen });
        TurnMark { id: turn, recorder: Some(self.clone()) }
    }

    /// Records the end of a reconcile.
    pub(crate) fn ended(&self, turn: u64, end: TurnEnd) {
        self.push_step(Step::Ended { turn, end });
    }

    #[cfg(feature = "client")]
    pub(crate) fn redaction(&self) -> &Redaction {
        &self.inner.options.redaction
    }

    pub(crate) fn push_step(&self, step: Step) {
        let size = PER_ENTRY + size_of(&step);
        self.push(Moment { at: self.now(), size, kept: Kept::Step(step) });
    }

    fn push(&self, moment: Moment) {
        if let Some(file) = &self.inner.file {
            return file.push(moment);
        }
        let (options, at) = (&self.inner.options, moment.at);
        let mut ring = self.lock();
        ring.bytes += moment.size;
        ring.moments.push_back(moment);
        let oldest = at.saturating_sub(options.last.as_micros() as u64);
        let mut removed = Vec::new();
        while ring.bytes > options.max_bytes || ring.moments.front().is_some_and(|first| first.at < oldest) {
            let Some(first) = ring.moments.pop_front() else { break };
            ring.bytes -= first.size;
            ring.is_cut = true;
            removed.push(first);
        }
        // Objects are freed after the lock.
        drop(ring);
    }

    fn now(&self) -> u64 {
        self.inner.started.0.elapsed().as_micros() as u64
    }

    /// Returns the state of the caches at the begin of the ring: their state now, with the changes of the ring undone.
    fn state_at_begin<'a>(&'a self, ring: &'a Ring, caches: &'a [CacheContents]) -> impl Iterator<Item = Step> + 'a {
        let mut state: BTreeMap<(&str, &ObjectKey), &dyn RecordedObject> = BTreeMap::new();
        for (resource, objects) in caches {
            state.extend(objects.iter().map(|object| ((&**resource, object.key()), &**object)));
        }
        for moment in ring.moments.iter().rev() {
            let Kept::Object { resource, change, object, old, .. } = &moment.kept else { continue };
            let before = match change {
                Change::Deleted => Some(&**object),
                _ => old.as_deref(),
            };
            match before {
                Some(before) => state.insert((resource, object.key()), before),
                None => state.remove(&(&**resource, object.key())),
            };
        }
        state.into_iter().map(|((resource, _), object)| {
            let is_redacted = self.inner.options.redaction.covers(resource);
            object_step(resource, Change::Found, object, is_redacted)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.inner.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecorderBuilder {
    /// Sets how far back the recording goes; 10 minutes by default.
    #[must_use]
    pub fn last(mut self, duration: Duration) -> Self {
        self.last = duration;
        self
    }

    /// Sets how many bytes the recording takes at most, in memory or in the file; 64 MiB by default.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Leaves out the contents of the objects of a resource, such as `vaults.example.com`, as those of Secrets are left out. Their metadata is
    /// recorded.
    #[must_use]
    pub fn without_contents_of(mut self, resource: impl Into<String>) -> Self {
        self.redaction.add(resource.into());
        self
    }

    /// Records the contents of Secrets, too. Every reader of the recording can read them.
    #[must_use]
    pub fn with_secrets(mut self) -> Self {
        self.redaction = Redaction::none();
        self
    }

    /// Builds a recorder that holds the last minutes in memory.
    pub fn build(self) -> Recorder {
        self.with_file(None)
    }

    /// Builds a recorder that writes everything to a file, until the file has its maximum size.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created.
    pub fn write_to(self, path: impl Into<PathBuf>) -> Result<Recorder, Error> {
        let path = path.into();
        let file =
            FileWriter::create(&path, &header(jiff::Timestamp::now()), self.max_bytes as u64).map_err(|error| {
                Error::new(ErrorKind::Invalid, format!("cannot create recording {}", path.display())).with_source(error)
            })?;
        Ok(self.with_file(Some(file)))
    }

    fn with_file(self, file: Option<FileWriter>) -> Recorder {
        let inner = Inner {
            started: (Instant::now(), jiff::Timestamp::now()),
            options: self,
            turns: AtomicU64::new(1),
            file,
            ring: Mutex::default(),
        };
        Recorder { inner: Arc::new(inner) }
    }
}

impl Kept {
    /// Returns the step in the form in which it is written.
    pub(super) fn to_step(&self) -> Step {
        match self {
            Self::Step(step) => step.clone(),
            Self::Object { resource, change, object, is_redacted, .. } => {
                object_step(resource, *change, &**object, *is_redacted)
            }
        }
    }
}

fn object_step(resource: &str, change: Change, object: &dyn RecordedObject, is_redacted: bool) -> Step {
    let object = object.to_json();
    let object = if is_redacted { without_contents(object) } else { object };
    Step::Object { resource: resource.to_owned(), change, object }
}

fn header(started: jiff::Timestamp) -> Header {
    Header { klient: "recording".to_owned(), version: VERSION, started: started.to_string(), whole: true }
}

/// Estimates the size of what a step holds besides itself.
fn size_of(step: &Step) -> usize {
    match step {
        Step::Request { body, response, path, .. } => {
            let json =
                |value: &Option<serde_json::Value>| value.as_ref().map_or(0, |value| value.to_string().len() * 2);
            path.len() + json(body) + json(response)
        }
        Step::Started { reasons, .. } => reasons.len() * 128,
        Step::Ended { end: TurnEnd::Failed { error }, .. } => error.len(),
        _ => 0,
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ring = self.lock();
        f.debug_struct("Recorder")
            .field("entries", &ring.moments.len())
            .field("bytes", &ring.bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment").field("at", &self.at).finish_non_exhaustive()
    }
}

/// The memory that an entry takes besides its objects.
const PER_ENTRY: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_without_its_begin_starts_at_its_first_entry() {
        let recorder = Recorder::builder().last(Duration::from_secs(60)).build();
        let whole = recorder.recording().header;
        let push = |seconds: u64| {
            let kept = Kept::Step(Step::Lost { entries: 0 });
            recorder.push(Moment { at: seconds * 1_000_000, size: PER_ENTRY, kept });
        };
        [10, 90, 140].into_iter().for_each(push);
        let cut = recorder.recording();
        assert_eq!((whole.whole, cut.header.whole), (true, false));
        let moment = |header: &Header| header.started.parse::<jiff::Timestamp>().unwrap();
        assert_eq!(moment(&cut.header).duration_since(moment(&whole)), jiff::SignedDuration::from_secs(90));
        assert_eq!(cut.entries.iter().map(|entry| entry.at).collect::<Vec<_>>(), [0, 50_000_000]);
    }
}

//! Exemplars: for each bucket of a histogram, the trace of one value.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A function that names the current trace.
type TraceSource = Box<dyn Fn() -> Option<String> + Send + Sync>;

static SOURCE: OnceLock<TraceSource> = OnceLock::new();

/// Sets the function that returns the ID of the current trace, from which all histograms take exemplars. Only the first call in a
/// process has an effect; returns whether this is the first.
///
/// The crate `klient-telemetry` calls it for OpenTelemetry. `/metrics` has exemplars if the client accepts the OpenMetrics format.
pub fn set_exemplars(source: impl Fn() -> Option<String> + Send + Sync + 'static) -> bool {
    SOURCE.set(Box::new(source)).is_ok()
}

/// Returns whether exemplars are taken.
#[cfg(feature = "client")]
pub(crate) fn has_exemplars() -> bool {
    SOURCE.get().is_some()
}

/// A value of a histogram, with its trace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Exemplar {
    /// The ID of the trace.
    pub trace_id: String,
    /// The value.
    pub value: f64,
    /// When the value was observed, since 1970.
    pub time: Duration,
}

/// The exemplars of a histogram, one for each bucket.
#[derive(Debug)]
pub(super) struct Exemplars {
    buckets: Box<[Mutex<Option<Exemplar>>]>,
}

impl Exemplars {
    pub(super) fn new(buckets: usize) -> Self {
        Self { buckets: (0..buckets).map(|_| Mutex::new(None)).collect() }
    }

    pub(super) fn get(&self, bucket: usize) -> Option<Exemplar> {
        self.buckets.get(bucket)?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, bucket: usize, exemplar: Exemplar) {
        // Another value of the same bucket serves as well.
        if let Some(Ok(mut known)) = self.buckets.get(bucket).map(Mutex::try_lock) {
            *known = Some(exemplar);
        }
    }
}

/// Takes an exemplar of a value, if a trace is known.
#[inline]
pub(super) fn observed(exemplars: &OnceLock<Exemplars>, buckets: usize, bucket: usize, value: f64) {
    let Some(source) = SOURCE.get() else { return };
    let Some(trace_id) = source() else { return };
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    exemplars.get_or_init(|| Exemplars::new(buckets)).set(bucket, Exemplar { trace_id, value, time });
}

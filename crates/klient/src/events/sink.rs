//! The future that sends events, with retries.

use std::{fmt, future::Future, pin::pin};

use tokio::{
    sync::mpsc,
    time::{Duration, Instant, sleep, sleep_until, timeout},
};
use tracing::{debug, warn};

use super::{
    EventOptions, Recorded,
    correlate::{Correlator, Series, StoredEvent, Verdict},
    write,
};
use crate::{Error, client::Client, metrics::Counter, retry::random};

/// The sender of recorded events. Events are sent only while [`run`](Self::run) or [`run_until`](Self::run_until) runs.
#[must_use = "events are not sent unless this runs"]
pub struct EventSink {
    client: Client,
    options: EventOptions,
    recorded: mpsc::Receiver<Recorded>,
    dropped: Counter,
    filtered: Counter,
    correlator: Correlator,
    /// The event that is being sent: a shutdown must not lose it.
    current: Option<(Recorded, Verdict)>,
}

impl EventSink {
    pub(super) fn new(
        client: Client,
        options: EventOptions,
        recorded: mpsc::Receiver<Recorded>,
        (dropped, filtered): (Counter, Counter),
    ) -> Self {
        let correlator = Correlator::new(options.api);
        Self { client, options, recorded, dropped, filtered, correlator, current: None }
    }

    /// Sends events until all recorders are dropped, and then the remaining ones.
    pub async fn run(self) {
        self.run_until(std::future::pending()).await;
    }

    /// Sends events until the signal is ready or all recorders are dropped, and then the remaining ones within
    /// [`flush_deadline`](EventOptions::flush_deadline). Events that are recorded after that are dropped and counted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the events that were not sent.
    pub async fn run_until(mut self, signal: impl Future<Output = ()>) {
        let mut signal = pin!(signal);
        tokio::select! {
            biased;
            () = &mut signal => {}
            () = self.forward() => {}
        }
        self.recorded.close();
        if timeout(self.options.flush_deadline, self.flush()).await.is_err() {
            let mut left = u64::from(self.current.is_some());
            while self.recorded.try_recv().is_ok() {
                left += 1;
            }
            self.dropped.add(left);
            warn!(dropped = left, "flush deadline exceeded, dropped events");
        }
    }

    /// Sends events until all recorders are dropped.
    async fn forward(&mut self) {
        loop {
            let due = self.correlator.next_due();
            tokio::select! {
                biased;
                recorded = self.recorded.recv() => match recorded {
                    Some(recorded) => self.take(recorded, ATTEMPTS).await,
                    None => return,
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.refresh(false, ATTEMPTS).await,
            }
        }
    }

    /// Sends the remaining events, with one attempt each: the one that was being sent, and the queued ones.
    async fn flush(&mut self) {
        self.send_current(1).await;
        while let Ok(recorded) = self.recorded.try_recv() {
            self.take(recorded, 1).await;
        }
        self.refresh(true, 1).await;
    }

    async fn take(&mut self, mut recorded: Recorded, attempts: u32) {
        let verdict = self.correlator.judge(&mut recorded);
        self.current = Some((recorded, verdict));
        self.send_current(attempts).await;
    }

    async fn send_current(&mut self, attempts: u32) {
        // The event stays in `current` until it is sent: this future may be dropped at any await.
        let Some((recorded, verdict)) = self.current.clone() else { return };
        match verdict {
            Verdict::Create(series) => self.create(series, &recorded, attempts).await,
            Verdict::Repeat(series, stored) => {
                let note = Some(recorded.event.note.as_str());
                let outcome =
                    self.send(attempts, || write::repeat(&self.client, self.options.api, &stored, note)).await;
                if outcome.is_err_and(|error| error.is_not_found()) {
                    // The event has expired on the server.
                    self.correlator.forget(&series);
                    self.create(series, &recorded, attempts).await;
                }
            }
            Verdict::Defer => {}
            Verdict::Drop => {
                self.dropped.increment();
                self.filtered.increment();
            }
        }
        self.current = None;
    }

    async fn create(&mut self, series: Series, recorded: &Recorded, attempts: u32) {
        let (namespace, name) = write::location(recorded);
        let location = (namespace.as_str(), name.as_str());
        let outcome = self.send(attempts, || write::create(&self.client, &self.options, recorded, location)).await;
        match outcome {
            // `AlreadyExists` means that an earlier attempt was stored.
            Err(error) if !error.is_already_exists() => self.dropped.increment(),
            _ => self.correlator.stored(series, namespace, name, recorded.at),
        }
    }

    /// Writes the counts of series that are not on the server yet.
    async fn refresh(&mut self, at_end: bool, attempts: u32) {
        let due: Vec<StoredEvent> = self.correlator.due(at_end);
        for stored in due {
            // The event may have expired on the server. Its count is not needed then.
            let _ = self.send(attempts, || write::repeat(&self.client, self.options.api, &stored, None)).await;
        }
    }

    /// Sends a request, and retries unless the server has responded with an error.
    async fn send<F>(&self, limit: u32, request: impl Fn() -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let mut attempts = 0;
        loop {
            let error = match request().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            attempts += 1;
            if error.status().is_some() || attempts >= limit {
                debug!(%error, attempts, "failed to send event");
                return Err(error);
            }
            // The first delay is random, so that programs do not retry all at once when a server recovers.
            sleep(if attempts == 1 { PAUSE.mul_f64(random()) } else { PAUSE }).await;
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSink").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The number of attempts without a response, and the delay between them.
const ATTEMPTS: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);

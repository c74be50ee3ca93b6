//! The one future that sends events, and tries again.

use std::{fmt, future::Future, pin::pin};

use tokio::{
    sync::mpsc,
    time::{Duration, Instant, sleep, sleep_until, timeout_at},
};
use tracing::{debug, warn};

use super::{
    EventOptions, Recorded,
    correlate::{Correlator, Said, Series, Verdict},
    write,
};
use crate::{Error, client::Client, metrics::Counter, retry::random};

/// Sends what recorders recorded. Nothing is sent unless this runs.
#[must_use = "events are not sent unless this runs"]
pub struct EventSink {
    client: Client,
    options: EventOptions,
    recorded: mpsc::Receiver<Recorded>,
    dropped: Counter,
    correlator: Correlator,
    /// What is being sent: an end must not lose it.
    current: Option<(Recorded, Verdict)>,
}

impl EventSink {
    pub(super) fn new(
        client: Client,
        options: EventOptions,
        recorded: mpsc::Receiver<Recorded>,
        dropped: Counter,
    ) -> Self {
        let correlator = Correlator::new(options.api);
        Self { client, options, recorded, dropped, correlator, current: None }
    }

    /// Sends events until all recorders are gone, and then what is left.
    pub async fn run(self) {
        self.run_until(std::future::pending()).await;
    }

    /// Sends events until the signal or until all recorders are gone, and then what is left, within
    /// [`flush_deadline`](EventOptions::flush_deadline). What is recorded after that is dropped and counted.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops what was not sent.
    pub async fn run_until(mut self, signal: impl Future<Output = ()>) {
        let mut signal = pin!(signal);
        tokio::select! {
            biased;
            () = &mut signal => {}
            () = self.forward() => {}
        }
        self.recorded.close();
        let deadline = Instant::now() + self.options.flush_deadline;
        if timeout_at(deadline, self.flush()).await.is_err() {
            let mut left = u64::from(self.current.is_some());
            while self.recorded.try_recv().is_ok() {
                left += 1;
            }
            self.dropped.add(left);
            warn!(left, "events were not sent before the deadline");
        }
    }

    /// Sends until all recorders are gone.
    async fn forward(&mut self) {
        loop {
            let due = self.correlator.next_due();
            tokio::select! {
                biased;
                recorded = self.recorded.recv() => match recorded {
                    Some(recorded) => self.take(recorded, TRIES).await,
                    None => return,
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.refresh(false, TRIES).await,
            }
        }
    }

    /// Sends what is left, each once: what was being sent when the end came, and what was to come.
    async fn flush(&mut self) {
        self.send_current(1).await;
        while let Ok(recorded) = self.recorded.try_recv() {
            self.take(recorded, 1).await;
        }
        self.refresh(true, 1).await;
    }

    async fn take(&mut self, mut recorded: Recorded, tries: u32) {
        let verdict = self.correlator.judge(&mut recorded);
        self.current = Some((recorded, verdict));
        self.send_current(tries).await;
    }

    async fn send_current(&mut self, tries: u32) {
        // It stays there until it is sent: this future may be dropped at any await.
        let Some((recorded, verdict)) = self.current.clone() else { return };
        match verdict {
            Verdict::Create(series) => self.create(series, &recorded, tries).await,
            Verdict::Repeat(series, said) => {
                let note = Some(recorded.event.note.as_str());
                let outcome = self.send(tries, || write::repeat(&self.client, self.options.api, &said, note)).await;
                if outcome.is_err_and(|error| error.is_not_found()) {
                    // It has outlived its time on the server.
                    self.correlator.forget(&series);
                    self.create(series, &recorded, tries).await;
                }
            }
            Verdict::Remember => {}
            Verdict::Drop => self.dropped.increment(),
        }
        self.current = None;
    }

    async fn create(&mut self, series: Series, recorded: &Recorded, tries: u32) {
        let (namespace, name) = write::place(recorded);
        let place = (namespace.as_str(), name.as_str());
        let outcome = self.send(tries, || write::create(&self.client, &self.options, recorded, place)).await;
        match outcome {
            // It is there: an earlier try came through.
            Err(error) if !error.is_already_exists() => self.dropped.increment(),
            _ => self.correlator.said(series, namespace, name, recorded.at),
        }
    }

    /// Writes the counts of series that were only remembered.
    async fn refresh(&mut self, at_end: bool, tries: u32) {
        let due: Vec<Said> = self.correlator.due(at_end);
        for said in due {
            // Nobody misses the count of an event that is gone.
            let _ = self.send(tries, || write::repeat(&self.client, self.options.api, &said, None)).await;
        }
    }

    /// Tries to send, and again unless the server has refused.
    async fn send<F>(&self, tries: u32, request: impl Fn() -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let mut tried = 0;
        loop {
            let error = match request().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            tried += 1;
            if error.status().is_some() || tried >= tries {
                debug!(%error, tried, "an event was not sent");
                return Err(error);
            }
            // Not all programs at once when a server comes back.
            sleep(if tried == 1 { PAUSE.mul_f64(random()) } else { PAUSE }).await;
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSink").field("options", &self.options).finish_non_exhaustive()
    }
}

/// How often an event is sent if nobody answers, and how long to wait in between.
const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);

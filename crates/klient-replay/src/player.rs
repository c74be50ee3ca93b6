//! `Replay`: goes through a recording, entry by entry.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    fmt,
    io::Write as _,
    path::Path,
    time::Duration,
};

use klient::{
    Client, Controller, Error, ErrorKind, ObjectKey, Resource,
    controller::{Stepper, TurnReport},
    recording::{Change, Entry, Recording, Step, StepReason, TurnEnd},
};
use serde_json::Value;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    gate::{Arrived, Gate, Verdict},
    report::{Difference, DifferenceKind, Report, Turn},
    script::{self, Line},
    world::World,
};

/// A replay of a recording; see the documentation of this crate.
pub struct Replay {
    world: World,
    gate: Gate,
    client: Client,
    lines: VecDeque<Line>,
    is_whole: bool,
    controllers: HashMap<String, Stepper>,
    /// The running reconciles, by their number in the recording.
    running: HashMap<u64, Running>,
    /// The keys that were reconciled before, by controller.
    known: HashSet<(String, ObjectKey)>,
    /// The resources that caches have.
    cached: HashSet<String>,
    /// The changes of the recording, by the key and version of their objects.
    changes: HashSet<(ObjectKey, u64)>,
    /// The last line whose change was released, by handler.
    released: HashMap<Handler, u64>,
    begun: Instant,
    line: usize,
    is_printed: bool,
    report: Report,
}

struct Running {
    /// The number of the reconcile in this replay.
    id: u64,
    task: JoinHandle<TurnReport>,
    /// The place in the report.
    index: usize,
    reasons: Vec<StepReason>,
    /// Whether the replay queued the key itself, because the cause lies before the recording or outside of the cluster.
    is_imposed: bool,
    /// The last recorded failure, which retries of the client receive as well.
    failure: Option<(String, String, u16, Value)>,
}

impl Replay {
    /// Starts a replay of a file: a server with the recorded state.
    ///
    /// Custom kinds get definitions that accept everything, unless [`with_definitions`](Self::with_definitions) has better ones.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a recording, its objects cannot be stored, or the clock of the Tokio runtime is not paused.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of(&Recording::open(path)?).await
    }

    /// Starts a replay of the file that the environment variable `KLIENT_REPLAY` names, as `klient replay FILE -- PROGRAM` sets it; `None` if it
    /// is not set. Each entry is printed to the standard error as it is replayed.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open).
    pub async fn from_env() -> Result<Option<Self>, Error> {
        let Some(path) = std::env::var_os("KLIENT_REPLAY") else { return Ok(None) };
        let mut replay = Self::open(path).await?;
        replay.is_printed = true;
        Ok(Some(replay))
    }

    /// Starts a replay of a recording; see [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open).
    pub async fn of(recording: &Recording) -> Result<Self, Error> {
        Self::with_definitions(recording, []).await
    }

    /// Starts a replay whose server has these `CustomResourceDefinition`s, as JSON.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open).
    pub async fn with_definitions(
        recording: &Recording,
        definitions: impl IntoIterator<Item = Value>,
    ) -> Result<Self, Error> {
        // A paused clock moves only while every task waits.
        let (begun, real) = (Instant::now(), std::time::Instant::now());
        while real.elapsed() < TICK {
            std::hint::spin_loop();
        }
        if Instant::now() != begun {
            let message = "a replay needs a paused clock: use #[tokio::test(start_paused = true)]";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let world = World::start(recording, definitions.into_iter().collect()).await?;
        let gate = Gate::new(world.server.clone());
        let client = Client::builder(gate.clone()).json_only().build();
        let lines = script::lines(recording);
        let cached = lines.iter().filter_map(|line| match &line.entry.step {
            Step::Object { resource, .. } => Some(resource.clone()),
            _ => None,
        });
        Ok(Self {
            cached: cached.collect(),
            world,
            gate,
            client,
            is_whole: recording.header.whole,
            controllers: HashMap::new(),
            running: HashMap::new(),
            known: HashSet::new(),
            changes: lines.iter().filter_map(change_of).collect(),
            lines: lines.into(),
            released: HashMap::new(),
            begun: Instant::now(),
            line: 1,
            is_printed: false,
            report: Report::default(),
        })
    }

    /// Returns the client for the controllers.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the server of the replay.
    pub fn server(&self) -> &klient_apiserver::ApiServer {
        &self.world.server
    }

    /// Adds a controller. Its name must be the one that it had when it was recorded, and it must use the [client](Self::client) of this replay.
    ///
    /// # Errors
    ///
    /// Returns an error if the controller runs, or if there is one of the same name.
    pub async fn controller<K: Resource>(&mut self, controller: &Controller<K>) -> Result<(), Error> {
        let stepper = controller.step_by_step().await?;
        if !self.is_whole {
            // The objects of the first list were reconciled before the recording began.
            stepper.discard(|_, _| true);
        }
        self.begun = Instant::now();
        match self.controllers.insert(stepper.name().to_owned(), stepper) {
            None => Ok(()),
            Some(old) => Err(Error::new(ErrorKind::Invalid, format!("two controllers are named {:?}", old.name()))),
        }
    }

    /// Replays all of the recording.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`step`](Self::step).
    pub async fn run(mut self) -> Result<Report, Error> {
        while self.step().await?.is_some() {}
        Ok(self.finish())
    }

    /// Replays one entry, and returns it; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error if the recording has an entry of a controller that was not [added](Self::controller).
    pub async fn step(&mut self) -> Result<Option<Entry>, Error> {
        let Some(Line { number, entry, is_own }) = self.lines.pop_front() else { return Ok(None) };
        let known = self.report.differences.len();
        self.line = number;
        self.controllers.values().for_each(|stepper| stepper.set_mark(number as u64));
        self.world.set_time(entry.at);
        tokio::time::sleep_until(self.begun + Duration::from_micros(entry.at)).await;
        match &entry.step {
            Step::Object { change, object, .. } if !is_own => self.change(*change, object).await,
            Step::Queued { controller, key, reason } => self.queue(controller, key, reason)?,
            Step::Started { turn, controller, key, reasons, failures, .. } => {
                self.start(*turn, controller, key, reasons, *failures)?;
            }
            Step::Request { turn, .. } => self.request(*turn, &entry.step).await,
            Step::Ended { turn, end } => self.end(*turn, end).await,
            Step::Lost { entries } => {
                let message = format!("{entries} entries are missing in the recording: what follows may differ");
                self.differ(DifferenceKind::Object, message);
            }
            _ => {}
        }
        settle().await;
        if self.is_printed {
            self.print(&entry, known);
        }
        Ok(Some(entry))
    }

    /// Returns the report of what was replayed so far.
    pub fn finish(mut self) -> Report {
        for (name, stepper) in &self.controllers {
            let held = stepper.held();
            for (index, (mark, key, reason)) in held.iter().enumerate() {
                // At the end of the recording, a handler may not have reached the last changes.
                let handler = handler_of(name, key, &reason.into());
                let is_reached = self.released.get(&handler).is_some_and(|last| last > mark);
                // A slow handler receives merged events.
                let is_merged =
                    held[index + 1..].iter().any(|(_, other, why)| other == key && why.object == reason.object);
                if is_reached && !is_merged {
                    let message = format!("{name} queued {key} because of {reason}, which the recording did not");
                    let (line, kind) = (usize::try_from(*mark).unwrap_or(self.line), DifferenceKind::AlsoQueued);
                    self.report.differences.push(Difference { line, kind, message });
                }
            }
        }
        for running in self.running.values() {
            running.task.abort();
        }
        self.report
    }

    /// Stores a change that did not come from a recorded reconcile.
    async fn change(&mut self, change: Change, object: &Value) {
        let stored = match change {
            Change::Found => return,
            Change::Added | Change::Updated => self.world.restore(object.clone()).await,
            Change::Deleted => self.world.erase(object).await.map(drop),
        };
        if let Err(error) = stored {
            self.differ(DifferenceKind::Object, error.to_string());
        }
    }

    /// Lets an event into the queue.
    fn queue(&mut self, controller: &str, key: &ObjectKey, reason: &StepReason) -> Result<(), Error> {
        let stepper = self.stepper(controller)?;
        let is_same = |held: &klient::controller::Reason| reason.is_same_event(&StepReason::from(held));
        if let Some(mark) = stepper.release(|held, why| held == key && is_same(why)) {
            // A slow handler receives merged events, and so may have received fewer than this one.
            let version = reason.resource_version;
            stepper.discard(|held, why| {
                let is_older = why.resource_version.zip(version).is_some_and(|(why, version)| why < version);
                held == key && is_same(why) && is_older
            });
            let last = self.released.entry(handler_of(controller, key, reason)).or_default();
            *last = mark.max(*last);
            return Ok(());
        }
        // Resyncs depend on timers, takeovers on other replicas, and the others come from outside of the cluster.
        let is_outside = matches!(reason.kind.as_str(), "resync" | "requested" | "event" | "taken over");
        // The change may have happened just before the recording begins.
        let is_before = !self.is_whole
            && reason.object.clone().zip(reason.resource_version).is_none_or(|it| !self.changes.contains(&it));
        if let Some(reason) = reason.to_reason().filter(|_| is_outside || is_before) {
            stepper.add(key.clone(), reason);
        } else {
            self.differ(DifferenceKind::NotQueued, format!("{controller} did not queue {key} because of {reason}"));
        }
        Ok(())
    }

    /// Starts a reconcile.
    fn start(
        &mut self,
        turn: u64,
        controller: &str,
        key: &ObjectKey,
        reasons: &[StepReason],
        failures: u32,
    ) -> Result<(), Error> {
        let stepper = self.stepper(controller)?;
        if reasons.iter().any(|reason| matches!(reason.kind.as_str(), "retry" | "requeued")) {
            stepper.end_delay(key);
        }
        let mut is_imposed = false;
        let begun = match stepper.begin(key, Some(failures)) {
            Some(begun) => begun,
            None => {
                is_imposed = !self.is_whole && !self.known.contains(&(controller.to_owned(), key.clone()));
                for reason in reasons.iter().filter_map(StepReason::to_reason) {
                    stepper.add(key.clone(), reason);
                }
                if reasons.is_empty() {
                    stepper
                        .add(key.clone(), klient::controller::Reason::new(klient::controller::ReasonKind::Requested));
                }
                let Some(begun) = stepper.begin(key, Some(failures)) else {
                    self.differ(DifferenceKind::NotReady, format!("{controller} is still reconciling {key}"));
                    return Ok(());
                };
                if !is_imposed {
                    self.differ(DifferenceKind::NotReady, format!("{controller} had not queued {key}"));
                }
                begun
            }
        };
        let (id, future) = begun;
        let index = self.report.turns.len();
        self.report.turns.push(Turn {
            controller: controller.to_owned(),
            key: key.clone(),
            reasons: reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            requests: Vec::new(),
            end: None,
        });
        self.known.insert((controller.to_owned(), key.clone()));
        let task = tokio::spawn(future);
        let reasons = reasons.to_vec();
        self.running.insert(turn, Running { id, task, index, reasons, is_imposed, failure: None });
        Ok(())
    }

    /// Lets a recorded request through.
    async fn request(&mut self, turn: u64, step: &Step) {
        let Step::Request { method, path, body, status, response, error, .. } = step else { return };
        let expected = format!("{method} {path}");
        let Some(arrived) = self.arrive(turn, method, path).await else {
            if self.running.contains_key(&turn) {
                self.differ(DifferenceKind::NotSent, format!("{} did not send {expected}", self.name_of(turn)));
            }
            return;
        };
        if !fits(&arrived, method, path) {
            let found = format!("{} {}", arrived.method, arrived.path);
            self.differ(DifferenceKind::AlsoSent, format!("{} sent {found} instead of {expected}", self.name_of(turn)));
            return self.execute(turn, arrived, None).await;
        }
        if let (Some(expected), Some(found)) = (body, &arrived.body)
            && !is_same_json(expected, found)
        {
            let message =
                format!("{} sent {method} {path} with another body: {found}, recorded: {expected}", self.name_of(turn));
            self.differ(DifferenceKind::Body, message);
        }
        let Some(running) = self.running.get_mut(&turn) else { return };
        running.failure = None;
        let response = response.clone().unwrap_or_default();
        match (status, error) {
            (Some(code), _) if *code >= 400 => {
                running.failure = Some((method.clone(), path.clone(), *code, response.clone()));
                self.report.turns[running.index].requests.push(format!("{expected} {code}"));
                arrived.decide(Verdict::Respond(*code, response));
            }
            (None, Some(error)) => {
                self.report.turns[running.index].requests.push(format!("{expected} failed"));
                arrived.decide(Verdict::Fail(error.clone()));
            }
            (status, _) => {
                self.prepare(method, &response).await;
                self.execute(turn, arrived, *status).await;
            }
        }
    }

    /// Prepares the server for a request that succeeded in the recording.
    async fn prepare(&mut self, method: &str, response: &Value) {
        if method != "GET" {
            self.world.expect_write(response);
            return;
        }
        // An object that no cache has is known only from this response.
        let is_object = response["metadata"]["uid"].is_string();
        let kind = response["kind"].as_str().unwrap_or_default().to_lowercase();
        let is_cached = self.cached.iter().any(|resource| resource.starts_with(&kind));
        if is_object && !is_cached {
            // If the server does not have the kind, the request fails, and that is reported.
            let _ = self.world.restore(response.clone()).await;
        }
    }

    /// Lets the server execute a request, and compares the status.
    async fn execute(&mut self, turn: u64, arrived: Arrived, expected: Option<u16>) {
        let request = format!("{} {}", arrived.method, arrived.path);
        let Some(running) = self.running.get(&turn) else { return };
        let (id, index) = (running.id, running.index);
        self.gate.take_executed(id);
        arrived.decide(Verdict::Execute);
        settle().await;
        let found = self.gate.take_executed(id).first().map(|executed| executed.status);
        let shown = found.map_or_else(|| "no response".to_owned(), |status| status.to_string());
        self.report.turns[index].requests.push(format!("{request} {shown}"));
        if let Some(expected) = expected.filter(|expected| Some(*expected) != found) {
            self.differ(DifferenceKind::Response, format!("{request} received {shown}, recorded: {expected}"));
        }
    }

    /// Waits for a request of a reconcile. Retries of a request that failed receive the same failure.
    async fn arrive(&mut self, turn: u64, method: &str, path: &str) -> Option<Arrived> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let running = self.running.get(&turn)?;
            match self.gate.take(running.id, |arrived| fits(arrived, method, path)) {
                Some(arrived) => match &running.failure {
                    Some((method_before, path_before, code, status))
                        if fits(&arrived, method_before, path_before)
                            && (method_before, path_before) != (&method.to_owned(), &path.to_owned()) =>
                    {
                        arrived.decide(Verdict::Respond(*code, status.clone()));
                    }
                    _ => return Some(arrived),
                },
                None if running.task.is_finished() || Instant::now() > deadline => return None,
                None => {}
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Waits for the end of a reconcile.
    async fn end(&mut self, turn: u64, expected: &TurnEnd) {
        let deadline = Instant::now() + PATIENCE;
        while let Some(running) = self.running.get(&turn).filter(|running| !running.task.is_finished()) {
            if let Some(arrived) = self.gate.take(running.id, |_| true) {
                match &running.failure {
                    Some((method, path, code, status)) if fits(&arrived, method, path) => {
                        arrived.decide(Verdict::Respond(*code, status.clone()));
                    }
                    _ => {
                        let found = format!("{} {}", arrived.method, arrived.path);
                        self.differ(
                            DifferenceKind::AlsoSent,
                            format!("{} sent {found}, which it did not before", self.name_of(turn)),
                        );
                        self.execute(turn, arrived, None).await;
                    }
                }
            }
            if Instant::now() > deadline {
                break;
            }
            tokio::time::sleep(TICK).await;
        }
        let Some(Running { task, index, reasons, is_imposed, .. }) = self.running.remove(&turn) else { return };
        let name = self.report.turns[index].key.to_string();
        if !task.is_finished() {
            task.abort();
            return self
                .differ(DifferenceKind::End, format!("the reconcile of {name} did not end, recorded: {expected}"));
        }
        // The reconciler's panics are caught: only an aborted task has no report.
        let Ok(report) = task.await else { return };
        self.report.turns[index].end = Some(report.end.clone());
        let found: Vec<StepReason> = report.reasons.iter().map(StepReason::from).collect();
        if !is_imposed && !is_same_reasons(&reasons, &found) {
            let expected = reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let message =
                format!("the reconcile of {name} had the reasons [{}], recorded: [{expected}]", report.reasons);
            self.differ(DifferenceKind::Reasons, message);
        }
        if !is_same_end(expected, &report.end) {
            let message = format!("the reconcile of {name} ended: {}, recorded: {expected}", report.end);
            self.differ(DifferenceKind::End, message);
        }
    }

    fn stepper(&self, controller: &str) -> Result<&Stepper, Error> {
        self.controllers.get(controller).ok_or_else(|| {
            let message =
                format!("the recording has a controller {controller:?} that was not added: call `replay.controller(&{controller})`");
            Error::new(ErrorKind::Invalid, message)
        })
    }

    fn name_of(&self, turn: u64) -> String {
        let running = self.running.get(&turn);
        running.map_or_else(String::new, |running| format!("the reconcile of {}", self.report.turns[running.index].key))
    }

    /// Prints an entry, and the differences that it has brought.
    fn print(&self, entry: &Entry, known: usize) {
        let mut lines = format!("{entry}\n");
        for difference in &self.report.differences[known..] {
            lines.push_str(&format!("              DIFFERENT: {}\n", difference.message));
        }
        // The report has the same differences.
        let _ = std::io::stderr().write_all(lines.as_bytes());
    }

    fn differ(&mut self, kind: DifferenceKind, message: String) {
        self.report.differences.push(Difference { line: self.line, kind, message });
    }
}

/// Returns key and version of the object that a line changes.
fn change_of(line: &Line) -> Option<(ObjectKey, u64)> {
    let Step::Object { change, object, .. } = &line.entry.step else { return None };
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    let version = text("resourceVersion").parse().ok().filter(|_| *change != Change::Found)?;
    Some((ObjectKey::namespaced(text("namespace"), text("name")), version))
}

/// One of the handlers of a controller: each of them handles changes in order.
type Handler = (String, Option<String>, bool);

fn handler_of(controller: &str, key: &ObjectKey, reason: &StepReason) -> Handler {
    // The handler of the controller's own kind and that of owned objects may have the same resource.
    (controller.to_owned(), reason.source.clone(), reason.object.as_ref() == Some(key))
}

/// Waits until every task waits: a paused clock moves only then.
async fn settle() {
    tokio::time::sleep(TICK).await;
}

fn fits(arrived: &Arrived, method: &str, path: &str) -> bool {
    arrived.method == method && arrived.path == path
}

fn is_same_reasons(expected: &[StepReason], found: &[StepReason]) -> bool {
    let within = |these: &[StepReason], those: &[StepReason]| {
        these.iter().all(|this| those.iter().any(|that| this.is_same_event(that)))
    };
    within(expected, found) && within(found, expected)
}

/// Compares ends. Long numbers in messages, such as versions and times, do not count.
fn is_same_end(expected: &TurnEnd, found: &TurnEnd) -> bool {
    match (expected, found) {
        (TurnEnd::Failed { error: expected }, TurnEnd::Failed { error: found }) => {
            without_numbers(expected) == without_numbers(found)
        }
        _ => expected == found,
    }
}

fn without_numbers(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut digits = String::new();
    for character in text.chars().chain(std::iter::once('\0')) {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        shown.push_str(if digits.len() > 3 { "#" } else { &digits });
        digits.clear();
        shown.push(character);
    }
    shown
}

/// Compares bodies. Times do not count, and neither do resource versions, which differ as soon as something else does.
fn is_same_json(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            names.into_iter().all(|name| {
                let (expected, found) =
                    (expected.get(name).unwrap_or(&Value::Null), found.get(name).unwrap_or(&Value::Null));
                name == "resourceVersion" || is_same_json(expected, found)
            })
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| is_same_json(expected, found))
        }
        (Value::String(expected), Value::String(found)) => expected == found || (is_time(expected) && is_time(found)),
        _ => expected == found || (is_zero(expected) && is_zero(found)),
    }
}

/// Returns whether a value is one that some encoders leave out.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
        Value::Bool(true) => false,
    }
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.parse::<jiff::Timestamp>().is_ok()
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("left", &self.lines.len()).field("report", &self.report).finish_non_exhaustive()
    }
}

/// The smallest step of a paused clock.
const TICK: Duration = Duration::from_millis(1);
/// How long a reconcile may take for its next request, on the paused clock.
const PATIENCE: Duration = Duration::from_secs(600);

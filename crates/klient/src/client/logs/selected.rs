//! The logs of all pods that a selector matches, merged by time.

use std::{
    collections::HashSet,
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream as _;
use k8s_openapi::api::core::v1::Pod;
use klient_core::LogOptions;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    line::LogLine,
    lines::{LogLines, statuses},
};
use crate::{Api, Error, ErrorKind, SharedInformer, informer::EventStream};

/// The logs of all pods that a selector matches. See [`Api::logs_of`](crate::Api::logs_of).
///
/// Lines of one container are in order. Lines of several are merged by the times at which they were written, as far as they arrive within
/// a tenth of a second.
#[must_use = "logs are read with `next`"]
pub struct SelectedLogs {
    pods: Api<Pod>,
    labels: String,
    options: LogOptions,
    containers: Option<HashSet<String>>,
    max_streams: usize,
    running: Option<Running>,
}

struct Running {
    sources: Vec<Source>,
    /// The containers whose logs were requested: UID of the pod and name.
    known: HashSet<(String, String)>,
    /// Dropped with the logs, which ends all requests.
    readers: JoinSet<()>,
    /// New pods, if the logs are followed.
    informer: Option<(SharedInformer<Pod>, EventStream<Pod>)>,
}

/// The log of one container.
struct Source {
    lines: mpsc::Receiver<Result<LogLine, Error>>,
    /// The next line, and when it arrived.
    head: Option<(Result<LogLine, Error>, Instant)>,
    is_ended: bool,
}

impl SelectedLogs {
    pub(in crate::client) fn new(pods: Api<Pod>, labels: String) -> Self {
        let options = LogOptions::default();
        Self { pods, labels, options, containers: None, max_streams: MAX_STREAMS, running: None }
    }

    /// Keeps reading what the containers write, and the logs of pods that come.
    pub fn follow(mut self) -> Self {
        self.options.follow = true;
        self
    }

    /// Reads only so many lines from the end of each log.
    pub fn tail_lines(mut self, lines: u64) -> Self {
        self.options = self.options.tail_lines(lines);
        self
    }

    /// Reads only lines that are at most this old.
    pub fn since(mut self, age: Duration) -> Self {
        self.options = self.options.since(age);
        self
    }

    /// Reads the logs of the containers' previous runs.
    pub fn previous(mut self) -> Self {
        self.options = self.options.previous();
        self
    }

    /// Reads the logs of these containers only.
    pub fn containers(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.containers = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets how many logs are read at a time: 50 by default. More are an error, because each is a connection's stream to a kubelet.
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.max_streams = streams;
        self
    }

    /// Returns the next line. Without [`follow`](Self::follow), `None` means that all logs were read to their ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the pods cannot be listed, or if there are too many. The error of one log names its container, and is given out
    /// once; the others go on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no line.
    pub async fn next(&mut self) -> Result<Option<LogLine>, Error> {
        if self.running.is_none() {
            self.start().await?;
        }
        loop {
            let Self { running: Some(running), .. } = self else { return Ok(None) };
            let step = running.step().await;
            match step {
                Step::Line(line) => return line.map(Some),
                Step::Pod(pod) => self.read(&pod)?,
                Step::End => return Ok(None),
            }
        }
    }

    async fn start(&mut self) -> Result<(), Error> {
        let mut running =
            Running { sources: Vec::new(), known: HashSet::new(), readers: JoinSet::new(), informer: None };
        if self.options.follow {
            let informer = SharedInformer::builder(self.pods.clone()).labels(&self.labels).build();
            let events = informer.events();
            informer.start();
            running.informer = Some((informer, events));
            self.running = Some(running);
            return Ok(());
        }
        let pods = self.pods.list().labels(&self.labels).await?;
        self.running = Some(running);
        for pod in &pods {
            self.read(pod)?;
        }
        Ok(())
    }

    /// Starts to read the logs of a pod's containers that have started and are not read yet.
    fn read(&mut self, pod: &Pod) -> Result<(), Error> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let (name, uid) = (pod.metadata.name.as_deref().unwrap_or_default(), pod.metadata.uid.clone());
        for status in statuses(pod) {
            let is_wanted = self.containers.as_ref().is_none_or(|wanted| wanted.contains(&status.name));
            let state = status.state.as_ref();
            let has_started = status.restart_count > 0
                || state.is_some_and(|state| state.running.is_some() || state.terminated.is_some());
            if !is_wanted
                || !has_started
                || !running.known.insert((uid.clone().unwrap_or_default(), status.name.clone()))
            {
                continue;
            }
            if running.sources.len() >= self.max_streams {
                let message = format!(
                    "more than {} containers match {:?}: choose fewer, or raise the limit with `max_streams`",
                    self.max_streams, self.labels
                );
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            let pods = match pod.metadata.namespace.as_deref() {
                Some(namespace) => Api::namespaced(self.pods.client().clone(), namespace),
                None => self.pods.clone(),
            };
            let options = self.options.clone().container(&status.name);
            let mut lines = LogLines::new(pods, name, options);
            let (sender, receiver) = mpsc::channel(BUFFERED);
            let what = format!("cannot read the log of container {} of pod {name}", status.name);
            running.readers.spawn(async move {
                while let Some(line) = lines.next().await.transpose() {
                    let is_error = line.is_err();
                    let line = line.map_err(|error| {
                        let message = format!("{what}: {error}");
                        error.context(message)
                    });
                    if sender.send(line).await.is_err() || is_error {
                        return;
                    }
                }
            });
            running.sources.push(Source { lines: receiver, head: None, is_ended: false });
        }
        Ok(())
    }
}

enum Step {
    Line(Result<LogLine, Error>),
    Pod(Box<Pod>),
    End,
}

impl Running {
    /// Waits for a line or a pod.
    async fn step(&mut self) -> Step {
        loop {
            let held_until = self.sources.iter().filter_map(|source| Some(source.head.as_ref()?.1 + HOLD)).min();
            let mut timer = pin!(sleep_until(held_until.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600))));
            let found = poll_fn(|context| {
                self.receive(context);
                if let Some(line) = self.first(Instant::now()) {
                    return Poll::Ready(Some(Step::Line(line)));
                }
                if let Some((_, events)) = &mut self.informer {
                    if let Poll::Ready(event) = Pin::new(events).poll_next(context) {
                        return Poll::Ready(Some(event.map_or(Step::End, |event| {
                            event
                                .object()
                                .decode()
                                .map_or(Step::Pod(Box::default()), |pod| Step::Pod(Box::new((*pod).clone())))
                        })));
                    }
                } else if self.sources.is_empty() {
                    return Poll::Ready(Some(Step::End));
                }
                timer.as_mut().poll(context).map(|()| None)
            })
            .await;
            if let Some(step) = found {
                return step;
            }
        }
    }

    /// Fills the heads of sources that have a line.
    fn receive(&mut self, context: &mut Context<'_>) {
        for source in self.sources.iter_mut().filter(|source| source.head.is_none() && !source.is_ended) {
            match source.lines.poll_recv(context) {
                Poll::Ready(Some(line)) => source.head = Some((line, Instant::now())),
                Poll::Ready(None) => source.is_ended = true,
                Poll::Pending => {}
            }
        }
        self.sources.retain(|source| source.head.is_some() || !source.is_ended);
    }

    /// Takes the oldest line, if no older one can be expected.
    fn first(&mut self, now: Instant) -> Option<Result<LogLine, Error>> {
        let is_complete = self.sources.iter().all(|source| source.head.is_some());
        let heads = self.sources.iter_mut().filter(|source| source.head.is_some());
        // Errors and lines without a time come first, so that they hold nothing up.
        let source = heads.min_by_key(|source| match &source.head {
            Some((Ok(line), _)) => line.time,
            _ => None,
        })?;
        let is_due = source.head.as_ref().is_some_and(|(_, arrived)| now >= *arrived + HOLD);
        if is_complete || is_due { source.head.take().map(|(line, _)| line) } else { None }
    }
}

impl fmt::Debug for SelectedLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectedLogs").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// The number of logs that are read at a time.
const MAX_STREAMS: usize = 50;
/// The number of lines of one log that wait to be merged.
const BUFFERED: usize = 64;
/// How long a line waits for older ones of other logs.
const HOLD: Duration = Duration::from_millis(100);

//! The lines of one container's log, through reconnects and restarts.

use std::{fmt, sync::Arc, time::Duration};

use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use klient_core::LogOptions;
use tokio::time::sleep;

use super::{
    line::{LogLine, split},
    place::{Place, Repeated, Verdict},
};
use crate::{
    Api, Error, ErrorKind,
    client::LogStream,
    retry::{Backoff, Delays},
};

/// The lines of a container's log. See [`Logs::lines`](crate::client::verbs::Logs::lines).
///
/// A log that is followed survives broken connections, the limits of kubelets and proxies, and restarts of the container, without losing or
/// repeating a line. It ends when the container does not run again: the pod has finished, or is gone. Lines that the kubelet does not
/// have any more are lost; the next line says so ([`LogLine::is_after_gap`]).
pub struct LogLines {
    pods: Api<Pod>,
    pod: Arc<str>,
    container: Arc<str>,
    options: LogOptions,
    /// The UID of the pod, and how often the container had restarted, when the log was requested last.
    known: Option<Known>,
    state: State,
    place: Option<Place>,
    repeated: Option<Repeated>,
    is_gap: bool,
    /// The last line of a stream, without its end.
    part: Option<String>,
    delays: Option<Delays>,
}

#[derive(Clone, Debug)]
struct Known {
    uid: Option<String>,
    restarts: i32,
}

enum State {
    /// A log is requested next.
    Closed(Run),
    Open(Run, LogStream),
    /// The stream ended, by an error or not.
    Ended(Option<Error>),
    Done,
}

/// A run of the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Current,
    /// The one before, of which the end is missing.
    Previous,
    /// The current one, which has ended: there is nothing to follow.
    Last,
}

/// The step after the end of a stream.
enum Next {
    Read(Run),
    Wait,
    Stop,
}

impl LogLines {
    pub(in crate::client) fn new(pods: Api<Pod>, pod: &str, options: LogOptions) -> Self {
        let container = options.container.clone().unwrap_or_default();
        Self {
            pods,
            pod: pod.into(),
            container: container.into(),
            options,
            known: None,
            state: State::Closed(Run::Current),
            place: None,
            repeated: None,
            is_gap: false,
            part: None,
            delays: None,
        }
    }

    /// Returns the next line, or `None` at the end of the log.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such pod or container, or if the server refuses the request. Broken connections are errors only if
    /// the log is not followed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no line.
    pub async fn next(&mut self) -> Result<Option<LogLine>, Error> {
        loop {
            match &mut self.state {
                State::Closed(run) => {
                    let run = *run;
                    self.open(run).await?;
                }
                State::Open(run, stream) => match stream.piece().await {
                    // A line without an end may be the last one of the container, or cut off.
                    Ok(Some((part, false))) if self.options.follow && *run == Run::Current => {
                        self.part = Some(part);
                        self.state = State::Ended(None);
                    }
                    Ok(Some((text, _))) => {
                        if let Some(line) = self.take(&text) {
                            return Ok(Some(line));
                        }
                    }
                    Ok(None) if *run == Run::Previous => {
                        // The next run has a log of its own.
                        self.place = None;
                        self.state = State::Closed(Run::Current);
                    }
                    Ok(None) if *run == Run::Last => self.state = State::Done,
                    Ok(None) => self.state = State::Ended(None),
                    Err(error) => self.state = State::Ended(Some(error)),
                },
                State::Ended(error) => {
                    if !self.options.follow {
                        let error = error.take();
                        self.state = State::Done;
                        return error.map_or(Ok(None), Err);
                    }
                    let is_broken = error.is_some();
                    match self.next_step(is_broken).await? {
                        // A line that was cut off is read again.
                        Next::Read(run) => {
                            self.part = None;
                            self.state = State::Closed(run);
                        }
                        Next::Wait => self.pause().await,
                        Next::Stop => {
                            self.state = State::Done;
                            if let Some(line) = self.part.take().and_then(|part| self.take(&part)) {
                                return Ok(Some(line));
                            }
                        }
                    }
                }
                State::Done => return Ok(None),
            }
        }
    }

    /// Requests the log.
    async fn open(&mut self, run: Run) -> Result<(), Error> {
        if self.known.is_none() {
            let pod = self.pods.get(&self.pod).await?;
            if self.container.is_empty() {
                self.container = default_container(&pod).ok_or_else(|| self.problem("has no containers"))?.into();
            }
            let restarts = self.status_in(&pod).map_or(0, |status| status.restart_count);
            self.known = Some(Known { uid: pod.metadata.uid, restarts });
        }
        let mut options = self.options.clone();
        options.container = Some(self.container.to_string());
        options.timestamps = true;
        if let Some(place) = self.place {
            options.since = None;
            options.tail_lines = None;
            options.since_time = Some(Time(place.since()));
        }
        match run {
            Run::Current => {}
            Run::Previous => {
                options.previous = true;
                options.follow = false;
            }
            Run::Last => options.follow = false,
        }
        match self.pods.logs(&self.pod).options(options).stream().await {
            Ok(stream) => {
                self.repeated = self.place.map(Place::repeated);
                self.state = State::Open(run, stream);
                Ok(())
            }
            // The kubelet has no log of the run before: it was collected.
            Err(_) if run == Run::Previous => {
                self.is_gap = true;
                self.state = State::Closed(Run::Current);
                Ok(())
            }
            Err(error) if self.place.is_some() && may_pass(&error) => {
                self.state = State::Ended(Some(error));
                self.pause().await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns a line, unless it was given out before.
    fn take(&mut self, text: &str) -> Option<LogLine> {
        let (time, text) = split(text);
        if let Some(repeated) = &mut self.repeated {
            match repeated.judge(time) {
                Verdict::Repeated => return None,
                Verdict::New => {}
                Verdict::NewAfterGap => self.is_gap = true,
            }
            self.repeated = None;
        }
        if let Some(time) = time {
            self.place = Some(Place::after(self.place, time));
        }
        self.delays = None;
        Some(LogLine {
            pod: Arc::clone(&self.pod),
            container: Arc::clone(&self.container),
            time,
            text: text.to_owned(),
            is_after_gap: std::mem::take(&mut self.is_gap),
        })
    }

    /// Decides what follows the end of a stream.
    async fn next_step(&mut self, is_broken: bool) -> Result<Next, Error> {
        let pod = match self.pods.get_opt(&self.pod).await {
            Ok(Some(pod)) => pod,
            Ok(None) => return Ok(Next::Stop),
            Err(error) if may_pass(&error) => return Ok(Next::Wait),
            Err(error) => return Err(error),
        };
        let known = self.known.clone().unwrap_or(Known { uid: None, restarts: 0 });
        if pod.metadata.uid != known.uid {
            return Ok(Next::Stop);
        }
        let is_finished = matches!(phase(&pod), Some("Succeeded" | "Failed"));
        let Some(status) = self.status_in(&pod) else {
            // Nothing runs it, as far as the pod tells.
            return Ok(if is_broken { Next::Read(Run::Current) } else { Next::Stop });
        };
        let restarts = status.restart_count;
        if restarts > known.restarts {
            self.known = Some(Known { restarts, ..known });
            if is_broken && restarts == known.restarts + 1 {
                return Ok(Next::Read(Run::Previous));
            }
            // The end of the last run was read, unless the connection broke.
            self.is_gap |= is_broken || restarts > known.restarts + 1;
            self.place = self.place.filter(|_| is_broken);
            return Ok(Next::Read(if is_finished { Run::Last } else { Run::Current }));
        }
        let is_running = status.state.as_ref().is_some_and(|state| state.running.is_some());
        Ok(match (is_running, is_finished, is_broken) {
            // A kubelet ends a stream after some hours, and a proxy sooner.
            (true, ..) => {
                self.pause().await;
                Next::Read(Run::Current)
            }
            (false, true, true) => Next::Read(Run::Last),
            (false, true, false) => Next::Stop,
            // It has ended and may run again.
            (false, false, _) => Next::Wait,
        })
    }

    /// Waits before the next request, for longer each time until a line arrives.
    async fn pause(&mut self) {
        let backoff = || Backoff::growing().first(Duration::from_millis(200)).max(Duration::from_secs(10)).delays();
        let delay = self.delays.get_or_insert_with(backoff).next().unwrap_or(Duration::from_secs(10));
        sleep(delay).await;
    }

    fn status_in<'a>(&self, pod: &'a Pod) -> Option<&'a ContainerStatus> {
        statuses(pod).find(|status| status.name == *self.container)
    }

    fn problem(&self, what: &str) -> Error {
        Error::new(ErrorKind::Invalid, format!("pod {} {what}", self.pod))
    }
}

impl fmt::Debug for LogLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLines").field("pod", &self.pod).field("container", &self.container).finish_non_exhaustive()
    }
}

/// Returns the states of all containers.
pub(super) fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let lists = pod.status.as_ref().map(|status| {
        [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses]
    });
    lists.into_iter().flatten().flatten().flatten()
}

/// Returns the container that is meant if none is named: that of the annotation, or else the first.
fn default_container(pod: &Pod) -> Option<&str> {
    let annotated = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(DEFAULT_CONTAINER));
    let first = || pod.spec.as_ref()?.containers.first().map(|container| &container.name);
    annotated.or_else(first).map(String::as_str)
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Returns whether a later request may succeed.
fn may_pass(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Transport | ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::TooManyRequests
    )
}

/// The annotation that names the container that tools use by default.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

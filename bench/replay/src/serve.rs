//! Responses: a thread per connection, and changes that begin on request.

use std::{
    io::BufReader,
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::Result;

use crate::{
    fleet::{Fleet, Form},
    http::{self, Chunked, Request},
};

const PODS: &str = "/api/v1/namespaces/fleet/pods";
const ROLLOUTS: &str = "/apis/bench.klient.invalid/v1/namespaces/fleet/rollouts";
/// The path that makes one watch, now or as soon as there is one, send the changes.
const CHANGE: &str = "/replay/change";
/// The path that ends one watch and rejects the next as expired: the client has to list again, and finds that one object
/// has changed.
const EXPIRE: &str = "/replay/expire";
/// The number of objects of a list per chunk.
const CHUNK: usize = 8;
/// The interval at which an idle watch checks that its client is connected.
const LOOK: Duration = Duration::from_millis(200);
/// The timeout of a watch whose client requests none.
const WATCH: Duration = Duration::from_secs(1800);

pub(crate) struct Server {
    fleet: Fleet,
    due: Mutex<Due>,
    changed: Condvar,
}

/// Requests that were not carried out yet.
#[derive(Default)]
struct Due {
    /// The number of watches that may send the changes.
    changes: usize,
    /// The number of watches to end.
    ends: usize,
    /// The number of watches to refuse as too old.
    refusals: usize,
}

/// The next step of a watch.
#[derive(PartialEq)]
enum Next {
    Change,
    End,
}

impl Server {
    pub(crate) fn new(fleet: Fleet) -> Self {
        Self { fleet, due: Mutex::default(), changed: Condvar::new() }
    }

    /// Serves for as long as the process lives.
    pub(crate) fn accept(self: Arc<Self>, listener: &TcpListener) -> Result<()> {
        loop {
            let (stream, _) = listener.accept()?;
            let server = Arc::clone(&self);
            thread::spawn(move || {
                // A client may disconnect during a response.
                let _ = server.converse(stream);
            });
        }
    }

    fn converse(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut from = BufReader::new(stream.try_clone()?);
        while let Some(request) = Request::read(&mut from)? {
            self.answer(&request, &mut stream)?;
            if request.closes() {
                break;
            }
        }
        Ok(())
    }

    fn answer(&self, request: &Request, to: &mut TcpStream) -> Result<()> {
        let (form, content_type) = match request.path.as_str() {
            ROLLOUTS => (Form::Custom, "application/json"),
            _ if request.accepts("application/vnd.kubernetes.protobuf") => {
                (Form::Protobuf, "application/vnd.kubernetes.protobuf")
            }
            _ => (Form::Json, "application/json"),
        };
        let number = request.path.strip_prefix(PODS).and_then(|rest| rest.strip_prefix("/web-")?.parse().ok());
        match (request.method.as_str(), request.path.as_str(), number) {
            ("GET", PODS | ROLLOUTS, _) if request.has("watch") => self.watch(request, form, to),
            ("GET", PODS | ROLLOUTS, _) => self.list(request, form, content_type, to),
            ("GET", _, Some(number)) if number < self.fleet.size => {
                http::whole(to, "200 OK", content_type, &self.fleet.object(form, number))
            }
            ("POST", CHANGE, _) => self.order(to, |due| due.changes += 1),
            ("POST", EXPIRE, _) => self.order(to, |due| {
                due.ends += 1;
                due.refusals += 1;
                self.fleet.unseen.fetch_add(1, Ordering::Relaxed);
            }),
            ("GET", "/readyz" | "/healthz", _) => http::whole(to, "200 OK", "text/plain", b"ok"),
            _ => {
                let body = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
                http::whole(to, "404 Not Found", "application/json", body)
            }
        }
    }

    /// Records a control request.
    fn order(&self, to: &mut TcpStream, change: impl FnOnce(&mut Due)) -> Result<()> {
        change(&mut self.due());
        self.changed.notify_all();
        http::whole(to, "200 OK", "text/plain", b"ok")
    }

    /// Returns whether a watch from a version is rejected.
    fn is_too_old(&self, request: &Request) -> bool {
        let mut due = self.due();
        let refused = due.refusals > 0 && due.ends == 0 && !request.has("sendInitialEvents");
        due.refusals -= usize::from(refused);
        refused
    }

    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list(&self, request: &Request, form: Form, content_type: &str, to: &mut TcpStream) -> Result<()> {
        let number = |name: &str| request.parameter(name).and_then(|value| value.parse::<usize>().ok());
        // The real server does not split lists from its cache into pages.
        let any_version = request.parameter("resourceVersion") == Some("0");
        let limit = number("limit").filter(|limit| *limit > 0 && !any_version);
        let page = self.fleet.page(number("continue").unwrap_or_default(), limit);
        let mut answer = Chunked::new(to, content_type);
        answer.chunk(|out| out.extend_from_slice(&self.fleet.list_head(form, &page)))?;
        for first in (page.first..page.end).step_by(CHUNK) {
            let numbers = first..page.end.min(first + CHUNK);
            answer.chunk(|out| numbers.for_each(|number| self.fleet.item(form, &page, number, out)))?;
        }
        answer.chunk(|out| out.extend_from_slice(Fleet::list_tail(form)))?;
        answer.end()
    }

    /// As on HTTP/1.1 to the real server, each event is a chunk. Those that are due at a time are written together.
    fn watch(&self, request: &Request, form: Form, to: &mut TcpStream) -> Result<()> {
        let seconds = request.parameter("timeoutSeconds").and_then(|seconds| seconds.parse().ok());
        let end = Instant::now() + seconds.map_or(WATCH, Duration::from_secs);
        let content_type = match form {
            Form::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Form::Json | Form::Custom => "application/json",
        };
        let mut answer = Chunked::new(to, content_type);
        if self.is_too_old(request) {
            // The real server sends this error in the body, too.
            answer.chunk(|out| Fleet::expired(form, out))?;
            return answer.end();
        }
        if request.has("sendInitialEvents") {
            for number in 0..self.fleet.size {
                answer.chunk(|out| self.fleet.added(form, number, out))?;
            }
            answer.chunk(|out| self.fleet.end(form, out))?;
        }
        answer.flush()?;
        while self.wait_until_due(&answer, end)? == Next::Change {
            let begun = SystemTime::now();
            for number in 0..self.fleet.changes(form) {
                let mut at = SystemTime::now();
                if let Some(pace) = self.fleet.pace {
                    answer.flush()?;
                    // Latencies count from the scheduled time, also for a client that reads late.
                    let due = begun + Duration::from_secs(1) * u32::try_from(number)? / pace;
                    thread::sleep(due.duration_since(at).unwrap_or_default());
                    at = due;
                }
                answer.chunk(|out| self.fleet.modified(form, number, at, out))?;
            }
            answer.flush()?;
        }
        answer.end()
    }

    /// Waits until this watch may send the changes, or ends: by its timeout, its client or a control request.
    fn wait_until_due(&self, answer: &Chunked<'_>, end: Instant) -> Result<Next> {
        let mut due = self.due();
        loop {
            if Instant::now() >= end || answer.is_abandoned()? {
                return Ok(Next::End);
            }
            if due.changes > 0 {
                due.changes -= 1;
                return Ok(Next::Change);
            }
            if due.ends > 0 {
                due.ends -= 1;
                return Ok(Next::End);
            }
            due = self.changed.wait_timeout(due, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

//! `JOB --kubeconfig FILE --object FILE [--count N] [--size N] [--concurrency N] [--since VERSION] [--replay ADDRESS]
//! [--recording FOLDER] [--started NANOSECONDS] [--slow PERCENT] [--attached yes]`.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Pod;

use crate::mark;

/// The job that a program does, and its parameters.
pub struct Arguments {
    pub job: Job,
    pub kubeconfig: PathBuf,
    /// The JSON file of the pod that is the template of all objects.
    pub object: PathBuf,
    /// The number of repetitions.
    pub count: usize,
    /// The number of objects in the fleet.
    pub size: usize,
    /// The number of concurrent requests.
    pub concurrency: usize,
    /// The resource version after which a watch starts.
    pub since: String,
    /// The address of the replay server, or of the other program that a job of streams needs.
    pub replay: String,
    /// The folder for the recording that the replay server reads.
    pub recording: PathBuf,
    /// When this process was started, in nanoseconds of Unix time.
    pub started: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Creates the fleet. Not measured; `bench-fleet` does it.
    Fill,
    /// Creates a kind and custom resources of it. Not measured; `bench-fleet` does it.
    FillCustom,
    /// Changes objects of the fleet, for watches to see. Not measured; `bench-fleet` does it.
    Touch,
    /// Records responses for the replay server. Not measured; `bench-fleet` does it.
    Record,
    /// Creates a node of a kubelet, and a pod on it. Not measured; `bench-fleet` does it.
    FillStreams,
    Get,
    Create,
    List,
    /// A list for callers who want the managed fields.
    ListManaged,
    Patch,
    /// Events of which only the key is used.
    WatchKeys,
    /// Events of which the object is used.
    WatchTyped,
    /// A cache of the whole fleet, until it is complete.
    Sync,
    /// The same by a list, whatever the library does by itself.
    SyncList,
    /// The same by a watch that begins with the state.
    SyncWatchList,
    /// The same, with every object decoded.
    SyncDecoded,
    /// A cache of all custom resources, until it is complete.
    SyncCustom,
    /// Events on their way through an informer to a handler that takes the key.
    InformerEvents,
    /// Events of the replay server on their way through an informer to a handler that takes the key.
    Events,
    /// The same, with a handler that uses the object.
    EventsTyped,
    /// From the start of the process to a cache that is complete.
    Cold,
    /// A whole controller, from changes on the replay server to the end of their reconciles.
    Controller,
    /// Reads of single objects by their keys. Needs no server.
    ReadKey,
    /// The same, of which the object is used. Needs no server.
    ReadTyped,
    /// The first while another thread writes. Needs no server.
    ReadKeyWrites,
    /// Reads of 20 objects by an index value. Needs no server.
    ReadIndex,
    /// The same while another thread writes. Needs no server.
    ReadIndexWrites,
    /// Lookups of 20 objects by an index value.
    Index,
    /// The whole state read again, after the replay server has ended the watch and refused to go on with it.
    Expire,
    /// Keys through a work queue. Needs no server.
    Queue,
    /// Many keys at once through a work queue. Needs no server.
    QueueBurst,
    /// Keys through a delay and the rate limit after a failure. Needs no server.
    QueueDelayed,
    /// The output of a process in a container.
    ExecRead,
    /// The input of a process in a container.
    ExecWrite,
    /// The first over SPDY.
    ExecReadSpdy,
    /// The second over SPDY.
    ExecWriteSpdy,
    /// Bytes from a forwarded port.
    ForwardRead,
    /// Bytes to a forwarded port.
    ForwardWrite,
    /// Short requests and responses, one after the other, through a forwarded port.
    ForwardTurns,
}

impl Job {
    const ALL: [Self; 39] = [
        Self::Fill,
        Self::FillCustom,
        Self::Touch,
        Self::Record,
        Self::FillStreams,
        Self::Get,
        Self::Create,
        Self::List,
        Self::ListManaged,
        Self::Patch,
        Self::WatchKeys,
        Self::WatchTyped,
        Self::Sync,
        Self::SyncList,
        Self::SyncWatchList,
        Self::SyncDecoded,
        Self::SyncCustom,
        Self::InformerEvents,
        Self::Events,
        Self::EventsTyped,
        Self::Cold,
        Self::Controller,
        Self::ReadKey,
        Self::ReadTyped,
        Self::ReadKeyWrites,
        Self::ReadIndex,
        Self::ReadIndexWrites,
        Self::Index,
        Self::Expire,
        Self::Queue,
        Self::QueueBurst,
        Self::QueueDelayed,
        Self::ExecRead,
        Self::ExecWrite,
        Self::ExecReadSpdy,
        Self::ExecWriteSpdy,
        Self::ForwardRead,
        Self::ForwardWrite,
        Self::ForwardTurns,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::FillCustom => "fill-custom",
            Self::Touch => "touch",
            Self::Record => "record",
            Self::FillStreams => "fill-streams",
            Self::Get => "get",
            Self::Create => "create",
            Self::List => "list",
            Self::ListManaged => "list-managed",
            Self::Patch => "patch",
            Self::WatchKeys => "watch-keys",
            Self::WatchTyped => "watch-typed",
            Self::Sync => "sync",
            Self::SyncList => "sync-list",
            Self::SyncWatchList => "sync-watch-list",
            Self::SyncDecoded => "sync-decoded",
            Self::SyncCustom => "sync-custom",
            Self::InformerEvents => "informer-events",
            Self::Events => "events",
            Self::EventsTyped => "events-typed",
            Self::Cold => "cold",
            Self::Controller => "controller",
            Self::ReadKey => "read-key",
            Self::ReadTyped => "read-typed",
            Self::ReadKeyWrites => "read-key-writes",
            Self::ReadIndex => "read-index",
            Self::ReadIndexWrites => "read-index-writes",
            Self::Index => "index",
            Self::Expire => "expire",
            Self::Queue => "queue",
            Self::QueueBurst => "queue-burst",
            Self::QueueDelayed => "queue-delayed",
            Self::ExecRead => "exec-read",
            Self::ExecWrite => "exec-write",
            Self::ExecReadSpdy => "exec-read-spdy",
            Self::ExecWriteSpdy => "exec-write-spdy",
            Self::ForwardRead => "forward-read",
            Self::ForwardWrite => "forward-write",
            Self::ForwardTurns => "forward-turns",
        }
    }
}

impl Arguments {
    /// Parses the arguments of this process.
    pub fn of_process() -> Result<Self> {
        let mut words = std::env::args().skip(1);
        let job = words.next().context("no job is given")?;
        let job = Job::ALL.into_iter().find(|known| known.name() == job).with_context(|| format!("no job {job}"))?;
        let mut arguments = Self {
            job,
            kubeconfig: PathBuf::new(),
            object: PathBuf::new(),
            count: 1,
            size: 1,
            concurrency: 1,
            since: String::new(),
            replay: String::new(),
            recording: PathBuf::new(),
            started: 0,
        };
        while let Some(flag) = words.next() {
            let value = words.next().with_context(|| format!("{flag} has no value"))?;
            match flag.as_str() {
                "--kubeconfig" => arguments.kubeconfig = value.into(),
                "--object" => arguments.object = value.into(),
                "--count" => arguments.count = value.parse()?,
                "--size" => arguments.size = value.parse()?,
                "--concurrency" => arguments.concurrency = value.parse()?,
                "--since" => arguments.since = value,
                "--replay" => arguments.replay = value,
                "--recording" => arguments.recording = value.into(),
                "--started" => arguments.started = value.parse()?,
                "--slow" => mark::slow_down(value.parse()?),
                "--attached" => end_with_parent(),
                _ => bail!("no option {flag}"),
            }
        }
        Ok(arguments)
    }

    /// Reads the pod that is the template of all objects, including its status.
    pub fn pod(&self) -> Result<Pod> {
        let text = std::fs::read(&self.object).with_context(|| self.object.display().to_string())?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// The numbers of the requests that each worker sends.
    pub fn shares(&self) -> Vec<Vec<usize>> {
        let share = |worker| (worker..self.count).step_by(self.concurrency).collect();
        (0..self.concurrency).map(share).collect()
    }
}

/// Ends this process when its standard input does: the process that started it holds the other end.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

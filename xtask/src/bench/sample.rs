//! One run of one program, and what it printed.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{job::Job, program::Library};
use crate::run::output;

/// What a program is asked to do.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) job: &'a str,
    pub(super) kubeconfig: &'a Path,
    pub(super) object: &'a Path,
    pub(super) count: usize,
    pub(super) size: usize,
    pub(super) concurrency: usize,
    pub(super) since: &'a str,
    /// The address of the replay server.
    pub(super) replay: &'a str,
    /// Where recorded answers go.
    pub(super) recording: &'a Path,
}

impl Default for Call<'_> {
    fn default() -> Self {
        let nowhere = Path::new("");
        Self {
            job: "",
            kubeconfig: nowhere,
            object: nowhere,
            count: 1,
            size: 1,
            concurrency: 1,
            since: "",
            replay: "",
            recording: nowhere,
        }
    }
}

/// What one run took.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) wall_seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) peak_rss_bytes: f64,
    /// What was resident at the moment that the job is about.
    pub(super) rss_bytes: Option<f64>,
    /// What it got, to be compared with what the others got.
    pub(super) answer: String,
}

impl Sample {
    pub(super) fn read(line: &Value) -> Result<Self> {
        let number = |name: &str| line[name].as_f64().with_context(|| format!("no {name} in {line}"));
        Ok(Self {
            wall_seconds: number("wall_seconds")?,
            cpu_seconds: number("cpu_seconds")?,
            peak_rss_bytes: number("peak_rss_bytes")?,
            rss_bytes: line["rss_bytes"].as_f64().filter(|bytes| *bytes > 0.0),
            answer: line["answer"].as_str().context("no answer")?.to_owned(),
        })
    }

    /// How many objects the answer counts.
    pub(super) fn objects(&self) -> Option<usize> {
        self.answer.split(':').next()?.parse().ok()
    }
}

/// All runs of one job.
pub(super) struct Measurement {
    pub(super) job: Job,
    pub(super) count: usize,
    /// How many objects there were.
    pub(super) size: usize,
    /// The samples of each library in the order of repetitions, or why there are none.
    pub(super) samples: Vec<(Library, Result<Vec<Sample>, String>)>,
}

impl Measurement {
    pub(super) fn new(job: Job, count: usize, size: usize) -> Self {
        Self { job, count, size, samples: Library::ALL.map(|library| (library, Ok(Vec::new()))).into() }
    }

    pub(super) fn add(&mut self, library: Library, sample: Sample) {
        if let Ok(samples) = self.of(library) {
            samples.push(sample);
        }
    }

    pub(super) fn missing(&mut self, library: Library, why: &str) {
        *self.of(library) = Err(why.to_owned());
    }

    fn of(&mut self, library: Library) -> &mut Result<Vec<Sample>, String> {
        let place = Library::ALL.iter().position(|known| *known == library).unwrap_or_default();
        &mut self.samples[place].1
    }
}

/// Runs a program; returns the line that it printed.
pub(super) fn run(program: &Path, call: &Call<'_>) -> Result<Value> {
    let (kubeconfig, object) = (call.kubeconfig.to_string_lossy(), call.object.to_string_lossy());
    let (count, size, concurrency) = (call.count.to_string(), call.size.to_string(), call.concurrency.to_string());
    let recording = call.recording.to_string_lossy();
    let mut arguments = vec![
        call.job,
        "--kubeconfig",
        &kubeconfig,
        "--object",
        &object,
        "--count",
        &count,
        "--size",
        &size,
        "--concurrency",
        &concurrency,
        "--since",
        call.since,
    ];
    if !call.replay.is_empty() {
        arguments.extend(["--replay", call.replay]);
    }
    if !recording.is_empty() {
        arguments.extend(["--recording", &recording]);
    }
    let printed = output(Path::new("."), &program.to_string_lossy(), &arguments)?;
    serde_json::from_str(&printed).with_context(|| format!("{} printed {printed:?}", program.display()))
}

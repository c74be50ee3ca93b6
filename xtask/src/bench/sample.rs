//! One run of one program, and its output.

use std::{
    path::Path,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{
    child::{self, Ended, Limits},
    job::Job,
    program::Library,
};

/// The arguments of a program.
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
    /// The folder to write recorded responses to.
    pub(super) recording: &'a Path,
    /// The percentage of additional CPU that the program uses.
    pub(super) slow: Option<usize>,
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
            slow: None,
        }
    }
}

impl Call<'_> {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg(self.job).arg("--kubeconfig").arg(self.kubeconfig).arg("--object").arg(self.object);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        command.args(["--count", &self.count.to_string(), "--size", &self.size.to_string()]);
        command.args(["--concurrency", &self.concurrency.to_string(), "--since", self.since]);
        command.args(["--replay", self.replay, "--started", &now.as_nanos().to_string(), "--attached", "yes"]);
        if self.recording != Path::new("") {
            command.arg("--recording").arg(self.recording);
        }
        if let Some(percent) = self.slow {
            command.args(["--slow", &percent.to_string()]);
        }
        command
    }
}

/// A resource of a run besides time and CPU, for the programs that report it.
pub(super) struct Metric {
    /// The field in the output of the programs.
    pub(super) key: &'static str,
    /// The title of the column. The JSON file has it in lower case, with underscores.
    pub(super) title: &'static str,
    pub(super) measure: Measure,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Megabytes,
    PerOperation,
    PerSecond,
    Plain,
}

pub(super) const METRICS: [Metric; 6] = [
    Metric { key: "rss_bytes", title: "RSS MB", measure: Measure::Megabytes },
    Metric { key: "heap_bytes", title: "heap MB", measure: Measure::Megabytes },
    Metric { key: "allocations", title: "allocations", measure: Measure::PerOperation },
    Metric { key: "latency_p50_microseconds", title: "p50 us", measure: Measure::Plain },
    Metric { key: "latency_p99_microseconds", title: "p99 us", measure: Measure::Plain },
    Metric { key: "writes", title: "writes per second", measure: Measure::PerSecond },
];

/// The resources of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) wall_seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) peak_rss_bytes: f64,
    /// The values of [`METRICS`], in the same order.
    pub(super) more: [Option<f64>; METRICS.len()],
    /// The result, which is compared with those of the other libraries.
    pub(super) answer: String,
}

impl Sample {
    pub(super) fn read(line: &Value, count: usize) -> Result<Self> {
        let number = |name: &str| {
            line[name].as_f64().with_context(|| format!("expected a number `{name}` in the output {line}"))
        };
        let wall_seconds = number("wall_seconds")?;
        let metric = |metric: &Metric| {
            let number = line[metric.key].as_f64().filter(|number| *number > 0.0)?;
            Some(match metric.measure {
                Measure::Megabytes => number / 1e6,
                Measure::PerOperation => number / count as f64,
                Measure::PerSecond => number / wall_seconds,
                Measure::Plain => number,
            })
        };
        Ok(Self {
            wall_seconds,
            cpu_seconds: number("cpu_seconds")?,
            peak_rss_bytes: number("peak_rss_bytes")?,
            more: METRICS.each_ref().map(metric),
            answer: line["answer"].as_str().context("expected a string `answer` in the output")?.to_owned(),
        })
    }

    /// Returns the number of objects in the result.
    pub(super) fn objects(&self) -> Option<usize> {
        self.answer.split(':').next()?.parse().ok()
    }
}

/// All runs of one job.
pub(super) struct Measurement {
    pub(super) job: Job,
    pub(super) count: usize,
    /// The number of objects on the server or in the store.
    pub(super) size: usize,
    /// The samples of each library in the order of repetitions, or the reason for their absence.
    pub(super) samples: Vec<(Library, Result<Vec<Sample>, String>)>,
    /// The output of the programs that count allocations.
    pub(super) counted: Vec<(Library, Sample)>,
    /// The result of the first program. All other programs must have the same result.
    pub(super) answer: Option<String>,
}

impl Measurement {
    pub(super) fn new(job: Job, count: usize, size: usize) -> Self {
        let samples = Library::ALL.map(|library| (library, Ok(Vec::new()))).into();
        Self { job, count, size, samples, counted: Vec::new(), answer: None }
    }

    pub(super) fn add(&mut self, library: Library, sample: Sample) {
        if let Ok(samples) = self.of(library) {
            samples.push(sample);
        }
    }

    /// Records that a library has no samples, with the reason. Its earlier samples are removed.
    pub(super) fn missing(&mut self, library: Library, why: &str) {
        *self.of(library) = Err(why.to_owned());
    }

    pub(super) fn samples_of(&self, library: Library) -> Option<&[Sample]> {
        let (_, samples) = self.samples.iter().find(|(known, _)| *known == library)?;
        samples.as_deref().ok().filter(|samples| !samples.is_empty())
    }

    pub(super) fn is_missing(&self, library: Library) -> bool {
        self.samples.iter().any(|(known, samples)| *known == library && samples.is_err())
    }

    fn of(&mut self, library: Library) -> &mut Result<Vec<Sample>, String> {
        let place = Library::ALL.iter().position(|known| *known == library).unwrap_or_default();
        &mut self.samples[place].1
    }
}

/// Runs a program, and returns the line that it printed.
pub(super) fn run(program: &Path, call: &Call<'_>) -> Result<Value> {
    match measure(program, call, Limits::default())? {
        Some(line) => Ok(line),
        None => bail!("{} {}: too little memory", program.display(), call.job),
    }
}

/// Runs a program with limits, and returns the line that it printed, or `None` if there was too little memory.
pub(super) fn measure(program: &Path, call: &Call<'_>, limits: Limits) -> Result<Option<Value>> {
    let Ended::Printed(printed) = child::run(&mut call.command(program), limits)? else { return Ok(None) };
    serde_json::from_str(&printed)
        .map(Some)
        .with_context(|| format!("expected JSON from {}, but it printed {printed:?}", program.display()))
}

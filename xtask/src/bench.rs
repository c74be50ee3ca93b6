//! Benchmarks: of the wire forms by themselves, and of whole programs beside client-go and kube-rs on the real server.

mod job;
mod options;
mod program;
mod replay;
mod sample;
mod server;
mod table;
mod wire;

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use self::{
    job::{Job, Place},
    options::{Options, Profile},
    program::{Library, Program},
    replay::Replay,
    sample::{Call, Measurement, Sample},
};
pub(crate) use self::{server::compare as servers, wire::wire};
use crate::e2e;

/// Builds the programs, starts the server, runs each job with each library in turn, and prints the ratios.
pub(crate) fn compare(root: &Path, arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    measure(root, &options).map(drop)
}

/// Small, quick to build, and strict: every library must be there and get the right answers. Times mean nothing here.
pub(crate) fn smoke(root: &Path) -> Result<()> {
    let options =
        Options { size: Some(12), count: Some(12), repetitions: 1, profile: Profile::Dev, ..Options::default() };
    let measurements = measure(root, &options)?;
    for measurement in &measurements {
        let offered = |library: &Library| measurement.job.is_offered_by(*library);
        for (library, samples) in measurement.samples.iter().filter(|(library, _)| offered(library)) {
            samples.as_ref().map_err(|why| anyhow::anyhow!("{}: {why}", library.name()))?;
        }
    }
    Ok(())
}

fn measure(root: &Path, options: &Options) -> Result<Vec<Measurement>> {
    let programs: Vec<Program> =
        Library::ALL.iter().map(|library| Program::build(root, *library, options.profile)).collect();
    let object = root.join("bench/pod.json");
    let mut measurements = Vec::new();
    // Each server is there for its own jobs alone.
    for place in [Place::Real, Place::Replay, Place::Process] {
        let jobs: Vec<Job> = options.jobs.iter().copied().filter(|job| job.place == place).collect();
        if jobs.is_empty() {
            continue;
        }
        let bench = Bench { root, options, programs: &programs, object: &object };
        measurements.extend(match place {
            Place::Real => bench.on_real_server(&jobs)?,
            Place::Replay => bench.on_replay_server(&jobs)?,
            Place::Process => bench.in_process(&jobs)?,
        });
    }
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&table::to_json(&measurements, options))?;
        fs::write(path, text + "\n").with_context(|| path.display().to_string())?;
    }
    Ok(measurements)
}

/// What all jobs need.
struct Bench<'a> {
    root: &'a Path,
    options: &'a Options,
    programs: &'a [Program],
    /// The pod that others are made from.
    object: &'a Path,
}

impl Bench<'_> {
    fn on_real_server(&self, jobs: &[Job]) -> Result<Vec<Measurement>> {
        let klient = self.klient()?;
        let server = e2e::start()?;
        let kubeconfig = server.kubeconfig();
        let size = self.size(jobs[0]);
        let call = Call { kubeconfig: &kubeconfig, object: self.object, size, ..Call::default() };
        let filled = sample::run(klient, &Call { job: "fill", ..call }).context("filling the server")?;
        println!("\n{size} pods of {} bytes as JSON", filled["object_bytes"]);
        let mut measurements = Vec::new();
        for job in jobs {
            let call = Call { count: job.count(self.options.count, size), ..call };
            let touched =
                if job.needs_events() { sample::run(klient, &Call { job: "touch", ..call })? } else { json!({}) };
            let since = touched["since"].as_str().unwrap_or_default();
            measurements.push(self.in_turns(*job, &Call { since, ..call })?);
        }
        Ok(measurements)
    }

    fn on_replay_server(&self, jobs: &[Job]) -> Result<Vec<Measurement>> {
        let size = self.size(jobs[0]);
        let replay = Replay::record(self.root, self.options.profile, self.klient()?, size)?;
        let mut measurements = Vec::new();
        for job in jobs {
            let count = job.count(self.options.count, size);
            let server = replay.serve(size, count)?;
            let (kubeconfig, address) = (&server.kubeconfig, &server.address);
            let call = Call { kubeconfig, object: self.object, count, size, replay: address, ..Call::default() };
            measurements.push(self.in_turns(*job, &call)?);
        }
        Ok(measurements)
    }

    fn in_process(&self, jobs: &[Job]) -> Result<Vec<Measurement>> {
        let call = |job: &Job| Call { count: job.count(self.options.count, 1), ..Call::default() };
        jobs.iter().map(|job| self.in_turns(*job, &call(job))).collect()
    }

    fn klient(&self) -> Result<&Path> {
        self.programs[0].path().map_err(|why| anyhow::anyhow!("klient's program: {why}"))
    }

    fn size(&self, job: Job) -> usize {
        self.options.size.unwrap_or_else(|| job.default_size())
    }

    fn in_turns(&self, job: Job, call: &Call<'_>) -> Result<Measurement> {
        let call = Call { job: job.task, concurrency: job.concurrency, ..*call };
        let measurement = run_in_turns(self.programs, job, &call, self.options.repetitions)?;
        table::print(&measurement);
        Ok(measurement)
    }
}

/// Runs one job with each library, again and again, so that what the machine does besides hits all of them.
fn run_in_turns(programs: &[Program], job: Job, call: &Call<'_>, repetitions: usize) -> Result<Measurement> {
    let mut measurement = Measurement::new(job, call.count, call.size);
    let mut expected: Option<String> = None;
    for repetition in 0..repetitions {
        for turn in 0..programs.len() {
            // Nobody is always the first.
            let program = &programs[(repetition + turn) % programs.len()];
            let Ok(path) = program.path() else { continue };
            let library = program.library;
            if !job.is_offered_by(library) {
                continue;
            }
            let sample = Sample::read(&sample::run(path, call).with_context(|| library.name())?)?;
            let right = expected.get_or_insert_with(|| sample.answer.clone());
            ensure!(sample.answer == *right, "{} {}: {}, not {right}", library.name(), job.name, sample.answer);
            let objects = job.objects(call);
            ensure!(sample.objects() == Some(objects), "{} {}: not {objects} objects", library.name(), job.name);
            measurement.add(library, sample);
        }
    }
    for program in programs {
        if !job.is_offered_by(program.library) {
            measurement.missing(program.library, "not offered");
        } else if let Err(why) = program.path() {
            measurement.missing(program.library, why);
        }
    }
    Ok(measurement)
}

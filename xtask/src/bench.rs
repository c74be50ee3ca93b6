//! Benchmarks: of the wire forms by themselves, and of whole programs beside client-go and kube-rs on the real server.

mod job;
mod options;
mod program;
mod sample;
mod server;
mod table;
mod wire;

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use self::{
    job::Job,
    options::{Options, Profile},
    program::{Library, Program},
    sample::{Measurement, Sample},
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
    let options = Options { size: 12, count: Some(12), repetitions: 1, profile: Profile::Dev, ..Options::default() };
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
    let klient = programs[0].path().map_err(|why| anyhow::anyhow!("klient's program: {why}"))?;
    let needs_server = options.jobs.iter().any(|job| job.needs_server());
    let server = if needs_server { Some(e2e::start()?) } else { None };
    let kubeconfig = server.as_ref().map(klient_harness::Server::kubeconfig).unwrap_or_default();
    let object = root.join("bench/pod.json");
    let prepare = |job: &str, count: usize| {
        let call = sample::Call {
            job,
            kubeconfig: &kubeconfig,
            object: &object,
            count,
            size: options.size,
            ..sample::Call::default()
        };
        sample::run(klient, &call)
    };
    if needs_server {
        let filled = prepare("fill", 1).context("filling the server")?;
        println!("\n{} pods of {} bytes as JSON", options.size, filled["object_bytes"]);
    }
    let mut measurements = Vec::new();
    for job in &options.jobs {
        let count = options.count.unwrap_or(job.count);
        let since = if job.needs_events() { prepare("touch", count)?["since"].clone() } else { json!("") };
        let call = sample::Call {
            job: job.name,
            kubeconfig: &kubeconfig,
            object: &object,
            count,
            size: options.size,
            concurrency: job.concurrency,
            since: since.as_str().context("no version to watch from")?,
        };
        let measurement = run_in_turns(&programs, *job, &call, options.repetitions)?;
        table::print(&measurement);
        measurements.push(measurement);
    }
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&table::to_json(&measurements, options))?;
        fs::write(path, text + "\n").with_context(|| path.display().to_string())?;
    }
    Ok(measurements)
}

/// Runs one job with each library, again and again, so that what the machine does besides hits all of them.
fn run_in_turns(programs: &[Program], job: Job, call: &sample::Call<'_>, repetitions: usize) -> Result<Measurement> {
    let mut measurement = Measurement::new(job, call.count);
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

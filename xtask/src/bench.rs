//! Benchmarks: of the wire forms by themselves, and of whole programs beside client-go and kube-rs on the real server.

mod agreement;
mod child;
mod footprint;
mod job;
mod memory;
mod options;
mod plot;
mod program;
mod replay;
mod report;
mod sample;
mod server;
mod table;
mod turns;
mod wire;

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process, thread,
};

use anyhow::{Context, Result};
use serde_json::json;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use self::{
    child::Limits,
    job::{Job, Place},
    options::{Options, Profile},
    program::{Library, Program},
    replay::Replay,
    sample::{Call, Measurement},
    turns::Turns,
};
pub(crate) use self::{server::compare as servers, wire::wire};
use crate::e2e;

/// Builds the programs, starts the server, runs each job with each library in turn, and prints the ratios.
pub(crate) fn compare(root: &Path, arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    end_when_interrupted()?;
    let command = [&["cargo run --release -p xtask -- bench"], arguments].concat().join(" ");
    measure(root, &options, &command).map(drop)
}

/// Says so, and ends. Everything that was started ends with this process, and nothing was written.
fn end_when_interrupted() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            eprintln!("\nerror: interrupted; no numbers were written");
            process::exit(INTERRUPTED);
        }
    });
    Ok(())
}

/// As shells say it.
const INTERRUPTED: i32 = 130;

/// Small, quick to build, and strict: every library must be there and get the right answers. Times mean nothing here.
pub(crate) fn smoke(root: &Path) -> Result<()> {
    let options =
        Options { size: Some(12), count: Some(12), repetitions: 1, profile: Profile::Dev, ..Options::default() };
    let measurements = measure(root, &options, "cargo xtask ci bench-smoke")?;
    for measurement in &measurements {
        let offered = |library: &Library| measurement.job.is_offered_by(*library);
        for (library, samples) in measurement.samples.iter().filter(|(library, _)| offered(library)) {
            samples.as_ref().map_err(|why| anyhow::anyhow!("{}: {why}", library.name()))?;
        }
    }
    Ok(())
}

fn measure(root: &Path, options: &Options, command: &str) -> Result<Vec<Measurement>> {
    let earlier = options.beside.as_deref().map(agreement::read).transpose()?;
    forget(options)?;
    let load = report::load();
    let programs: Vec<Program> =
        Library::ALL.iter().map(|library| Program::build(root, *library, options.profile)).collect();
    for program in &programs {
        if let Err(why) = program.path() {
            println!("no numbers of {}: {why}", program.library.name());
        }
    }
    let object = root.join("bench/pod.json");
    let bench = Bench { root, options, programs: &programs, object: &object };
    let mut measurements = Vec::new();
    // Each server is there for its own jobs alone.
    for place in [Place::Real, Place::Replay, Place::Process] {
        let jobs: Vec<Job> = options.jobs.iter().copied().filter(|job| job.place == place).collect();
        if jobs.is_empty() {
            continue;
        }
        measurements.extend(match place {
            Place::Real => bench.on_real_server(&jobs)?,
            Place::Replay => bench.on_replay_server(&jobs)?,
            Place::Process => bench.in_process(&jobs)?,
        });
    }
    let footprints = footprint::measure(root, &programs, options.build_times)?;
    let mut all = table::to_json(&measurements, options);
    all["programs"] = footprint::to_json(&footprints);
    let footprints = footprint::table(&footprints);
    let agreement = earlier.map(|earlier| agreement::describe(&earlier, &all));
    println!("\n{footprints}\n\n**all ratios**\n\n{}", table::summary(&measurements));
    if let Some(agreement) = &agreement {
        println!("\n{agreement}");
    }
    if let Some(path) = &options.json {
        write(path, &(serde_json::to_string_pretty(&all)? + "\n"))?;
    }
    if let Some(path) = &options.report {
        let page = report::page(root, command, &load, &measurements, &footprints, agreement.as_deref());
        write(path, &page)?;
    }
    if let Some(folder) = &options.plots {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for (name, svg) in plot::plots(&measurements) {
            write(&folder.join(name), &svg)?;
        }
    }
    Ok(measurements)
}

/// Removes what another run has left where this one will write, once everything is measured: what is there is of one whole run.
fn forget(options: &Options) -> Result<()> {
    let plots = options.plots.iter().flat_map(|folder| plot::names(&options.jobs).map(|name| folder.join(name)));
    for path in options.json.iter().chain(&options.report).cloned().chain(plots) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).context(path.display().to_string()),
            _ => {}
        }
    }
    Ok(())
}

/// Writes a file whole or not at all.
fn write(path: &Path, text: &str) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    fs::write(&new, text).with_context(|| new.display().to_string())?;
    fs::rename(&new, path).with_context(|| path.display().to_string())
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
        println!("\n{size} pods of {} bytes as JSON, without their managed fields", filled["object_bytes"]);
        if jobs.iter().any(|job| job.needs_custom()) {
            let filled =
                sample::run(klient, &Call { job: "fill-custom", ..call }).context("making custom resources")?;
            println!("{size} custom resources of {} bytes", filled["object_bytes"]);
        }
        let mut measurements = Vec::new();
        for job in jobs {
            let call = Call { count: job.count(self.options.count, size), ..call };
            let touched =
                if job.needs_events() { sample::run(klient, &Call { job: "touch", ..call })? } else { json!({}) };
            let since = touched["since"].as_str().unwrap_or_default();
            measurements.push(self.in_turns(*job, &Call { since, ..call }, None)?);
        }
        Ok(measurements)
    }

    fn on_replay_server(&self, jobs: &[Job]) -> Result<Vec<Measurement>> {
        let replay = Replay::record(self.root, self.options.profile, self.klient()?, self.size(jobs[0]))?;
        let mut measurements: Vec<Measurement> = Vec::new();
        for job in jobs {
            let usual = [self.size(*job)];
            let sizes = if job.grows() && !self.options.sizes.is_empty() { &self.options.sizes[..] } else { &usual };
            let first = measurements.len();
            for size in sizes {
                let (size, count) = (*size, job.count(self.options.count, *size));
                let server = replay.serve(size, count, job.pace, self.options.replay_port)?;
                let (kubeconfig, address) = (&server.kubeconfig, &server.address);
                let call = Call { kubeconfig, object: self.object, count, size, replay: address, ..Call::default() };
                let measurement = self.in_turns(*job, &call, measurements[first..].last())?;
                measurements.push(measurement);
            }
        }
        Ok(measurements)
    }

    fn in_process(&self, jobs: &[Job]) -> Result<Vec<Measurement>> {
        let call = |job: &Job| {
            let size = self.size(*job);
            Call { object: self.object, count: job.count(self.options.count, size), size, ..Call::default() }
        };
        jobs.iter().map(|job| self.in_turns(*job, &call(job), None)).collect()
    }

    fn klient(&self) -> Result<&Path> {
        self.programs[0].path().map_err(|why| anyhow::anyhow!("klient's program: {why}"))
    }

    fn size(&self, job: Job) -> usize {
        self.options.size.unwrap_or_else(|| job.default_size())
    }

    fn in_turns(&self, job: Job, call: &Call<'_>, smaller: Option<&Measurement>) -> Result<Measurement> {
        let call = Call { job: job.task, concurrency: job.concurrency, ..*call };
        let turns = Turns { programs: self.programs, job, call, smaller, options: self.options };
        let measurement = turns.run(Limits::default())?;
        table::print(&measurement);
        Ok(measurement)
    }
}

#[cfg(test)]
mod tests {
    use klient_harness::Folder;

    use super::*;

    #[test]
    fn nothing_of_an_older_run_is_left_when_a_run_begins() {
        let folder = Folder::new().unwrap();
        let (json, plots) = (folder.path().join("out.json"), folder.path().to_owned());
        let (plot, other) = (plots.join("sync-cpu.svg"), plots.join("other.svg"));
        for path in [&json, &plot, &other] {
            write(path, "old").unwrap();
        }
        let options = Options { json: Some(json.clone()), plots: Some(plots), ..Options::default() };
        forget(&options).unwrap();
        assert!(!json.exists() && !plot.exists() && other.exists());
        // There is nothing to forget the second time.
        forget(&options).unwrap();
    }
}

//! Benchmarks: of the wire forms alone, and of whole programs compared with client-go and kube-rs on the real server.

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
mod streams;
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
use klient_harness::Kubelet;
use serde_json::json;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use self::{
    child::Limits,
    job::Place,
    options::{Options, Profile},
    program::{Library, Program},
    replay::Replay,
    sample::{Call, Measurement},
    turns::Turns,
};
pub(crate) use self::{server::compare as servers, wire::wire};
use crate::{e2e, run::run};

/// Builds the programs, starts the server, runs each job with each library in turn, and prints the ratios.
pub(crate) fn compare(root: &Path, arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    end_when_interrupted()?;
    let command = [&["cargo run --release -p xtask -- bench"], arguments].concat().join(" ");
    measure(root, &options, &command).map(drop)
}

/// Exits with an error message on SIGINT, SIGTERM or SIGHUP.
///
/// Child processes end with this process. Files are written atomically, after all measurements, so no file is partial.
fn end_when_interrupted() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            eprintln!("\nerror: interrupted; files that were not complete were not written");
            process::exit(INTERRUPTED);
        }
    });
    Ok(())
}

/// The exit code that shells use for an interrupted program.
const INTERRUPTED: i32 = 130;

/// Builds the unoptimized programs and their tests.
pub(crate) fn build(root: &Path) -> Result<()> {
    let bench = root.join("bench");
    let version = [("K8S_OPENAPI_ENABLED_VERSION", "1.36")];
    let arguments = ["test", "--quiet", "--workspace", "--locked", "--no-run", "--target-dir", "target"];
    run(&bench, "cargo", &arguments, &version)?;
    program::build_rust(&bench, "bench-klient", &[], Profile::Dev).map(drop)
}

/// Checks that every library is available and gets the right results, with few objects and unoptimized programs.
///
/// The measured times have no meaning here. The programs' own tests run first, because `bench/` is a separate workspace.
pub(crate) fn smoke(root: &Path) -> Result<()> {
    let bench = root.join("bench");
    let version = [("K8S_OPENAPI_ENABLED_VERSION", "1.36")];
    run(&bench, "cargo", &["fmt", "--all", "--check"], &[])?;
    run(&bench, "cargo", &["test", "--workspace", "--locked", "--target-dir", "target"], &version)?;
    run(&bench.join("go"), "go", &["vet", "./..."], &[])?;
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
    let conditions = report::conditions(root);
    let programs: Vec<Program> =
        Library::ALL.iter().map(|library| Program::build(root, *library, options.profile)).collect();
    for program in &programs {
        if let Err(why) = program.path() {
            println!("no measurements of {}: {why}", program.library.name());
        }
    }
    let object = root.join("bench/pod.json");
    let bench = Bench { root, options, programs: &programs, object: &object };
    let measurements = bench.rounds()?;
    for measurement in &measurements {
        table::print(measurement);
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
        let conditions = format!("{conditions}\n{}", report::server());
        let page = report::page(command, &conditions, &measurements, &footprints, agreement.as_deref());
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

/// Removes the output files of an earlier run. All output files are then from one complete run.
fn forget(options: &Options) -> Result<()> {
    let plots = options.plots.iter().flat_map(|folder| plot::names(&options.jobs).map(|name| folder.join(name)));
    for path in options.json.iter().chain(&options.report).cloned().chain(plots) {
        for path in [unfinished(&path), path] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).context(path.display().to_string());
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Writes a file atomically: to a temporary name, which is then renamed.
fn write(path: &Path, text: &str) -> Result<()> {
    let new = unfinished(path);
    fs::write(&new, text).with_context(|| new.display().to_string())?;
    fs::rename(&new, path).with_context(|| path.display().to_string())
}

/// Returns the temporary name of a file that is not yet complete.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// The inputs that all jobs share.
struct Bench<'a> {
    root: &'a Path,
    options: &'a Options,
    programs: &'a [Program],
    /// The file with the pod that all other objects are copied from.
    object: &'a Path,
}

impl Bench<'_> {
    /// Runs all jobs once per round, each round on new servers.
    ///
    /// Other load on the machine for some minutes then widens the spread of every job a little, instead of distorting one job.
    fn rounds(&self) -> Result<Vec<Measurement>> {
        let mut plan = self.plan();
        let is_anywhere = |place| plan.iter().any(|measurement| measurement.job.place == place);
        let (is_real, is_replayed) = (is_anywhere(Place::Real), is_anywhere(Place::Replay));
        let needs_fleet = is_real || is_replayed || is_anywhere(Place::Streams);
        let fleet = if needs_fleet { self.build_fleet()? } else { PathBuf::new() };
        let replay = if is_replayed { Some(Replay::record(self.root, self.options.profile, &fleet)?) } else { None };
        for round in 0..self.options.repetitions {
            // Each server runs only during its own jobs.
            for part in plan.chunk_by_mut(|one, next| one.job.place == next.job.place) {
                match part[0].job.place {
                    Place::Real => self.on_real_server(round, part, &fleet)?,
                    Place::Replay => self.on_replay_server(round, part, replay.as_ref().context("no recording")?)?,
                    Place::Streams => self.with_kubelet(round, part, &fleet)?,
                    Place::Process => self.in_process(round, part)?,
                }
            }
        }
        Ok(plan)
    }

    /// Returns the measurements to take, in order.
    fn plan(&self) -> Vec<Measurement> {
        let mut plan = Vec::new();
        for job in &self.options.jobs {
            let usual = [self.options.size.unwrap_or_else(|| job.default_size())];
            let sizes = if job.grows() && !self.options.sizes.is_empty() { &self.options.sizes[..] } else { &usual };
            plan.extend(sizes.iter().map(|size| Measurement::new(*job, job.count(self.options.count, *size), *size)));
        }
        plan.sort_by_key(|measurement| measurement.job.place);
        plan
    }

    /// Builds the program that fills servers, and returns its path.
    fn build_fleet(&self) -> Result<PathBuf> {
        program::build_rust(&self.root.join("bench"), "bench-fleet", &["bench-fleet"], self.options.profile)
    }

    fn on_real_server(&self, round: usize, plan: &mut [Measurement], fleet: &Path) -> Result<()> {
        let server = e2e::start()?;
        let kubeconfig = server.kubeconfig();
        let size = plan[0].size;
        let call = Call { kubeconfig: &kubeconfig, object: self.object, size, ..Call::default() };
        let fill = |job, what| {
            let filled = sample::run(fleet, &Call { job, ..call }).context("cannot fill the server")?;
            if round == 0 {
                println!("{size} {what} of {} bytes as JSON, without their managed fields", filled["object_bytes"]);
            }
            anyhow::Ok(())
        };
        fill("fill", "pods")?;
        if plan.iter().any(|measurement| measurement.job.needs_custom()) {
            fill("fill-custom", "custom resources")?;
        }
        // No other job may change pods until all libraries have watched these changes, so the jobs that write come last.
        let watched = plan.iter().filter(|measurement| measurement.job.needs_events());
        let touched = match watched.map(|measurement| measurement.count).max() {
            Some(count) => sample::run(fleet, &Call { job: "touch", count, ..call })?,
            None => json!({}),
        };
        let since = touched["since"].as_str().unwrap_or_default();
        for measurement in plan {
            self.take_turns(round, &Call { since, count: measurement.count, ..call }, measurement, None)?;
        }
        Ok(())
    }

    fn on_replay_server(&self, round: usize, plan: &mut [Measurement], replay: &Replay) -> Result<()> {
        for place in 0..plan.len() {
            let (before, rest) = plan.split_at_mut(place);
            let measurement = &mut rest[0];
            let smaller = before.last().filter(|before| before.job == measurement.job);
            let (size, count) = (measurement.size, measurement.count);
            let server = replay.serve(size, count, measurement.job.pace, self.options.replay_port)?;
            let (kubeconfig, address) = (&server.kubeconfig, &server.address);
            let call = Call { kubeconfig, object: self.object, count, size, replay: address, ..Call::default() };
            self.take_turns(round, &call, measurement, smaller)?;
        }
        Ok(())
    }

    fn with_kubelet(&self, round: usize, plan: &mut [Measurement], fleet: &Path) -> Result<()> {
        let server = e2e::start()?;
        let kubelet = Kubelet::start_for_tests()?.context("there is no kubelet: unset KLIENT_E2E")?;
        let kubeconfig = server.kubeconfig();
        let call = Call { kubeconfig: &kubeconfig, object: self.object, ..Call::default() };
        let address = format!("127.0.0.1:{}", kubelet.port());
        sample::run(fleet, &Call { job: "fill-streams", replay: &address, ..call }).context("cannot create the pod")?;
        let address = streams::serve()?.to_string();
        for measurement in plan {
            let call = Call { replay: &address, count: measurement.count, ..call };
            self.take_turns(round, &call, measurement, None)?;
        }
        Ok(())
    }

    fn in_process(&self, round: usize, plan: &mut [Measurement]) -> Result<()> {
        for measurement in plan {
            let (count, size) = (measurement.count, measurement.size);
            let call = Call { object: self.object, count, size, ..Call::default() };
            self.take_turns(round, &call, measurement, None)?;
        }
        Ok(())
    }

    fn take_turns(
        &self,
        round: usize,
        call: &Call<'_>,
        measurement: &mut Measurement,
        smaller: Option<&Measurement>,
    ) -> Result<()> {
        let call = Call { job: measurement.job.task, concurrency: measurement.job.concurrency, ..*call };
        Turns { programs: self.programs, round, call, smaller, options: self.options }
            .take(measurement, Limits::default())?;
        eprintln!("round {} of {}: {}", round + 1, self.options.repetitions, table::last(measurement));
        Ok(())
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
        // The second call finds no files.
        forget(&options).unwrap();
    }
}

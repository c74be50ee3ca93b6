//! Chaos: worlds of writers, informers, controllers and electors, with faults drawn from a seed, and checks at the end of each.
//!
//! One seed is one plan: the same parts, the same phases of faults, the same decisions of every writer and handler. The schedule is the
//! same only in part: klient's jitter, the order of its hash tables and Tokio's `select!` take random numbers that cannot be seeded.
//! A failure that depends on these needs several replays.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod checks;
mod controllers;
mod electors;
mod embedded;
mod faults;
mod history;
mod observers;
mod proxy;
mod real;
mod report;
mod rng;
mod shards;
mod site;
mod truth;
mod weather;
mod widget;
mod world;
mod writers;

use std::{
    panic,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, bail};
use klient::metrics::Registry;

use crate::{
    embedded::Embedded,
    real::{Cluster, Real},
    report::{Report, WorldReport},
    rng::Rng,
    site::Site,
    weather::Weather,
    world::{Mode, Plan},
};

const USAGE: &str = "\
usage: cargo xtask chaos [OPTIONS]

  --worlds N     the number of worlds on the embedded server (default 1000)
  --real N       the number of worlds on the real kube-apiserver and etcd (default 0)
  --seed N       the seed of the run; drawn and printed if absent
  --replay N     run only the world with this seed; with --threaded or --real 1, of that sort
  --threaded     with --replay: a world on several threads
  --verbose      a line for each world
  --log          klient's log on standard error, for replays";

/// The payload of a panic that a world causes on purpose.
pub(crate) struct ExpectedPanic;

#[derive(Default)]
struct Options {
    worlds: Option<usize>,
    real: usize,
    seed: Option<u64>,
    replay: Option<u64>,
    is_threaded: bool,
    is_verbose: bool,
    logs: bool,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next().as_deref() {
        Some("shards") => shards::run(arguments),
        Some("replica") => shards::replica(arguments),
        _ => run(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let options = Options::parse()?;
    silence_expected_panics();
    if options.logs {
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(std::io::stderr);
        log.without_time().with_ansi(false).init();
    }
    let seed = options.seed.or(options.replay).unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.as_nanos() as u64 % 1_000_000_000
    });
    println!("chaos, seed {seed}");
    let plans = options.plans(seed);
    let mut report = Report::new(seed, plans.len(), options.is_verbose);
    let mut cluster = None;
    let watchdog = Watchdog::start();
    for (index, plan) in plans.into_iter().enumerate() {
        watchdog.begin(plan.seed);
        if plan.mode == Mode::Real && cluster.is_none() {
            cluster = Some(Cluster::start()?);
        }
        let before = checks::live_bytes();
        let mut world = run_world(plan, cluster.as_ref())?;
        let grown = checks::live_bytes() - before;
        if index >= checks::WARM_UP && grown > checks::TOLERANCE {
            world.failures.push(format!("memory: {} KiB more than before the world", grown >> 10));
        }
        report.add(world);
    }
    Ok(report.finish())
}

/// Runs one world on a runtime of its own, so that nothing of it is left.
fn run_world(plan: Plan, cluster: Option<&Cluster>) -> Result<WorldReport> {
    let runtime = match plan.mode {
        Mode::Embedded => tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?,
        Mode::Threaded | Mode::Real => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?
        }
    };
    let empty = WorldReport::new(&plan);
    let registry = Registry::new();
    let running = panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            let weather = Weather::new(Rng::new(plan.seed ^ 0xfau64), None);
            let site = match plan.mode {
                Mode::Embedded | Mode::Threaded => {
                    let server = Embedded::start(Arc::clone(&weather), registry.clone(), plan.is_durable).await?;
                    Site::Embedded { server, is_quick: plan.mode == Mode::Threaded }
                }
                Mode::Real => {
                    let cluster = cluster.context("real server is not running")?.clone();
                    let server = Real::start(cluster, Arc::clone(&weather), registry.clone(), plan.seed).await?;
                    Site::Real(Box::new(server))
                }
            };
            Ok(world::run(plan, site, weather, &registry).await)
        })
    });
    match panic::catch_unwind(running) {
        Ok(report) => report,
        Err(_) => Ok(WorldReport { failures: vec!["world panicked".to_owned()], ..empty }),
    }
}

impl Options {
    fn parse() -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let value = arguments.next().with_context(|| format!("{argument} needs a number"))?;
                value.parse().with_context(|| format!("{argument} needs a number and not {value:?}"))
            };
            match argument.as_str() {
                "--worlds" => options.worlds = Some(usize::try_from(number()?)?),
                "--real" => options.real = usize::try_from(number()?)?,
                "--seed" => options.seed = Some(number()?),
                "--replay" => options.replay = Some(number()?),
                "--threaded" => options.is_threaded = true,
                "--verbose" => options.is_verbose = true,
                "--log" => options.logs = true,
                _ => bail!("no such option: {argument}\n{USAGE}"),
            }
        }
        Ok(options)
    }

    fn plans(&self, seed: u64) -> Vec<Plan> {
        if let Some(seed) = self.replay {
            let mode = match (self.real, self.is_threaded) {
                (0, false) => Mode::Embedded,
                (0, true) => Mode::Threaded,
                _ => Mode::Real,
            };
            return vec![Plan::new(seed, mode)];
        }
        let mut rng = Rng::new(seed);
        // Short seeds are easier to pass on.
        let mut next = || rng.next() % 1_000_000_000;
        let embedded = self.worlds.unwrap_or(1000);
        let mode =
            |index: usize| if index % THREADED_EACH == THREADED_EACH - 1 { Mode::Threaded } else { Mode::Embedded };
        let mut plans: Vec<Plan> = (0..embedded).map(|index| Plan::new(next(), mode(index))).collect();
        plans.extend((0..self.real).map(|_| Plan::new(next(), Mode::Real)));
        plans
    }
}

/// Panics that worlds cause on purpose are not printed.
fn silence_expected_panics() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<ExpectedPanic>() {
            default(info);
        }
    }));
}

/// Ends the process if a world does not end: a loop without a pause stops even the clock.
struct Watchdog {
    /// The number of the world, and its seed.
    current: Arc<(AtomicU64, AtomicU64)>,
}

impl Watchdog {
    fn start() -> Self {
        let current = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let watched = Arc::clone(&current);
        std::thread::spawn(move || {
            let mut last = 0;
            loop {
                std::thread::sleep(WORLD_LIMIT);
                let (world, seed) = (watched.0.load(Ordering::Relaxed), watched.1.load(Ordering::Relaxed));
                if world == last {
                    eprintln!("\nFAILED: the world with seed {seed} does not end");
                    std::process::exit(1);
                }
                last = world;
            }
        });
        Self { current }
    }

    fn begin(&self, seed: u64) {
        self.current.1.store(seed, Ordering::Relaxed);
        self.current.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// One of this number of worlds runs on several threads in real time.
const THREADED_EACH: usize = 50;
/// A world that takes longer than this never ends.
const WORLD_LIMIT: Duration = Duration::from_secs(240);

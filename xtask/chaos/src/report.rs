//! Reports of phases, worlds and the whole run: a progress line, and tables at the end.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use crate::{
    faults::Fault,
    world::{Mode, Plan},
};

/// One phase of a world.
#[derive(Clone, Debug)]
pub(crate) struct PhaseReport {
    pub(crate) faults: Vec<Fault>,
    pub(crate) seconds: f64,
    pub(crate) strikes: u64,
    /// The requests of the informer that sent the most.
    pub(crate) most: u64,
    /// The number of requests that one informer may send.
    pub(crate) limit: u64,
}

impl PhaseReport {
    /// Returns a problem if an informer sent too many requests.
    pub(crate) fn excess(&self) -> Option<String> {
        let Self { faults, seconds, strikes, most, limit } = self;
        (most > limit).then(|| {
            format!("rate: {most} requests of one informer in {seconds:.0} s of {faults:?} with {strikes} strikes, limit {limit}")
        })
    }
}

/// One world.
#[derive(Clone, Debug)]
pub(crate) struct WorldReport {
    pub(crate) seed: u64,
    pub(crate) mode: Mode,
    pub(crate) failures: Vec<String>,
    pub(crate) phases: Vec<PhaseReport>,
    pub(crate) writes: usize,
    pub(crate) events: usize,
    pub(crate) reconciles: u64,
    pub(crate) terms: usize,
    pub(crate) relists: u64,
    /// The number of keys that the world had to request from its controller; see `Mirror::resync`.
    pub(crate) resyncs: usize,
    pub(crate) requests: u64,
    pub(crate) virtual_time: Duration,
    pub(crate) real_time: Duration,
}

impl WorldReport {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            seed: plan.seed,
            mode: plan.mode,
            failures: Vec::new(),
            phases: Vec::new(),
            writes: 0,
            events: 0,
            reconciles: 0,
            terms: 0,
            relists: 0,
            resyncs: 0,
            requests: 0,
            virtual_time: Duration::ZERO,
            real_time: Duration::ZERO,
        }
    }
}

/// The whole run.
pub(crate) struct Report {
    seed: u64,
    total: usize,
    is_verbose: bool,
    started: Instant,
    worlds: BTreeMap<&'static str, usize>,
    sums: [u64; 7],
    virtual_time: Duration,
    slowest: Duration,
    faults: BTreeMap<Fault, FaultSum>,
    failed: Vec<(u64, Mode, Vec<String>)>,
}

#[derive(Default)]
struct FaultSum {
    phases: u64,
    strikes: u64,
    seconds: f64,
    /// The phase that came nearest to its limit: requests and limit.
    nearest: (u64, u64),
}

impl Report {
    pub(crate) fn new(seed: u64, total: usize, is_verbose: bool) -> Self {
        Self {
            seed,
            total,
            is_verbose,
            started: Instant::now(),
            worlds: BTreeMap::new(),
            sums: [0; 7],
            virtual_time: Duration::ZERO,
            slowest: Duration::ZERO,
            faults: BTreeMap::new(),
            failed: Vec::new(),
        }
    }

    /// Adds a world, and shows the progress.
    pub(crate) fn add(&mut self, world: WorldReport) {
        *self.worlds.entry(mode_name(world.mode)).or_default() += 1;
        let numbers = [
            world.writes as u64,
            world.events as u64,
            world.reconciles,
            world.terms as u64,
            world.relists,
            world.requests,
            world.resyncs as u64,
        ];
        for (sum, number) in self.sums.iter_mut().zip(numbers) {
            *sum += number;
        }
        self.virtual_time += world.virtual_time;
        self.slowest = self.slowest.max(world.real_time);
        for phase in &world.phases {
            for fault in &phase.faults {
                let sum = self.faults.entry(*fault).or_default();
                sum.phases += 1;
                sum.strikes += phase.strikes;
                sum.seconds += phase.seconds;
                // Of phases with several faults, the limit is the sum.
                let (most, limit) = sum.nearest;
                if phase.faults.len() == 1 && (limit == 0 || phase.most * limit > most * phase.limit) {
                    sum.nearest = (phase.most, phase.limit);
                }
            }
        }
        let done: usize = self.worlds.values().sum();
        if self.is_verbose {
            let faults: Vec<&Vec<Fault>> = world.phases.iter().map(|phase| &phase.faults).collect();
            println!(
                "world {done}/{}: {} seed {} {faults:?} {:.0?} in {:.0?}, {} writes, {} events, {} requests",
                self.total,
                mode_name(world.mode),
                world.seed,
                world.virtual_time,
                world.real_time,
                world.writes,
                world.events,
                world.requests
            );
        }
        if !world.failures.is_empty() {
            println!("\rFAILED: {} world, seed {}", mode_name(world.mode), world.seed);
            for failure in world.failures.iter().take(6) {
                println!("    {failure}");
            }
            if world.failures.len() > 6 {
                println!("    and {} more", world.failures.len() - 6);
            }
            self.failed.push((world.seed, world.mode, world.failures));
        }
        self.progress(done);
    }

    fn progress(&self, done: usize) {
        let step = if std::io::stdout().is_terminal() { 1 } else { 100 };
        if self.is_verbose || !done.is_multiple_of(step) {
            return;
        }
        let rate = done as f64 / self.started.elapsed().as_secs_f64();
        let line = format!("world {done}/{}, {} failed, {rate:.1} worlds/s", self.total, self.failed.len());
        if step == 1 {
            print!("\r{line}   ");
            // Progress is only a convenience.
            let _ = std::io::stdout().flush();
        } else {
            println!("{line}");
        }
    }

    /// Prints the summary. Returns whether no world failed.
    pub(crate) fn finish(&self) -> bool {
        let [writes, events, reconciles, terms, relists, requests, resyncs] = self.sums;
        println!("\n\n{:<22}{:>8}{:>9}{:>12}  requests of one informer", "fault", "phases", "strikes", "minutes");
        for (fault, sum) in &self.faults {
            let limit = fault.limit();
            println!(
                "{:<22}{:>8}{:>9}{:>12.0}  {} of {} at most; limit {} + {}/min + {}/strike",
                format!("{fault:?}"),
                sum.phases,
                sum.strikes,
                sum.seconds / 60.0,
                sum.nearest.0,
                sum.nearest.1,
                limit.burst,
                limit.per_minute,
                limit.per_strike,
            );
        }
        let hours = self.virtual_time.as_secs_f64() / 3600.0;
        println!("\nworlds           {:?}", self.worlds);
        println!(
            "time             {hours:.1} h simulated in {:.0?}, slowest world {:.1?}",
            self.started.elapsed(),
            self.slowest
        );
        println!("writes           {writes} acknowledged");
        println!("requests         {requests}");
        println!("handler events   {events}");
        println!("relists          {relists}");
        println!("reconciles       {reconciles}, and {resyncs} keys that needed a resync");
        println!("leader terms     {terms}");
        println!("failed worlds    {}", self.failed.len());
        for (seed, mode, failures) in self.failed.iter().take(20) {
            let flag = match mode {
                Mode::Embedded => "",
                Mode::Threaded => " --threaded",
                Mode::Real => " --real 1",
            };
            let first = failures.first().map_or("", String::as_str);
            println!("  cargo xtask chaos --replay {seed}{flag}    {first:.120}");
        }
        println!("seed             {}", self.seed);
        self.failed.is_empty()
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Embedded => "embedded",
        Mode::Threaded => "threaded",
        Mode::Real => "real",
    }
}

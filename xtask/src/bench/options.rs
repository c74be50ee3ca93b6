//! The options of a benchmark.
//!
//! `bench [--job NAME]... [--size N] [--sizes N,N...] [--count N] [--repetitions N] [--json FILE] [--report FILE] [--beside FILE]
//! [--plots FOLDER] [--slow-klient PERCENT] [--replay-port N] [--no-allocations] [--build-times]`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::job::Job;

/// The parsed options.
pub(super) struct Options {
    pub(super) jobs: Vec<Job>,
    /// The number of objects. Without it, each job has its own number.
    pub(super) size: Option<usize>,
    /// The numbers of objects for the jobs that show how costs grow, in ascending order.
    pub(super) sizes: Vec<usize>,
    /// The number of measured operations. Without it, each job has its own number.
    pub(super) count: Option<usize>,
    pub(super) repetitions: usize,
    pub(super) json: Option<PathBuf>,
    /// The file to write the whole run to, as Markdown.
    pub(super) report: Option<PathBuf>,
    /// The JSON file of an earlier run to compare with.
    pub(super) beside: Option<PathBuf>,
    /// The folder to write plots to.
    pub(super) plots: Option<PathBuf>,
    pub(super) profile: Profile,
    /// The percentage of additional CPU that klient uses, to show that the benchmark detects it.
    pub(super) slow_klient: Option<usize>,
    /// The port of the replay server. Zero stands for any free port.
    pub(super) replay_port: u16,
    /// `true` if allocations are counted, by one additional run of each Rust program.
    pub(super) allocations: bool,
    /// `true` if the times of clean builds are measured.
    pub(super) build_times: bool,
}

/// The cargo profile of the Rust programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    Release,
    /// The profile that builds quickly, for checks of the results.
    Dev,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            jobs: Job::ALL.to_vec(),
            size: None,
            sizes: Vec::new(),
            count: None,
            repetitions: 7,
            json: None,
            report: None,
            beside: None,
            plots: None,
            profile: Profile::Release,
            slow_klient: None,
            replay_port: 0,
            allocations: true,
            build_times: false,
        }
    }
}

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut named = Vec::new();
        let mut words = arguments.iter().copied();
        while let Some(flag) = words.next() {
            match flag {
                "--no-allocations" => {
                    options.allocations = false;
                    continue;
                }
                "--build-times" => {
                    options.build_times = true;
                    continue;
                }
                _ => {}
            }
            let value = words
                .next()
                .with_context(|| format!("option {flag} is unknown or has no value: see `cargo xtask help`"))?;
            match flag {
                "--job" => named.push(value),
                "--size" => options.size = Some(positive(flag, value)?),
                "--sizes" => {
                    options.sizes = value.split(',').map(|size| positive(flag, size)).collect::<Result<_>>()?;
                }
                "--count" => options.count = Some(positive(flag, value)?),
                "--repetitions" => options.repetitions = positive(flag, value)?,
                "--json" => options.json = Some(value.into()),
                "--report" => options.report = Some(value.into()),
                "--beside" => options.beside = Some(value.into()),
                "--plots" => options.plots = Some(value.into()),
                "--slow-klient" => options.slow_klient = Some(positive(flag, value)?),
                "--replay-port" => options.replay_port = positive(flag, value)?.try_into().context("not a port")?,
                _ => bail!("unknown option {flag}: see `cargo xtask help`"),
            }
        }
        options.finish(&named)?;
        Ok(options)
    }

    fn finish(&mut self, named: &[&str]) -> Result<()> {
        for name in named {
            let mut known: Vec<_> = Job::ALL.iter().map(|job| job.name).collect();
            known.dedup();
            ensure!(known.contains(name), "unknown job {name}: expected one of {}", known.join(", "));
        }
        self.jobs.retain(|job| named.is_empty() || named.contains(&job.name));
        // The memory for each size is estimated from the size before it.
        self.sizes.sort_unstable();
        self.sizes.dedup();
        ensure!(self.plots.is_none() || self.sizes.len() > 1, "--plots needs at least two --sizes");
        let grows = self.jobs.iter().any(|job| job.grows());
        ensure!(
            self.sizes.is_empty() || grows,
            "--sizes applies only to sync-replay, sync-custom-replay and events-replay"
        );
        let most = self.sizes.iter().copied().chain(self.size).max().unwrap_or(0);
        ensure!(most <= MOST, "too many objects: --size and --sizes allow at most {MOST}");
        let most = self.jobs.iter().map(|job| job.concurrency).max().unwrap_or(1);
        ensure!(self.count.is_none_or(|count| count >= most), "--count must be at least {most}");
        Ok(())
    }
}

/// The largest number of objects, because the names of objects have six digits.
const MOST: usize = 1_000_000;

fn positive(flag: &str, value: &str) -> Result<usize> {
    let number = value.parse::<usize>().ok().filter(|number| *number > 0);
    number.with_context(|| format!("invalid {flag} {value}: expected a positive number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_everything_unless_told_otherwise() {
        assert_eq!(Options::parse(&[]).unwrap().jobs.len(), Job::ALL.len());
        let options =
            Options::parse(&["--job", "list", "--size", "20", "--build-times", "--json", "out.json"]).unwrap();
        assert_eq!(options.jobs.len(), 1);
        assert_eq!((options.size, options.count, options.build_times), (Some(20), None, true));
    }

    #[test]
    fn sizes_are_taken_from_the_smallest_to_the_largest() {
        let options = Options::parse(&["--sizes", "5000,1000,5000", "--plots", "docs"]).unwrap();
        assert_eq!(options.sizes, [1000, 5000]);
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for wrong in [
            &["--job", "sing"][..],
            &["--size", "0"],
            &["--size"],
            &["--sizes", "5,,7"],
            &["--loud", "yes"],
            &["--count", "3"],
            &["--plots", "docs"],
            &["--job", "queue", "--sizes", "10,20"],
            &["--size", "1000001"],
            &["--replay-port", "70000"],
        ] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}

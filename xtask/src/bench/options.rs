//! `bench [--job NAME]... [--size N] [--sizes N,N...] [--count N] [--repetitions N] [--json FILE] [--report FILE] [--beside FILE]
//! [--plots FOLDER] [--slow-klient PERCENT] [--replay-port N] [--no-allocations] [--build-times]`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::job::Job;

pub(super) struct Options {
    pub(super) jobs: Vec<Job>,
    /// How many objects there are; each job has a number of its own otherwise.
    pub(super) size: Option<usize>,
    /// How many there are, one after the other, for the jobs that show how costs grow.
    pub(super) sizes: Vec<usize>,
    /// How many operations are measured; each job has a number of its own otherwise.
    pub(super) count: Option<usize>,
    pub(super) repetitions: usize,
    pub(super) json: Option<PathBuf>,
    /// Where the whole run goes as a page.
    pub(super) report: Option<PathBuf>,
    /// The file of an earlier run, for comparison.
    pub(super) beside: Option<PathBuf>,
    /// Where plots go.
    pub(super) plots: Option<PathBuf>,
    pub(super) profile: Profile,
    /// How many percent more CPU klient is to use, to see that it shows.
    pub(super) slow_klient: Option<usize>,
    /// Of the replay server; any free one otherwise.
    pub(super) replay_port: u16,
    /// Whether allocations are counted, by one more run of each Rust program.
    pub(super) allocations: bool,
    /// Whether to measure how long a build from nothing takes.
    pub(super) build_times: bool,
}

/// How the Rust programs are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    Release,
    /// Quick to build, for checks of the answers.
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
            let value = words.next().with_context(|| format!("{flag} has no value, or there is no such option"))?;
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
                "--replay-port" => options.replay_port = positive(flag, value)?.try_into().context("no port")?,
                _ => bail!("no option {flag}"),
            }
        }
        options.finish(&named)?;
        Ok(options)
    }

    fn finish(&mut self, named: &[&str]) -> Result<()> {
        for name in named {
            let mut known: Vec<_> = Job::ALL.iter().map(|job| job.name).collect();
            known.dedup();
            ensure!(known.contains(name), "no job {name}; there are {}", known.join(", "));
        }
        self.jobs.retain(|job| named.is_empty() || named.contains(&job.name));
        // Memory that a size takes is judged by the one before.
        self.sizes.sort_unstable();
        self.sizes.dedup();
        ensure!(self.plots.is_none() || self.sizes.len() > 1, "--plots needs at least two --sizes");
        let grows = self.jobs.iter().any(|job| job.grows());
        ensure!(self.sizes.is_empty() || grows, "--sizes is for sync-replay, sync-custom-replay and events-replay");
        let most = self.sizes.iter().copied().chain(self.size).max().unwrap_or(0);
        ensure!(most <= MOST, "there can be no more than {MOST} objects");
        let most = self.jobs.iter().map(|job| job.concurrency).max().unwrap_or(1);
        ensure!(self.count.is_none_or(|count| count >= most), "--count must be at least {most}");
        Ok(())
    }
}

/// Names have six digits.
const MOST: usize = 1_000_000;

fn positive(flag: &str, value: &str) -> Result<usize> {
    let number = value.parse::<usize>().ok().filter(|number| *number > 0);
    number.with_context(|| format!("{flag} {value}: not a positive number"))
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

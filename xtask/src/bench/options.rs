//! `bench [--job NAME]... [--size N] [--count N] [--repetitions N] [--json FILE]`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::job::Job;

pub(super) struct Options {
    pub(super) jobs: Vec<Job>,
    /// How many pods there are; the servers have numbers of their own otherwise.
    pub(super) size: Option<usize>,
    /// How many operations are measured; each job has a number of its own otherwise.
    pub(super) count: Option<usize>,
    pub(super) repetitions: usize,
    pub(super) json: Option<PathBuf>,
    pub(super) profile: Profile,
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
        let jobs = Job::ALL.to_vec();
        Self { jobs, size: None, count: None, repetitions: 5, json: None, profile: Profile::Release }
    }
}

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut named = Vec::new();
        for pair in arguments.chunks(2) {
            let &[flag, value] = pair else { bail!("{} has no value", pair[0]) };
            let number = || value.parse::<usize>().ok().filter(|number| *number > 0);
            let positive = || number().with_context(|| format!("{flag} {value}: not a positive number"));
            match flag {
                "--job" => named.push(value),
                "--size" => options.size = Some(positive()?),
                "--count" => options.count = Some(positive()?),
                "--repetitions" => options.repetitions = positive()?,
                "--json" => options.json = Some(value.into()),
                _ => bail!("no option {flag}"),
            }
        }
        for name in &named {
            let known: Vec<_> = Job::ALL.iter().map(|job| job.name).collect();
            ensure!(known.contains(name), "no job {name}; there are {}", known.join(", "));
        }
        options.jobs.retain(|job| named.is_empty() || named.contains(&job.name));
        let most = options.jobs.iter().map(|job| job.concurrency).max().unwrap_or(1);
        ensure!(options.count.is_none_or(|count| count >= most), "--count must be at least {most}");
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_everything_unless_told_otherwise() {
        assert_eq!(Options::parse(&[]).unwrap().jobs.len(), Job::ALL.len());
        let options = Options::parse(&["--job", "list", "--size", "20", "--json", "out.json"]).unwrap();
        assert_eq!(options.jobs.len(), 1);
        assert_eq!((options.size, options.count), (Some(20), None));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for wrong in [&["--job", "sing"][..], &["--size", "0"], &["--size"], &["--loud", "yes"], &["--count", "3"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}

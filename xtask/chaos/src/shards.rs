//! Replicas that share keys, as processes on the real kube-apiserver: killed, stopped and restarted while objects change.
//!
//! The checks need no clocks of different machines: all processes are on this one. Each replica appends a line to a file before each
//! step of a reconcile. Per object, the tokens of these lines must never go back, and one token belongs to one replica.

mod caches;
mod cost;
mod driver;
mod history;
mod replica;
mod throughput;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

pub(crate) use self::replica::run as replica;

const USAGE: &str = "\
usage: klient-chaos shards [OPTIONS]

  --seconds N    how long replicas are killed and stopped (default 600)
  --objects N    the number of objects (default 10000)
  --replicas N   the number of replicas (default 5)
  --rate N       changes of objects per second (default 100)
  --seed N       the seed of the faults
  --throughput   only compare the throughput of 1, 2 and 4 replicas
  --cost         only measure the time that shards add to a reconcile, and the memory and traffic of caches";

/// The options of a run.
pub(crate) struct Options {
    pub(crate) time: Duration,
    pub(crate) objects: usize,
    pub(crate) replicas: usize,
    pub(crate) rate: u64,
    pub(crate) seed: u64,
    is_throughput: bool,
    is_cost: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let time = Duration::from_secs(600);
        let mut options =
            Self { time, objects: 10_000, replicas: 5, rate: 100, seed: 1, is_throughput: false, is_cost: false };
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let text = arguments.next().with_context(|| format!("{argument} needs a number"))?;
                text.parse().with_context(|| format!("{argument} {text:?} is not a number"))
            };
            match argument.as_str() {
                "--seconds" => options.time = Duration::from_secs(number()?),
                "--objects" => options.objects = usize::try_from(number()?)?.max(1),
                "--replicas" => options.replicas = usize::try_from(number()?)?.max(1),
                "--rate" => options.rate = number()?.max(1),
                "--seed" => options.seed = number()?,
                "--throughput" => options.is_throughput = true,
                "--cost" => options.is_cost = true,
                other => bail!("unknown option {other:?}\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

/// Runs the driver, and returns whether all checks hold.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> Result<bool> {
    let options = Options::parse(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match (options.is_throughput, options.is_cost) {
            (true, _) => throughput::run().await,
            (_, true) => Ok(cost::run().await? && caches::run().await?),
            _ => driver::run(&options).await,
        }
    })
}

/// The namespace of the objects and of the group's Leases.
const NAMESPACE: &str = "shop";

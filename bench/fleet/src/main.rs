//! Sets up a measurement: fills a server with objects, and records its responses for the replay server.
//! A separate program, so that the measured programs contain nothing but the measured work.

#![allow(clippy::print_stdout)]

mod custom;
mod pods;
mod record;
mod streams;

use anyhow::{Result, bail};
use bench_jobs::{Arguments, Job};
use klient::{
    Client,
    client::config::{Config, KubeconfigFiles, Overrides},
};

/// The number of objects that are created concurrently.
const WORKERS: usize = 8;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::of_process()?;
    let files = KubeconfigFiles::explicit(&arguments.kubeconfig);
    let client = Client::from_config(&Config::load(&files, &Overrides::default())?)?;
    match arguments.job {
        Job::Fill => pods::fill(&arguments, &client).await,
        Job::FillCustom => custom::fill(&arguments, &client).await,
        Job::Touch => pods::touch(&arguments, &client).await,
        Job::Record => record::record(&arguments, &client).await,
        Job::FillStreams => streams::fill(&arguments, &client).await,
        other => bail!("{} is for the programs that are measured", other.name()),
    }
}

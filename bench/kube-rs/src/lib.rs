//! The jobs of the benchmark, with kube. Two programs do them: one that is measured, and one that counts allocations.

mod controller;
mod informer;
mod read;
mod reads;
mod streams;
mod watch;
mod write;

use anyhow::{Result, bail};
use bench_jobs::{Arguments, FLEET, Job, Mark, make_connections, name, report};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

const LIBRARY: &str = "kube-rs";

/// Runs the job that the arguments of this process name.
///
/// # Errors
///
/// Returns an error if the job fails or its result is wrong.
pub async fn run() -> Result<()> {
    let arguments = Arguments::of_process()?;
    match arguments.job {
        Job::Queue | Job::QueueBurst | Job::QueueDelayed => bail!("kube has no queue by itself"),
        Job::ReadKey | Job::ReadTyped | Job::ReadKeyWrites => {
            let (measured, answer) = reads::read(&arguments)?;
            report(LIBRARY, &arguments, &measured, &answer);
            return Ok(());
        }
        _ => {}
    }
    let kubeconfig = Kubeconfig::read_from(&arguments.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let fleet: Api<Pod> = Api::namespaced(client.clone(), FLEET);
    if arguments.job == Job::Cold {
        let (measured, answer) = informer::sync(Mark::of_process(arguments.started)?, fleet).await?;
        report(LIBRARY, &arguments, &measured, &answer);
        return Ok(());
    }
    if let Some((measured, answer)) = streams::run(&arguments, &fleet).await? {
        report(LIBRARY, &arguments, &measured, &answer);
        return Ok(());
    }
    make_connections(&arguments, || {
        let fleet = fleet.clone();
        async move { Ok(fleet.get(&name(0)).await?) }
    })
    .await?;
    let (measured, answer) = match arguments.job {
        Job::Get => read::get(&arguments, fleet).await?,
        Job::List | Job::ListManaged => read::list(&arguments, &fleet).await?,
        Job::Create => write::create(&arguments, &client).await?,
        Job::Patch => write::patch(&arguments, fleet).await?,
        // kube returns whole objects typed only.
        Job::WatchKeys | Job::WatchTyped => watch::watch(&arguments, &fleet).await?,
        Job::Sync | Job::SyncList | Job::SyncDecoded => informer::sync(Mark::now()?, fleet).await?,
        Job::SyncWatchList => informer::sync_watch_list(fleet).await?,
        Job::SyncCustom => informer::sync_custom(&client).await?,
        Job::Events | Job::EventsTyped => informer::events(&arguments, fleet).await?,
        Job::Expire => informer::expire(&arguments, fleet).await?,
        Job::Controller => controller::run(&arguments, fleet).await?,
        // kube has no indices and no SPDY, and its watcher cannot start at a version.
        Job::ExecRead
        | Job::ExecWrite
        | Job::ExecReadSpdy
        | Job::ExecWriteSpdy
        | Job::ForwardRead
        | Job::ForwardWrite
        | Job::ForwardTurns
        | Job::InformerEvents
        | Job::Cold
        | Job::Index
        | Job::ReadKey
        | Job::ReadTyped
        | Job::ReadKeyWrites
        | Job::ReadIndex
        | Job::ReadIndexWrites
        | Job::Queue
        | Job::QueueBurst
        | Job::QueueDelayed => bail!("not offered"),
        Job::Fill | Job::FillCustom | Job::Touch | Job::Record | Job::FillStreams => bail!("bench-fleet does this"),
    };
    report(LIBRARY, &arguments, &measured, &answer);
    Ok(())
}

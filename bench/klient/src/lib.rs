//! The jobs of the benchmark, with klient. Two programs do them: one that is measured, and one that counts allocations.

#![allow(clippy::print_stdout)]

mod controller;
mod custom;
mod informer;
mod queue;
mod read;
mod reads;
mod replay;
mod streams;
mod watch;
mod write;

use anyhow::{Result, bail};
use bench_jobs::{Arguments, FLEET, Job, Mark, make_connections, name, report};
use k8s_openapi::api::core::v1::Pod;
use klient::informer::{FirstRead, ObjectFormat};
use klient::wire::ManagedFields;
use klient::{
    Api, Client,
    client::config::{Config, KubeconfigFiles, Overrides},
};

const LIBRARY: &str = "klient";

/// Runs the job that the arguments of this process name.
///
/// # Errors
///
/// Returns an error if the job fails or its result is wrong.
pub async fn run() -> Result<()> {
    let arguments = Arguments::of_process()?;
    let serverless = match arguments.job {
        Job::Queue => Some(queue::steady(&arguments).await?),
        Job::QueueBurst => Some(queue::burst(&arguments).await?),
        Job::QueueDelayed => Some(queue::delayed(&arguments).await?),
        Job::ReadKey | Job::ReadTyped | Job::ReadKeyWrites | Job::ReadIndex | Job::ReadIndexWrites => {
            Some(reads::read(&arguments)?)
        }
        _ => None,
    };
    if let Some((measured, answer)) = serverless {
        report(LIBRARY, &arguments, &measured, &answer);
        return Ok(());
    }
    let files = KubeconfigFiles::explicit(&arguments.kubeconfig);
    let client = Client::from_config(&Config::load(&files, &Overrides::default())?)?;
    let fleet: Api<Pod> = Api::namespaced(client.clone(), FLEET);
    if arguments.job == Job::Cold {
        let (measured, answer) =
            informer::sync(Mark::of_process(arguments.started)?, fleet, ObjectFormat::Wire, FirstRead::List).await?;
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
        Job::List => read::list(&arguments, &fleet).await?,
        Job::ListManaged => {
            let client = client.to_builder().managed_fields(ManagedFields::Keep).build();
            read::list(&arguments, &Api::namespaced(client, FLEET)).await?
        }
        Job::Create => write::create(&arguments, &client).await?,
        Job::Patch => write::patch(&arguments, fleet).await?,
        Job::WatchKeys => watch::keys(&arguments, &fleet).await?,
        Job::Sync | Job::SyncList => informer::sync(Mark::now()?, fleet, ObjectFormat::Wire, FirstRead::List).await?,
        Job::SyncWatchList => informer::sync(Mark::now()?, fleet, ObjectFormat::Wire, FirstRead::WatchList).await?,
        Job::SyncDecoded => informer::sync(Mark::now()?, fleet, ObjectFormat::Decoded, FirstRead::List).await?,
        Job::SyncCustom => custom::sync(&client).await?,
        Job::InformerEvents => informer::events(&arguments, fleet).await?,
        Job::Events => replay::events(&arguments, fleet, replay::take_key).await?,
        Job::EventsTyped => replay::events(&arguments, fleet, replay::take_object).await?,
        Job::Controller => controller::run(&arguments, fleet).await?,
        Job::Index => informer::index(&arguments, fleet).await?,
        Job::Expire => informer::expire(&arguments, fleet).await?,
        Job::WatchTyped => watch::typed(&arguments, &fleet).await?,
        other => bail!("{} is not measured", other.name()),
    };
    report(LIBRARY, &arguments, &measured, &answer);
    Ok(())
}

//! Namespaces, the fleet in them, and events to watch.

use std::time::Duration;

use anyhow::{Result, bail};
use bench_jobs::{Arguments, FIELD_MANAGER, FLEET, MADE, change, name};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use klient::{Api, Client};
use klient::{
    Patch,
    options::{CreateOptions, PatchOptions, UpdateOptions},
};

use crate::WORKERS;

/// Creates the fleet: each pod as a controller creates it, with the status that a kubelet sets.
pub(crate) async fn fill(arguments: &Arguments, client: &Client) -> Result<()> {
    wait_until_ready(client).await?;
    for namespace in [FLEET, MADE] {
        make_namespace(client, namespace).await?;
    }
    let fleet: Api<Pod> = Api::namespaced(client.clone(), FLEET);
    let create = CreateOptions::default().manager("kube-controller-manager");
    let update = UpdateOptions::default().manager("kubelet");
    let template = arguments.pod()?;
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (fleet, create, update, template) = (fleet.clone(), create.clone(), update.clone(), template.clone());
        let numbers = (worker..arguments.size).step_by(WORKERS);
        workers.spawn(async move {
            for number in numbers {
                let mut pod = template.clone();
                pod.metadata.name = Some(name(number));
                let mut made = fleet.create(&pod).options(create.clone()).await?;
                made.status.clone_from(&template.status);
                if let Some(status) = &mut made.status {
                    status.pod_ip = Some(format!("10.{}.{}.{}", number / 62_500, number / 250 % 250, number % 250));
                }
                fleet.update_status(&made).options(update.clone()).await?;
            }
            Ok::<_, klient::Error>(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    let bytes = serde_json::to_vec(&fleet.get(&name(0)).await?)?.len();
    println!("{}", serde_json::json!({"object_bytes": bytes}));
    Ok(())
}

/// Changes objects of the fleet, and prints the last resource version before the changes.
pub(crate) async fn touch(arguments: &Arguments, client: &Client) -> Result<()> {
    let fleet: Api<Pod> = Api::namespaced(client.clone(), FLEET);
    let since = fleet.list().limit(1).await?.metadata.resource_version;
    let options = PatchOptions::default().manager(FIELD_MANAGER);
    for number in 0..arguments.count {
        fleet.patch(&name(number % arguments.size), Patch::merge(change(number))).options(options.clone()).await?;
    }
    println!("{}", serde_json::json!({"since": since}));
    Ok(())
}

pub(crate) async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    Api::<Namespace>::cluster(client.clone()).create(&namespace).await?;
    // No controller creates the service account that pods run as.
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("default".to_owned());
    Api::<ServiceAccount>::namespaced(client.clone(), name).create(&account).await?;
    Ok(())
}

async fn wait_until_ready(client: &Client) -> Result<()> {
    for _ in 0..300 {
        if client.rest().get().path("/readyz").bytes().await.is_ok() {
            return Ok(());
        }
        // Another process is starting, and there is no event to wait for.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("the API server does not become ready");
}

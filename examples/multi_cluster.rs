//! One program for several clusters, which come and go; one of them fails.
//!
//! Each cluster is an embedded server. In production, the clusters come from Secrets with kubeconfigs, or from a directory.

#![allow(clippy::print_stdout)]

use std::error::Error;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller,
    cluster::{Cluster, ClusterSet, ClusterState, Fleet},
    controller::{Outcome, Request},
};
use klient_apiserver::{ApiServer, Fault};
use serde_json::json;
use tokio::sync::oneshot;

async fn reconcile(request: Request<ConfigMap>) -> Result<Outcome, klient::Error> {
    println!("cluster {}: {} because of: {}", request.cluster(), request.key(), request.reasons());
    Ok(Outcome::Done)
}

async fn start_cluster(name: &str) -> Result<(ApiServer, Cluster), Box<dyn Error>> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let menu = serde_json::from_value(json!({"metadata": {"name": "menu"}}))?;
    Api::<ConfigMap>::namespaced(client.clone(), "default").create(&menu).await?;
    Ok((server, Cluster::new(name, client)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (_east_server, east) = start_cluster("east").await?;
    let (west_server, west) = start_cluster("west").await?;
    west_server.inject(Fault::internal_error());
    let clusters = ClusterSet::of([east.clone(), west])?;
    let fleet = Fleet::builder("menus", &clusters)
        .controller(|cluster: &Cluster| {
            let maps = Api::<ConfigMap>::namespaced(cluster.client(), "default");
            Controller::builder("menus", maps).cluster(cluster.name()).reconcile(reconcile)
        })
        .build();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let fleet = fleet.clone();
        async move { fleet.run_until(async { drop(stopped.await) }).await }
    });

    // A cluster that fails delays no other.
    fleet.wait_until(|status| status.get("west").is_some_and(|west| west.state == ClusterState::Failing)).await;
    fleet.wait_until(|status| status.get("east").is_some_and(|east| east.state == ClusterState::Synced)).await;
    for (name, status) in fleet.status() {
        println!("{name}: {:?}, {:?}", status.state, status.problem);
    }

    // Another one takes its place.
    let (_north_server, north) = start_cluster("north").await?;
    clusters.set([east, north])?;
    fleet.wait_until(|status| status.get("north").is_some_and(|north| north.state == ClusterState::Synced)).await;
    fleet.wait_until(|status| !status.contains_key("west")).await;
    println!("clusters: {:?}", fleet.status().into_keys().collect::<Vec<_>>());
    drop(stop);
    running.await?;
    Ok(())
}

//! Replicas that share the keys of a controller: one starts, another one joins, and the first one leaves.
//!
//! On the embedded server, with both replicas in one process; each would be a pod of one Deployment. The times are short, so that the
//! example is: the defaults suit real clusters.

#![allow(clippy::print_stdout)]

use std::{error::Error, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, Manager,
    controller::{Outcome, Request},
    shard::{ShardKey, ShardOptions, Shards},
};
use klient_apiserver::ApiServer;
use serde_json::json;
use tokio::{sync::oneshot, task::JoinHandle};

/// A replica of the program.
struct Replica {
    shards: Shards,
    stop: oneshot::Sender<()>,
    running: JoinHandle<klient::Result<()>>,
}

async fn reconcile(request: Request<ConfigMap>) -> Result<Outcome, klient::Error> {
    // A system outside of Kubernetes could refuse writes with a lower token than the last one.
    let token = request.grant().map(|grant| grant.token());
    println!("  {} because of: {}, token {token:?}", request.key(), request.reasons());
    Ok(Outcome::Done)
}

async fn start(client: &Client, name: &str) -> Result<Replica, klient::Error> {
    let options = ShardOptions::default()
        .lease_duration(Duration::from_secs(2))
        .renew_deadline(Duration::from_millis(1400))
        .retry_period(Duration::from_millis(300))
        .settle(Duration::from_millis(200));
    let shards = Shards::new(client.clone(), "default", "menus", options)?.identity(name);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let controller = Controller::builder("menus", maps).sharded(ShardKey::object()).reconcile(reconcile);
    let manager = Manager::builder().shards(shards.clone()).controller(controller).build().await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
    Ok(Replica { shards, stop, running })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for number in 0..6 {
        maps.create(&serde_json::from_value(json!({"metadata": {"name": format!("menu-{number}")}}))?).await?;
    }

    println!("anna starts");
    let anna = start(&client, "anna").await?;
    anna.shards.wait_until(|status| status.open == 256).await;

    println!("berta joins");
    let berta = start(&client, "berta").await?;
    berta.shards.wait_until(|status| status.open == 128).await;
    for member in berta.shards.status().members {
        println!("{} owns {} slots", member.identity, member.slots);
    }

    println!("anna leaves");
    drop(anna.stop);
    anna.running.await??;
    println!("berta: {}", berta.shards.status());
    drop(berta.stop);
    berta.running.await??;
    Ok(())
}

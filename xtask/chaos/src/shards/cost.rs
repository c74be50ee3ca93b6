//! The time that shards add to a reconcile: the same controller with and without them, in one run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, Manager, ObjectKey,
    controller::{Outcome, Request},
    metrics::Registry,
    shard::{ShardKey, ShardOptions, Shards},
};
use klient_apiserver::ApiServer;
use tokio::sync::{Notify, oneshot};

/// Measures both kinds of controllers, in turn.
pub(super) async fn run() -> Result<bool> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    println!("cost: {KEYS} reconciles that do nothing, from request to end, medians of {ROUNDS} rounds");
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (times, is_sharded) in times.iter_mut().zip([false, true]) {
            times.push(measure(&client, is_sharded, round).await?);
        }
    }
    let [without, with] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2].as_nanos() as f64 / KEYS as f64
    });
    println!("without shards {without:.0} ns, with shards {with:.0} ns: {:.0} ns more", with - without);
    Ok(with - without < 1000.0)
}

async fn measure(client: &Client, is_sharded: bool, round: usize) -> Result<Duration> {
    let registry = Registry::new();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let (count, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, ended) = (Arc::clone(&count), Arc::clone(&done));
    let mut builder = Controller::builder("maps", maps).registry(registry.clone());
    if is_sharded {
        builder = builder.sharded(ShardKey::object());
    }
    let controller = builder.reconcile(move |_: Request<ConfigMap>| {
        if counted.fetch_add(1, Ordering::Relaxed) + 1 == KEYS {
            ended.notify_one();
        }
        async { Ok::<_, klient::Error>(Outcome::Done) }
    });
    let mut manager = Manager::builder().registry(registry.clone()).controller(controller.clone());
    let mut shards = None;
    if is_sharded {
        let options = ShardOptions::default()
            .lease_duration(Duration::from_secs(2))
            .renew_deadline(Duration::from_millis(1400))
            .retry_period(Duration::from_millis(300))
            .registry(registry);
        let member = Shards::new(client.clone(), "default", &format!("cost-{round}"), options)?;
        manager = manager.shards(member.clone());
        shards = Some(member);
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.build().await?.run_until(async { drop(stopped.await) }));
    if let Some(shards) = shards {
        shards.wait_until(|status| status.open == 256).await;
    }
    let keys: Vec<ObjectKey> =
        (0..KEYS).map(|number| ObjectKey::namespaced("default", &format!("map-{number}"))).collect();
    let began = Instant::now();
    keys.into_iter().for_each(|key| controller.request(key));
    tokio::time::timeout(Duration::from_secs(60), done.notified()).await.context("the reconciles do not end")?;
    let took = began.elapsed();
    drop(stop);
    running.await??;
    Ok(took)
}

const KEYS: usize = 200_000;
const ROUNDS: usize = 5;

//! A whole controller on the embedded server: the latency of reconciles after changes, and the cost of idling.
//!
//! `bench-reconcile [CHANGES_PER_SECOND] [SECONDS]`: one process with the server, the writer and the controller.
//! `bench-reconcile history`: turns with and without a history, in turn.

#![allow(clippy::print_stdout)]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bench_jobs::Mark;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Namespace, Node, Pod, Secret, Service, ServiceAccount};
use klient::{
    Api, Client, Controller, InformerFactory, Manager, ObjectKey, WorkQueue,
    controller::{HistoryLimits, Outcome, Request},
    metrics::Registry,
    workqueue::QueueOptions,
};
use klient_apiserver::ApiServer;

/// The number of objects that are changed in turn.
const OBJECTS: usize = 1000;
const WORKERS: usize = 4;
/// The time for which an idle manager with ten informers is measured.
const IDLE: Duration = Duration::from_secs(20);
/// The number of keys that are delayed and fail at once.
const KEYS: u32 = 100_000;

#[tokio::main]
async fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("history") {
        return history().await;
    }
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().context("a number is needed"));
    let rate = arguments.next().transpose()?.unwrap_or(10_000);
    let seconds = arguments.next().transpose()?.unwrap_or(5);
    ensure!(rate > 0 && seconds > 0, "nothing is to be done");
    changes(rate, Duration::from_secs(seconds)).await?;
    delays().await?;
    idle().await
}

fn client(server: &ApiServer) -> Client {
    Client::from_service(server.service())
}

/// Changes objects at a rate, and prints the latency of their reconciles.
async fn changes(rate: u64, time: Duration) -> Result<()> {
    let server = ApiServer::start().await?;
    let client = client(&server);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut objects = Vec::new();
    for number in 0..OBJECTS {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("map-{number}"));
        objects.push(maps.create(&map).await?);
    }
    let began = Instant::now();
    let latencies: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let noted = Arc::clone(&latencies);
    let informer = InformerFactory::new(client).core_v1().config_maps();
    let controller =
        Controller::builder("bench", informer).workers(WORKERS).reconcile(move |request: Request<ConfigMap>| {
            let noted = Arc::clone(&noted);
            async move {
                let map = request.object()?;
                let stamp = map.as_ref().and_then(|map| map.data.as_ref()?.get("at")?.parse().ok());
                if let (Some(stamp), Ok(mut noted)) = (stamp, noted.lock()) {
                    noted.push(began.elapsed().saturating_sub(Duration::from_micros(stamp)));
                }
                Ok::<_, klient::Error>(Outcome::Done)
            }
        });
    let running = tokio::spawn({
        let controller = controller.clone();
        async move { controller.run_until(std::future::pending()).await }
    });
    while controller.status().succeeded < OBJECTS as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (start, mark) = (Instant::now(), Mark::now()?);
    let mut done: u64 = 0;
    while start.elapsed() < time {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        while done < due {
            let map = &mut objects[usize::try_from(done)? % OBJECTS];
            let stamp = began.elapsed().as_micros().to_string();
            map.data.get_or_insert_default().insert("at".to_owned(), stamp);
            map.metadata.resource_version = None;
            maps.update(map).await?;
            done += 1;
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    let took = start.elapsed();
    while controller.status().queue.ready + controller.status().queue.in_process > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let cpu = mark.measured()?.cpu_seconds;
    running.abort();
    let mut latencies = std::mem::take(&mut *latencies.lock().map_err(|_| anyhow::anyhow!("a reconcile panicked"))?);
    latencies.sort_unstable();
    let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!(
        "{:.0} changes per second requested, {:.0} written in {:.1} s; {} reconciles; latency: p50 {:.0?}, p99 {:.0?}, longest {:.0?}",
        rate,
        done as f64 / took.as_secs_f64(),
        took.as_secs_f64(),
        latencies.len(),
        at(0.5),
        at(0.99),
        latencies.last().copied().unwrap_or_default(),
    );
    println!("CPU of server, writer and controller together: {:.1} us per change", cpu / done as f64 * 1e6);
    Ok(())
}

/// Reconciles all keys again and again, with and without a history in turn, and prints the CPU time of a turn.
async fn history() -> Result<()> {
    const ROUNDS: usize = 7;
    let server = ApiServer::start().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client(&server), "default");
    let mut keys = Vec::new();
    for number in 0..10_000 {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("map-{number}"));
        maps.create(&map).await?;
        keys.push(ObjectKey::namespaced("default", &format!("map-{number}")));
    }
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..2 * ROUNDS {
        let is_recorded = round % 2 == 1;
        let informer = InformerFactory::new(client(&server)).core_v1().config_maps();
        let mut builder = Controller::builder("bench", informer).workers(WORKERS).registry(Registry::new());
        if is_recorded {
            builder = builder.history(HistoryLimits::default());
        }
        let controller = builder.reconcile(|request: Request<ConfigMap>| async move {
            request.object()?;
            Ok::<_, klient::Error>(Outcome::Done)
        });
        let running = tokio::spawn({
            let controller = controller.clone();
            async move { controller.run_until(std::future::pending()).await }
        });
        let reached = async |turns: u64| {
            while controller.status().succeeded < turns {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        reached(keys.len() as u64).await;
        let mark = Mark::now()?;
        for pass in 1..=20 {
            keys.iter().for_each(|key| controller.request(key.clone()));
            reached((pass + 1) * keys.len() as u64).await;
        }
        let turns = 20 * keys.len();
        let cost = mark.measured()?.cpu_seconds / turns as f64 * 1e6;
        println!("history {is_recorded}: {cost:.3} us of CPU per turn");
        costs[usize::from(is_recorded)].push(cost);
        if let Some(history) = controller.report().history {
            println!("  {} bytes per key, {} turns", history.key_bytes / history.keys.max(1), history.turns);
        }
        running.abort();
    }
    costs.iter_mut().for_each(|costs| costs.sort_by(f64::total_cmp));
    let [off, on] = costs.map(|costs| costs[ROUNDS / 2]);
    println!("medians of {ROUNDS} rounds: {off:.3} us without a history, {on:.3} us with it");
    Ok(())
}

/// Sends many keys through one queue, each delayed first and failing once.
async fn delays() -> Result<()> {
    let mark = Mark::now()?;
    let start = Instant::now();
    let options = QueueOptions::default().rate_limiter(klient::workqueue::ExponentialBackoff::default());
    let queue = WorkQueue::with_options(options);
    for key in 0..KEYS {
        queue.add_after(key, Duration::from_millis(u64::from(key % 100)));
    }
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..WORKERS {
        let queue = queue.clone();
        workers.spawn(async move {
            while let Some(item) = queue.get().await {
                if item.failures() == 0 {
                    item.retry()
                } else {
                    item.forget()
                }
                if queue.is_empty() && queue.delayed() == 0 && queue.in_process() == 0 {
                    queue.shut_down();
                }
            }
        });
    }
    while workers.join_next().await.is_some() {}
    let cpu = mark.measured()?.cpu_seconds;
    println!(
        "{KEYS} keys through a delay and a failure each: {:.2} s, {:.2} us CPU per key",
        start.elapsed().as_secs_f64(),
        cpu / f64::from(KEYS) * 1e6
    );
    Ok(())
}

/// Measures an idle manager with ten informers.
async fn idle() -> Result<()> {
    let server = ApiServer::start().await?;
    let client = client(&server);
    let factory = InformerFactory::new(client);
    let manager = Manager::builder()
        .informer(&factory.namespaced::<ConfigMap>())
        .informer(&factory.namespaced::<Secret>())
        .informer(&factory.namespaced::<Pod>())
        .informer(&factory.namespaced::<Service>())
        .informer(&factory.namespaced::<ServiceAccount>())
        .informer(&factory.namespaced::<Endpoints>())
        .informer(&factory.cluster::<Node>())
        .informer(&factory.cluster::<Namespace>())
        .informer(&factory.apps_v1().deployments())
        .informer(&factory.apps_v1().replica_sets())
        .serve(([127, 0, 0, 1], 0))
        .build()
        .await?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
    factory.wait_for_sync().await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mark = Mark::now()?;
    tokio::time::sleep(IDLE).await;
    let share = mark.measured()?.cpu_seconds / IDLE.as_secs_f64();
    println!("a manager with ten informers that is idle: {:.3} % of one core, the server included", share * 100.0);
    drop(stop);
    running.await??;
    Ok(())
}

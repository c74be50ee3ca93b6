//! One replica: a process with a manager whose controller is sharded. It ends when its standard input does.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, Error, ErrorKind, Manager,
    controller::{Outcome, Request},
    shard::{ShardKey, ShardOptions, Shards},
};

use super::NAMESPACE;

/// The state that all reconciles of a replica share.
struct Replica {
    name: String,
    maps: Api<ConfigMap>,
    history: File,
    /// Whether reconciles only wait, again and again, instead of writing.
    waits: Option<Duration>,
}

/// Runs a replica until its standard input ends or it is asked to terminate. Takes its name, the file of its history, the milliseconds that
/// a reconcile waits if it only waits, and the number of workers.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> Result<bool> {
    let mut next = || arguments.next().context("replica needs a name, a file, a time and a number of workers");
    let (name, file, waits, workers) = (next()?, next()?, next()?, next()?.parse()?);
    let waits = Some(Duration::from_millis(waits.parse()?)).filter(|waits| !waits.is_zero());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::infer()?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let history = OpenOptions::new().create(true).append(true).open(file)?;
        let replica = Arc::new(Replica { name: name.clone(), maps: maps.clone(), history, waits });
        let controller = Controller::builder("maps", maps)
            .workers(workers)
            .sharded(ShardKey::object())
            .reconcile_with(replica, reconcile);
        let options = ShardOptions::default().settle(Duration::from_secs(3)).drain(Duration::from_secs(3));
        let shards = Shards::new(client, NAMESPACE, "maps", options)?.identity(name);
        let manager = Manager::builder().shards(shards).controller(controller).build().await?;
        std::thread::spawn(|| {
            // The driver writes nothing. When it has ended, so does its replica.
            let _ = std::io::stdin().read(&mut [0]);
            std::process::exit(3);
        });
        manager.run().await?;
        Ok(true)
    })
}

impl Replica {
    /// Notes one step of a reconcile: when, on which object, by which right.
    fn step(&self, request: &Request<ConfigMap>) -> Result<u64, Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let token = request.grant().map_or(0, |grant| grant.token());
        let line = format!("{now} {} {token} {}\n", request.name(), self.name);
        // One write, so that lines are whole whenever the process is killed.
        (&self.history)
            .write_all(line.as_bytes())
            .map_err(|error| Error::new(ErrorKind::Transport, error.to_string()))?;
        Ok(token)
    }
}

/// Writes the value that it has seen into the object, with the token of its right. Refuses to overwrite a higher token.
async fn reconcile(request: Request<ConfigMap>, replica: Arc<Replica>) -> Result<Outcome, Error> {
    if let Some(waits) = replica.waits {
        replica.step(&request)?;
        tokio::time::sleep(waits).await;
        return Ok(Outcome::RequeueAfter(Duration::from_millis(1)));
    }
    let token = replica.step(&request)?;
    let Some(map) = request.object()? else { return Ok(Outcome::Done) };
    tokio::time::sleep(Duration::from_millis(10)).await;
    replica.step(&request)?;
    let mut map = ConfigMap::clone(&map);
    let data = map.data.get_or_insert_default();
    if data.get("seen") != data.get("n") {
        let stored: u64 = data.get("token").and_then(|token| token.parse().ok()).unwrap_or(0);
        if stored > token {
            return Err(Error::new(ErrorKind::Conflict, format!("token {token} after {stored}")));
        }
        let seen = data.get("n").cloned().unwrap_or_default();
        data.insert("seen".to_owned(), seen);
        data.insert("token".to_owned(), token.to_string());
        replica.maps.update(&map).await?;
        replica.step(&request)?;
    }
    Ok(Outcome::Done)
}

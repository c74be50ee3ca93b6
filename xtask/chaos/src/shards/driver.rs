//! The driver: starts replicas, changes objects, kills and stops replicas, and checks what they did.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use klient::{
    Api, Client, Patch, SharedInformer,
    client::config::{Config, KubeconfigFiles, Overrides},
    informer::Event,
};
use klient_harness::{Programs, Server};
use serde_json::json;
use tokio::{task::JoinSet, time::sleep};

use super::{
    NAMESPACE, Options,
    history::{History, Resumed},
};
use crate::rng::Rng;

/// The real server, and the processes that use it.
pub(super) struct Stage {
    // Dropped before the server and the folder: a process without a server would only log failures.
    pub(super) replicas: Vec<Replica>,
    pub(super) client: Client,
    kubeconfig: PathBuf,
    pub(super) folder: tempfile::TempDir,
    _server: Server,
}

/// One place for a replica, with one process after the other.
pub(super) struct Replica {
    number: usize,
    started: usize,
    process: Option<Child>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Replica {
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // A process that has ended already cannot be killed, which is as good.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Returns the name of the process that was started last.
    fn name(&self) -> String {
        format!("r{}-{}", self.number, self.started)
    }

    /// Sends a signal by its name.
    fn signal(&self, name: &str) -> Result<()> {
        let process = self.process.as_ref().context("the replica does not run")?;
        let status = Command::new("kill").arg(format!("-{name}")).arg(process.id().to_string()).status()?;
        ensure!(status.success(), "kill -{name} failed");
        Ok(())
    }
}

impl Stage {
    /// Starts the servers, and creates objects.
    pub(super) async fn start(objects: usize) -> Result<Self> {
        let server = tokio::task::spawn_blocking(|| {
            let programs = Programs::find_or_build()?;
            Server::start(&programs)
        });
        let server = server.await??;
        let kubeconfig = server.kubeconfig();
        let config = Config::load(&KubeconfigFiles::explicit(&kubeconfig), &Overrides::default())?;
        let client = Client::from_config(&config)?;
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        Api::<Namespace>::cluster(client.clone()).create(&namespace).await?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let mut creating = JoinSet::new();
        for part in 0..16 {
            let maps = maps.clone();
            creating.spawn(async move {
                for number in (part..objects).step_by(16) {
                    let object = json!({"metadata": {"name": name(number)}, "data": {"n": "0", "seen": "0"}});
                    maps.create(&serde_json::from_value(object)?).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(created) = creating.join_next().await {
            created??;
        }
        Ok(Self { replicas: Vec::new(), client, kubeconfig, folder: tempfile::tempdir()?, _server: server })
    }

    /// Adds places for replicas, and starts a process in each.
    pub(super) fn add_replicas(&mut self, count: usize, waits: Duration, workers: usize) -> Result<()> {
        for _ in 0..count {
            let number = self.replicas.len();
            self.replicas.push(Replica { number, started: 0, process: None });
            self.start_replica(number, waits, workers)?;
        }
        Ok(())
    }

    fn start_replica(&mut self, number: usize, waits: Duration, workers: usize) -> Result<()> {
        let replica = &mut self.replicas[number];
        replica.started += 1;
        let name = replica.name();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("replica").arg(&name).arg(self.folder.path().join(&name));
        command.arg(waits.as_millis().to_string()).arg(workers.to_string());
        command.env("KUBECONFIG", &self.kubeconfig).stdin(Stdio::piped()).stdout(Stdio::null());
        replica.process = Some(command.spawn()?);
        Ok(())
    }
}

fn name(number: usize) -> String {
    format!("map-{number}")
}

/// The objects as the driver sees them: the value of each, and the one that a replica has seen.
#[derive(Default)]
struct Objects {
    values: HashMap<String, (String, String, u64)>,
    waiting: HashMap<String, Instant>,
    slowest: Vec<Duration>,
    problems: Vec<String>,
}

impl Objects {
    fn observe(&mut self, map: &ConfigMap) {
        let (Some(name), Some(data)) = (&map.metadata.name, &map.data) else { return };
        let value = |key: &str| data.get(key).cloned().unwrap_or_default();
        let token: u64 = value("token").parse().unwrap_or(0);
        let (n, seen) = (value("n"), value("seen"));
        if n == seen
            && let Some(since) = self.waiting.remove(name)
        {
            self.slowest.push(since.elapsed());
        } else if n != seen {
            self.waiting.entry(name.clone()).or_insert_with(Instant::now);
        }
        let before = self.values.insert(name.clone(), (n, seen, token));
        if let Some((_, _, before)) = before.filter(|(_, _, before)| *before > token) {
            self.problems.push(format!("{name}: token {token} was written after {before}"));
        }
    }
}

/// Runs replicas under faults, and checks what they did.
pub(super) async fn run(options: &Options) -> Result<bool> {
    println!(
        "shards: {} replicas, {} objects, {:?}, seed {}",
        options.replicas, options.objects, options.time, options.seed
    );
    let mut stage = Stage::start(options.objects).await?;
    let objects = Arc::new(Mutex::new(Objects::default()));
    let maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let informer = SharedInformer::new(maps.clone());
    let observed = Arc::clone(&objects);
    let _registration = informer.add_handler(move |event: &Event<ConfigMap>| {
        if let Ok(map) = event.object().decode() {
            observed.lock().unwrap_or_else(PoisonError::into_inner).observe(&map);
        }
    });
    informer.start();
    informer.wait_for_sync().await?;
    stage.add_replicas(options.replicas, Duration::ZERO, 8)?;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let writing = tokio::spawn(write(maps, options.objects, options.rate, Rng::new(options.seed ^ 7), stopped));
    let mut faults = Faults::default();
    let result = trouble(&mut stage, options, &mut faults).await;
    stop.send_replace(true);
    let writes = writing.await??;
    result?;
    let settled = settle(&objects, options.objects).await;
    for replica in &stage.replicas {
        replica.signal("TERM")?;
    }
    for replica in &mut stage.replicas {
        let mut process = replica.process.take().context("the replica does not run")?;
        // A replica whose standard input ends exits at once, without handing its keys over.
        let input = process.stdin.take();
        let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
        ensure!(ended.success(), "replica {} ended with {ended}", replica.number);
        drop(input);
    }
    report(&objects, writes, &faults, settled, stage.folder.path())
}

/// Counts of faults.
#[derive(Default)]
struct Faults {
    killed: u32,
    stopped: u32,
    terminated: u32,
    resumed: Vec<Resumed>,
}

/// Kills, stops and terminates replicas every few seconds.
async fn trouble(stage: &mut Stage, options: &Options, faults: &mut Faults) -> Result<()> {
    let mut rng = Rng::new(options.seed);
    let end = Instant::now() + options.time;
    // The first table of a group takes a lease duration.
    sleep(Duration::from_secs(25)).await;
    while Instant::now() < end {
        let number = rng.range(0, stage.replicas.len() as u64) as usize;
        match rng.range(0, 3) {
            0 => {
                faults.killed += 1;
                stage.replicas[number].kill();
                sleep(Duration::from_millis(200 + rng.range(0, 3000))).await;
                stage.start_replica(number, Duration::ZERO, 8)?;
            }
            1 => {
                faults.stopped += 1;
                stage.replicas[number].signal("STOP")?;
                // Shorter and longer than the lease.
                sleep(Duration::from_millis(500 + rng.range(0, 24_000))).await;
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                faults.resumed.push((stage.replicas[number].name(), now.as_nanos()));
                stage.replicas[number].signal("CONT")?;
            }
            _ => {
                faults.terminated += 1;
                stage.replicas[number].signal("TERM")?;
                sleep(Duration::from_millis(500 + rng.range(0, 3000))).await;
                stage.replicas[number].kill();
                stage.start_replica(number, Duration::ZERO, 8)?;
            }
        }
        sleep(Duration::from_millis(500 + rng.range(0, 3000))).await;
    }
    Ok(())
}

/// Changes random objects until it is stopped. Returns the number of changes.
async fn write(
    maps: Api<ConfigMap>,
    objects: usize,
    rate: u64,
    mut rng: Rng,
    mut stopped: tokio::sync::watch::Receiver<bool>,
) -> Result<u64> {
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / rate));
    for number in 1u64.. {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.changed() => return Ok(number - 1),
        }
        let patch = Patch::merge(json!({"data": {"n": number.to_string()}}));
        maps.patch(&name(rng.range(0, objects as u64) as usize), patch).await?;
    }
    Ok(0)
}

/// Waits until every object was reconciled after its last change. Returns how long that took, or `None` after two minutes.
async fn settle(objects: &Mutex<Objects>, count: usize) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(120) {
        {
            let objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
            if objects.waiting.is_empty() && objects.values.len() == count {
                return Some(began.elapsed());
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
    None
}

fn report(
    objects: &Mutex<Objects>,
    writes: u64,
    faults: &Faults,
    settled: Option<Duration>,
    folder: &Path,
) -> Result<bool> {
    let checked = History::read(folder)?.check(&faults.resumed);
    let mut objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
    objects.slowest.sort();
    let slowest = &objects.slowest;
    let at = |part: f64| slowest.get(((slowest.len().max(1) - 1) as f64 * part) as usize).copied().unwrap_or_default();
    println!("faults: {} kill -9, {} SIGSTOP, {} SIGTERM", faults.killed, faults.stopped, faults.terminated);
    println!("{writes} changes, {} steps of reconciles, {} takeovers of objects", checked.steps, checked.takeovers);
    println!("from a change to its reconcile: median {:.0?}, 99 % {:.1?}, longest {:.1?}", at(0.5), at(0.99), at(1.0));
    match settled {
        Some(settled) => println!("every object was reconciled after its last change, {settled:.1?} after the end"),
        None => println!("FAILED: {} objects were not reconciled after their last change", objects.waiting.len()),
    }
    println!("overlaps: {}; steps that a suspension interrupted: {}", checked.overlaps.len(), checked.suspended);
    checked.overlaps.iter().chain(&objects.problems).take(20).for_each(|problem| println!("FAILED: {problem}"));
    Ok(settled.is_some() && checked.overlaps.is_empty() && objects.problems.is_empty() && checked.takeovers > 0)
}

//! The memory and the traffic of replicas whose caches have everything, or only their own objects: on the real server, in one run.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body::Frame;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use klient::{
    Api, BoxError, Client, Controller, Manager, Patch, SharedInformer,
    client::{
        config::{Config, KubeconfigFiles, Overrides},
        http::{Body, SendFuture, Transport},
    },
    controller::{Outcome, Request},
    metrics::Registry,
    shard::{ShardKey, ShardOptions, Shards},
};
use klient_harness::{Programs, Server};
use serde_json::json;
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use super::NAMESPACE;
use crate::checks::live_bytes;

/// The content of the cache of each replica.
#[derive(Clone, Copy)]
enum Cache {
    Everything,
    DroppedAtIngest,
    FilteredByServer,
}

/// A replica of a controller that does nothing.
struct Replica {
    informer: SharedInformer<ConfigMap>,
    shards: Shards,
    received: Arc<AtomicU64>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<klient::Result<()>>,
}

/// Measures each kind of caches in turn, on one server that can select objects.
pub(super) async fn run() -> Result<bool> {
    println!("caches: {OBJECTS} ConfigMaps with {SIZE} bytes of data each, {REPLICAS} replicas; per replica:");
    let server = tokio::task::spawn_blocking(|| {
        let programs = Programs::find_or_build()?;
        Server::start_with(&programs, &[("feature-gates", "ShardedListAndWatch=true")])
    });
    let server = server.await??;
    let config = Config::load(&KubeconfigFiles::explicit(server.kubeconfig()), &Overrides::default())?;
    let client = Client::from_config(&config)?;
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    Api::<Namespace>::cluster(client.clone()).create(&namespace).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    // Data that does not compress to nothing: each object has another one.
    let data =
        |round: usize, number: usize| format!("{:x}", (round * OBJECTS + number) * 2_654_435_761).repeat(SIZE / 8);
    for_all(&maps, move |maps, number| async move {
        let map = json!({"metadata": {"name": format!("map-{number}")}, "data": {"text": data(0, number)}});
        maps.create(&serde_json::from_value(map)?).await?;
        Ok(())
    })
    .await?;
    for (round, cache) in [Cache::Everything, Cache::DroppedAtIngest, Cache::FilteredByServer].into_iter().enumerate() {
        measure(&config, &maps, round, cache, data).await?;
    }
    Ok(true)
}

async fn measure(
    config: &Config,
    maps: &Api<ConfigMap>,
    round: usize,
    cache: Cache,
    data: impl Fn(usize, usize) -> String + Copy + Send + Sync + 'static,
) -> Result<()> {
    let before = live_bytes();
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(Replica::start(config, round, cache).await?);
    }
    for replica in &replicas {
        replica.wait_for_share().await?;
    }
    let expected = if matches!(cache, Cache::Everything) { OBJECTS * REPLICAS } else { OBJECTS };
    wait_until(&replicas, || {
        replicas.iter().map(|replica| replica.informer.status().objects).sum::<usize>() == expected
    })
    .await
    .context("the caches do not have the expected objects")?;
    let (heap, at_start) = (live_bytes() - before, received(&replicas));
    for_all(maps, move |maps, number| async move {
        maps.patch(&format!("map-{number}"), Patch::merge(json!({"data": {"text": data(round + 1, number)}}))).await?;
        Ok(())
    })
    .await?;
    let last = maps.patch("map-0", Patch::merge(json!({"data": {"last": round.to_string()}}))).await?;
    let last = last.metadata.resource_version.unwrap_or_default().into();
    let own = replicas.iter().filter(|replica| replica.informer.lister().namespace(NAMESPACE).get("map-0").is_some());
    for replica in own {
        replica.informer.wait_until_seen(&last).await?;
    }
    // The owner of the last object has all of its events. The others need a moment, or had theirs before.
    wait_until(&replicas, || {
        replicas.iter().map(|replica| replica.informer.status().events).sum::<u64>() >= events(cache)
    })
    .await
    .context("the caches do not follow the changes")?;
    let (after, objects) = (received(&replicas), replicas[0].informer.status());
    let dropped: u64 = replicas.iter().map(|replica| replica.informer.status().dropped).sum::<u64>() / REPLICAS as u64;
    let mib = |bytes: f64| bytes / f64::from(1 << 20) / REPLICAS as f64;
    println!(
        "{}: {} objects in one cache, {:.1} MiB of heap; received {:.1} MiB until it was full and {:.1} MiB while each object changed once, {dropped} objects and events dropped",
        cache.name(),
        objects.objects,
        mib(heap as f64),
        mib(at_start as f64),
        mib((after - at_start) as f64),
    );
    for replica in replicas {
        drop(replica.stop);
        replica.task.await??;
    }
    // Connections and tasks free their memory a moment later, which must not count for the next kind of caches.
    tokio::time::sleep(Duration::from_secs(3)).await;
    Ok(())
}

impl Cache {
    fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::DroppedAtIngest => "dropped at ingest",
            Self::FilteredByServer => "filtered by the server",
        }
    }
}

/// Returns the number of events that all replicas receive at least while each object changes once.
fn events(cache: Cache) -> u64 {
    let copies = if matches!(cache, Cache::FilteredByServer) { 1 } else { REPLICAS };
    (OBJECTS * copies) as u64
}

fn received(replicas: &[Replica]) -> u64 {
    replicas.iter().map(|replica| replica.received.load(Ordering::Relaxed)).sum()
}

/// Waits until a condition of the caches holds.
async fn wait_until(replicas: &[Replica], holds: impl Fn() -> bool) -> Result<()> {
    let waiting = async {
        let mut every = tokio::time::interval(Duration::from_millis(50));
        while !holds() {
            every.tick().await;
        }
    };
    let status = || replicas.iter().map(|replica| replica.informer.status()).collect::<Vec<_>>();
    tokio::time::timeout(Duration::from_secs(120), waiting).await.with_context(|| format!("{:?}", status()))
}

/// Calls a function with the number of each object, some at a time.
async fn for_all<F: Future<Output = Result<()>> + Send + 'static>(
    maps: &Api<ConfigMap>,
    work: impl Fn(Api<ConfigMap>, usize) -> F + Copy + Send + Sync + 'static,
) -> Result<()> {
    let mut parts = JoinSet::new();
    for part in 0..16 {
        let maps = maps.clone();
        parts.spawn(async move {
            for number in (part..OBJECTS).step_by(16) {
                work(maps.clone(), number).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(part) = parts.join_next().await {
        part??;
    }
    Ok(())
}

impl Replica {
    async fn start(config: &Config, round: usize, cache: Cache) -> Result<Self> {
        let (registry, received) = (Registry::new(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&received);
        let client = Client::builder_from_config(config)?.layer(|inner| Counting { inner, received: counted }).build();
        let informer = SharedInformer::new(Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE));
        let builder = Controller::builder("maps", informer.clone()).registry(registry.clone());
        let builder = match cache {
            Cache::Everything => builder.sharded(ShardKey::object()),
            Cache::DroppedAtIngest => builder.sharded(ShardKey::object()).cache_own_shard(),
            Cache::FilteredByServer => builder.sharded(ShardKey::uid()).cache_own_shard(),
        };
        let controller = builder.reconcile(|_: Request<ConfigMap>| async { Ok::<_, klient::Error>(Outcome::Done) });
        let options = ShardOptions::default()
            .lease_duration(Duration::from_secs(6))
            .renew_deadline(Duration::from_secs(4))
            .retry_period(Duration::from_millis(500))
            .settle(Duration::from_secs(1))
            .registry(registry.clone());
        let shards = Shards::new(client, NAMESPACE, &format!("caches-{round}"), options)?;
        let manager = Manager::builder().registry(registry).shards(shards.clone()).controller(controller);
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(manager.build().await?.run_until(async { drop(stopped.await) }));
        Ok(Self { informer, shards, received, stop, task })
    }

    async fn wait_for_share(&self) -> Result<()> {
        let share = 256 / REPLICAS;
        let waiting = self.shards.wait_until(|status| status.open == share && status.moves.is_empty());
        let outcome = tokio::time::timeout(Duration::from_secs(120), waiting).await;
        ensure!(outcome.is_ok(), "the replica has no share: {}", self.shards.status());
        Ok(())
    }
}

/// A layer that counts the bytes of lists and watches as they arrive, compressed or not.
struct Counting {
    inner: Arc<dyn Transport>,
    received: Arc<AtomicU64>,
}

impl Transport for Counting {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        Box::pin(async move {
            let is_counted = request.uri().path().ends_with("/configmaps");
            let response = self.inner.send(request).await?;
            let received = Arc::clone(&self.received);
            Ok(if is_counted {
                response.map(|body| Body::new(CountingBody { inner: body, received }))
            } else {
                response
            })
        })
    }
}

struct CountingBody {
    inner: Body,
    received: Arc<AtomicU64>,
}

impl http_body::Body for CountingBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            self.received.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }
}

const OBJECTS: usize = 20_000;
const SIZE: usize = 1024;
const REPLICAS: usize = 4;

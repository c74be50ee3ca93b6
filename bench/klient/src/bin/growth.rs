//! How an informer's costs grow with the number of objects, and how reads scale with readers while somebody writes.
//!
//! Needs no server: the source makes lists and events from one pod's protobuf bytes. `growth [SIZE]...` prints a table.

#![allow(clippy::print_stdout)]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bench_jobs::{Mark, resident};
use k8s_openapi::api::core::v1::Pod;
use klient::informer::{
    CachedObject, Event, IndexFunc, ListItems, ListWatch, SharedInformer, ThreadSafeStore, WatchEvents,
};
use klient::wire::{ListEnd, ManagedFields, RawObject};
use klient::{Error, ListOptions, WatchEvent, WatchOptions};
use tokio::sync::mpsc;

const EVENTS: usize = 20_000;
const LOOKUPS: usize = 1_000_000;

/// Pods by number, all alike but for their names and versions.
struct Pods {
    template: Pod,
}

impl Pods {
    fn make(&self, number: usize, version: usize) -> RawObject {
        let mut pod = self.template.clone();
        pod.metadata.name = Some(format!("web-{number:06}"));
        pod.metadata.namespace = Some("fleet".to_owned());
        pod.metadata.uid = Some(format!("uid-{number}"));
        pod.metadata.resource_version = Some(version.to_string());
        let message = klient::wire::encode(&pod).expect("a pod can be encoded");
        RawObject::from_protobuf(&message, ManagedFields::Drop).expect("what was encoded can be read")
    }
}

/// Lists objects that are made beforehand, then gives out the events that it is sent.
struct Source {
    list: Mutex<Option<Vec<RawObject>>>,
    events: Mutex<Option<mpsc::UnboundedReceiver<RawObject>>>,
}

struct Items {
    items: std::vec::IntoIter<RawObject>,
}

struct Events {
    events: mpsc::UnboundedReceiver<RawObject>,
}

impl ListWatch for Source {
    type Kind = Pod;
    type List = Items;
    type Watch = Events;

    async fn list(&self, _: ListOptions, _: ManagedFields) -> Result<Items, Error> {
        let items = self.list.lock().ok().and_then(|mut list| list.take()).unwrap_or_default();
        Ok(Items { items: items.into_iter() })
    }

    async fn watch(&self, _: WatchOptions, _: ManagedFields) -> Result<Events, Error> {
        let events = self.events.lock().ok().and_then(|mut events| events.take());
        match events {
            Some(events) => Ok(Events { events }),
            None => std::future::pending().await,
        }
    }

    fn describe(&self) -> String {
        "pods".to_owned()
    }
}

impl ListItems for Items {
    async fn next(&mut self) -> Option<Result<RawObject, Error>> {
        self.items.next().map(Ok)
    }

    fn end(&mut self) -> Option<ListEnd> {
        let mut end = ListEnd::default();
        end.metadata.resource_version = Some("1".to_owned());
        Some(end)
    }
}

impl WatchEvents for Events {
    async fn next(&mut self) -> Option<Result<WatchEvent<RawObject>, Error>> {
        self.events.recv().await.map(|object| Ok(WatchEvent::Modified(object)))
    }

    fn is_ended(&self) -> bool {
        false
    }
}

fn main() -> Result<()> {
    let sizes: Vec<usize> = std::env::args().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    let sizes = if sizes.is_empty() { vec![1_000, 10_000, 50_000, 200_000] } else { sizes };
    let text = std::fs::read("pod.json").or_else(|_| std::fs::read("bench/pod.json")).context("bench/pod.json")?;
    let pods = Pods { template: serde_json::from_slice(&text)? };
    println!(
        "| objects | sync, CPU us each | event to handler, CPU us | 20 by index, CPU ns | store and objects, bytes each |"
    );
    println!("|---|---|---|---|---|");
    for size in &sizes {
        grow(&pods, *size)?;
    }
    println!("\n| readers while one writes | lookups of 20 objects per second | writes per second |");
    println!("|---|---|---|");
    for readers in [1, 2, 4, 8] {
        read(&pods, readers)?;
    }
    Ok(())
}

fn grow(pods: &Pods, size: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let before = resident()?;
    let list: Vec<_> = (0..size).map(|number| pods.make(number, number + 2)).collect();
    let changes: Vec<_> = (0..EVENTS).map(|number| pods.make(number * 7919 % size, 1_000_000 + number)).collect();
    let changes_bytes: usize = changes.iter().map(|change| change.bytes().len() + 16).sum();
    let (sender, receiver) = mpsc::unbounded_channel();
    let source = Source { list: Mutex::new(Some(list)), events: Mutex::new(Some(receiver)) };
    runtime.block_on(async {
        let informer = SharedInformer::new(source);
        let by_group =
            IndexFunc::new(|pod: &CachedObject<Pod>, found| found.add(&group_of(pod.key().name()).to_string()));
        let groups = informer.add_index("group", by_group)?;
        let told = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&told);
        let registration = informer.add_handler(move |_: Event<Pod>| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let mark = Mark::now()?;
        informer.start();
        registration.wait_for_sync().await?;
        let sync = mark.measured()?.cpu_seconds / size as f64 * 1e6;
        let kept = resident()?.saturating_sub(before + changes_bytes as u64) / size as u64;

        let mark = Mark::now()?;
        for change in changes {
            sender.send(change)?;
            // One at a time, as they come from a server.
            tokio::task::yield_now().await;
        }
        while told.load(Ordering::Relaxed) < size + EVENTS {
            tokio::task::yield_now().await;
        }
        let event = mark.measured()?.cpu_seconds / EVENTS as f64 * 1e6;

        let values = groups.values();
        let mark = Mark::now()?;
        let mut read = 0;
        for number in 0..LOOKUPS {
            for pod in &groups.get(&values[number % values.len()]) {
                read += pod.key().as_str().len();
            }
        }
        let lookup = mark.measured()?.cpu_seconds / LOOKUPS as f64 * 1e9;
        anyhow::ensure!(read > 0, "nothing was read");
        println!("| {size} | {sync:.2} | {event:.2} | {lookup:.0} | {kept} |");
        Ok(())
    })
}

fn group_of(name: &str) -> usize {
    name.trim_start_matches("web-").parse::<usize>().unwrap_or_default() / 20
}

/// Readers look objects up for a second while a writer changes one after the other.
fn read(pods: &Pods, readers: usize) -> Result<()> {
    const SIZE: usize = 20_000;
    let store = ThreadSafeStore::<CachedObject<Pod>>::new();
    let by_group = IndexFunc::new(|pod: &CachedObject<Pod>, found| found.add(&group_of(pod.key().name()).to_string()));
    let groups = store.add_index("group", by_group)?;
    let objects: Vec<_> =
        (0..SIZE).map(|number| CachedObject::<Pod>::from_wire(pods.make(number, number + 1))).collect();
    store.replace(objects.iter().cloned(), "1".into());
    let values = groups.values();
    let (stop, reads, writes) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for object in objects.iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                store.insert(object.clone());
                writes.fetch_add(1, Ordering::Relaxed);
            }
        });
        for reader in 0..readers {
            let (groups, values, stop, reads) = (&groups, &values, &stop, &reads);
            scope.spawn(move || {
                let mut number = reader * 997;
                let mut read = 0;
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..100 {
                        number += 1;
                        for pod in &groups.get(&values[number % values.len()]) {
                            read += pod.key().as_str().len();
                        }
                    }
                    reads.fetch_add(100, Ordering::Relaxed);
                }
                assert!(read > 0);
            });
        }
        std::thread::sleep(Duration::from_secs(2));
        stop.store(true, Ordering::Relaxed);
    });
    let seconds = start.elapsed().as_secs_f64();
    let (reads, writes) = (reads.into_inner() as f64 / seconds, writes.into_inner() as f64 / seconds);
    println!("| {readers} | {reads:.0} | {writes:.0} |");
    Ok(())
}

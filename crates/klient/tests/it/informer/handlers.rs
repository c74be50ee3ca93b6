//! Handlers receive all events in order, independently of each other.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    SharedInformer,
    informer::{
        CachedObject, Event, EventHandler, FilteringHandler, HandlerFuncs, HandlerOptions, Registration, Tombstone,
    },
};
use tokio::time::Instant;

use super::{
    World, next, next_n, short,
    source::{Page, Source, added, deleted, error_event, modified},
    within,
};

type Log = Arc<Mutex<Vec<String>>>;

fn recorder(log: &Log) -> impl EventHandler<ConfigMap> {
    let log = Arc::clone(log);
    move |event: &Event<ConfigMap>| log.lock().unwrap().push(short(event))
}

async fn logged(log: &Log, count: usize) -> Vec<String> {
    within(async {
        while log.lock().unwrap().len() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    log.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn handler_is_called_after_cache_has_the_change() {
    let world = World::start().await;
    world.create("a").await;
    let informer = world.synced().await;
    let log = Log::default();
    let (store, seen) = (informer.store().clone(), Arc::clone(&log));
    let registration = informer.add_handler(move |event: &Event<ConfigMap>| {
        let cached = store.get(event.key()).map_or(0, |object| object.resource_version().as_str().parse().unwrap());
        let received: u64 = event.object().resource_version().as_str().parse().unwrap();
        let deleted = matches!(event, Event::Deleted(_));
        // The cache has the state that the handler receives, or a later one.
        let ahead = if deleted { cached == 0 } else { cached == 0 || cached >= received };
        seen.lock().unwrap().push(format!("{} {ahead}", short(event)));
    });
    within(registration.wait_for_sync()).await.unwrap();
    world.set("a", "1").await;
    world.delete("a").await;
    world.create("b").await;
    assert_eq!(logged(&log, 4).await, ["*a true", "~a 0>1 true", "-a true", "+b true"]);
}

#[tokio::test(start_paused = true)]
async fn late_handler_receives_cached_objects_and_all_changes() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let watch = source.watch();
    let informer = SharedInformer::new(source);
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    // A handler is added after each event. None of them misses an event or receives one twice.
    let mut streams = Vec::new();
    for (version, round) in (6..).zip(0..20) {
        streams.push((round, informer.events()));
        watch.send(added(&format!("c{round}"), &version.to_string())).unwrap();
    }
    for (round, mut events) in streams {
        let mut seen = next_n(&mut events, 22).await;
        let live = seen.iter().filter(|event| event.starts_with('+')).count();
        assert!(live >= 20 - round, "{seen:?}");
        seen.iter_mut().for_each(|event| *event = event[1..].to_owned());
        let mut names: Vec<_> =
            ["a", "b"].map(str::to_owned).into_iter().chain((0..20).map(|n| format!("c{n}"))).collect();
        names.sort();
        let order: Vec<_> = seen.iter().filter(|name| name.starts_with('c')).cloned().collect();
        seen.sort();
        assert_eq!(seen, names);
        assert_eq!(order.len(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn removed_handler_receives_no_more_events() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let watch = source.watch();
    let informer = SharedInformer::new(source);
    informer.start();
    let (kept, removed) = (Log::default(), Log::default());
    let _kept = informer.add_handler(recorder(&kept));
    let registration = informer.add_handler(recorder(&removed));
    watch.send(added("a", "6")).unwrap();
    assert_eq!(logged(&removed, 1).await, ["+a"]);
    drop(registration);
    watch.send(added("b", "7")).unwrap();
    assert_eq!(logged(&kept, 2).await, ["+a", "+b"]);
    assert_eq!(logged(&removed, 1).await, ["+a"]);
}

#[tokio::test(start_paused = true)]
async fn handler_has_synced_after_first_list() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let _watch = source.watch();
    let informer = SharedInformer::new(source);
    let log = Log::default();
    let early = informer.add_handler(recorder(&log));
    assert!(!early.has_synced());
    informer.start();
    within(early.wait_for_sync()).await.unwrap();
    assert_eq!(log.lock().unwrap().len(), 2);
    let mut late = informer.events();
    assert!(!late.registration().has_synced(), "the stream was not read yet");
    next_n(&mut late, 2).await;
    assert!(tokio::time::timeout(Duration::from_secs(1), late.next()).await.is_err());
    assert!(late.registration().has_synced());
}

#[tokio::test(start_paused = true)]
async fn handler_has_synced_on_empty_cache() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let _watch = source.watch();
    let informer = SharedInformer::new(source);
    let registration: Registration<ConfigMap> = informer.add_handler(HandlerFuncs::new());
    informer.start();
    within(registration.wait_for_sync()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn panicking_handler_receives_next_event() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]));
    let watch = source.watch();
    let informer = SharedInformer::new(source);
    let (bad, good) = (Log::default(), Log::default());
    let log = Arc::clone(&bad);
    let registration = informer.add_handler(move |event: &Event<ConfigMap>| {
        assert_ne!(event.key().name(), "a", "boom");
        log.lock().unwrap().push(short(event));
    });
    let _good = informer.add_handler(recorder(&good));
    informer.start();
    watch.send(added("b", "6")).unwrap();
    assert_eq!(logged(&bad, 1).await, ["+b"]);
    assert_eq!(logged(&good, 2).await, ["*a", "+b"]);
    assert_eq!(registration.panics(), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_handler_has_bounded_backlog_and_delays_no_other() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2"), ("c", "3")]));
    let watch = source.watch();
    let informer = SharedInformer::new(source);
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    let mut slow = informer.events();
    let mut quick = informer.events();
    assert_eq!(next_n(&mut slow, 3).await.len(), 3);
    for version in 10..30_000u32 {
        let name = ["a", "b"][version as usize % 2];
        watch.send(modified(name, &version.to_string())).unwrap();
        // Objects that are created and deleted again, each with its own name.
        if version % 10 == 0 {
            let name = format!("short-{version}");
            watch.send(added(&name, &version.to_string())).unwrap();
            watch.send(deleted(&name, &version.to_string())).unwrap();
        }
    }
    watch.send(deleted("c", "40000")).unwrap();
    within(informer.wait_until_seen(&"40000".into())).await.unwrap();
    let backlog = slow.registration().backlog();
    assert!(backlog < 4096 + 10, "{backlog} events wait");
    // The handler has missed states, but never the last one, and each state follows the one that it knew.
    let mut known = std::collections::BTreeMap::from([("a", "1".to_owned()), ("b", "2".to_owned())]);
    loop {
        match short(&within(slow.next()).await.unwrap()) {
            event if event == "-c" => break,
            event => {
                let Some(change) = event.strip_prefix('~') else { continue };
                let (name, states) = change.split_once(' ').unwrap();
                let (old, new) = states.split_once('>').unwrap();
                let known = known.get_mut(name).unwrap();
                assert_eq!(known, old);
                *known = new.to_owned();
            }
        }
    }
    assert_eq!(known["a"], "29998");
    assert_eq!(known["b"], "29999");
    assert_eq!(next_n(&mut quick, 3).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn handlers_resync_at_their_own_periods() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]));
    let _watch = source.watch();
    let informer = SharedInformer::new(source);
    informer.start();
    let mut never = informer.events();
    let mut often = informer.events_with(HandlerOptions::default().resync(Duration::from_secs(10)));
    within(informer.wait_for_sync()).await.unwrap();
    let mut rarely = informer.events_with(HandlerOptions::default().resync(Duration::from_secs(25)));
    let start = Instant::now();
    assert_eq!(next(&mut often).await, "*a");
    assert_eq!(next(&mut rarely).await, "*a");
    for round in 1..=3 {
        let event = within(often.next()).await.unwrap();
        assert!(event.is_resync());
        assert_eq!(start.elapsed().as_secs(), round * 10);
    }
    assert_eq!(next(&mut rarely).await, "~a 1>1");
    assert_eq!(next(&mut never).await, "*a");
    assert!(tokio::time::timeout(Duration::from_secs(100), never.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn relist_sends_no_events_for_unchanged_objects() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let watch = source.watch();
    source.list(Page::new("9", &[("a", "1"), ("b", "8")]));
    let _second = source.watch();
    let informer = SharedInformer::new(source);
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    let before = informer.lister().namespace("n").get("a").unwrap();
    watch.send(error_event(klient::status::Status::expired("old"))).unwrap();
    let mut seen = next_n(&mut events, 3).await;
    seen[..2].sort();
    assert_eq!(seen, ["*a", "*b", "~b 2>8"]);
    let after = informer.lister().namespace("n").get("a").unwrap();
    let bytes = |object: &CachedObject<ConfigMap>| object.wire().unwrap().bytes().as_ptr();
    assert_eq!(bytes(&before), bytes(&after), "an unchanged object keeps its allocation");
}

#[tokio::test(start_paused = true)]
async fn relist_sends_last_known_state_of_deleted_objects() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let watch = source.watch();
    source.list(Page::new("9", &[("a", "1")]));
    let _second = source.watch();
    let informer = SharedInformer::new(source);
    informer.start();
    let mut events = informer.events();
    next_n(&mut events, 2).await;
    watch.send(error_event(klient::status::Status::expired("old"))).unwrap();
    let event = within(events.next()).await.unwrap();
    assert!(
        matches!(&event, Event::Deleted(Tombstone::LastKnown(object)) if object.resource_version().as_str() == "2")
    );
}

#[tokio::test(start_paused = true)]
async fn filtering_handler_turns_updates_into_adds_and_deletes() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]));
    let watch = source.watch();
    let informer = SharedInformer::new(source);
    let log = Log::default();
    let even = |object: &CachedObject<ConfigMap>| object.resource_version().as_str().parse::<u32>().unwrap() % 2 == 0;
    let _registration = informer.add_handler(FilteringHandler::new(even, recorder(&log)));
    informer.start();
    for version in ["6", "8", "9", "11", "12"] {
        watch.send(modified("a", version)).unwrap();
    }
    watch.send(deleted("a", "14")).unwrap();
    assert_eq!(logged(&log, 5).await, ["+a", "~a 6>8", "-a", "+a", "-a"]);
}

#[tokio::test(start_paused = true)]
async fn stop_delivers_pending_events_first() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let _watch = source.watch();
    let informer = SharedInformer::new(source);
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    let log = Log::default();
    let _registration = informer.add_handler(recorder(&log));
    within(informer.stop()).await;
    assert_eq!(log.lock().unwrap().len(), 2);
    let late = informer.add_handler(recorder(&log));
    drop(late);
}

#[tokio::test(start_paused = true)]
async fn handler_receives_a_batch_in_the_order_of_the_server() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let watch = source.watch();
    let informer = SharedInformer::new(source);
    let mut events = informer.events();
    let batch = [added("x", "6"), added("y", "7"), deleted("x", "8"), added("z", "9"), modified("y", "10")];
    for event in batch {
        watch.send(event).unwrap();
    }
    informer.start();
    assert_eq!(next_n(&mut events, 5).await, ["+x", "+y", "-x", "+z", "~y 7>10"]);
}

#[tokio::test(start_paused = true)]
async fn handler_receives_deletes_of_a_relist_first() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let watch = source.watch();
    source.list(Page::new("9", &[("c", "8"), ("b", "7")]));
    let _second = source.watch();
    let informer = SharedInformer::new(source);
    informer.start();
    let mut events = informer.events();
    next_n(&mut events, 2).await;
    watch.send(error_event(klient::status::Status::expired("old"))).unwrap();
    assert_eq!(next_n(&mut events, 3).await, ["?a", "+c", "~b 2>7"]);
}

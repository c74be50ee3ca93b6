//! Random faults: the cache ends equal to the server, and each handler received a valid history.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Error, ErrorKind, ObjectKey, SharedInformer, WatchEvent,
    client::{ListStream, Watch},
    informer::{Event, EventStream, FirstRead, ListWatch, WatchEvents},
    options::{ListOptions, WatchOptions},
    wire::{ManagedFields, RawObject},
};
use klient_apiserver::Fault;
use proptest::prelude::*;
use tokio::sync::watch;

use super::{World, within};

/// A source whose watches a test can cut.
#[derive(Clone)]
pub(crate) struct Cuttable {
    maps: Arc<Mutex<Api<ConfigMap>>>,
    cuts: watch::Sender<u64>,
}

impl Cuttable {
    pub(crate) fn new(maps: Api<ConfigMap>) -> Self {
        Self { maps: Arc::new(Mutex::new(maps)), cuts: watch::Sender::new(0) }
    }

    /// Sends later requests to another server.
    pub(crate) fn switch_to(&self, maps: Api<ConfigMap>) {
        *self.maps.lock().unwrap() = maps;
    }

    fn maps(&self) -> Api<ConfigMap> {
        self.maps.lock().unwrap().clone()
    }

    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

pub(crate) struct CuttableWatch {
    watch: Watch<ConfigMap>,
    cuts: watch::Receiver<u64>,
    cut: bool,
}

impl ListWatch for Cuttable {
    type Kind = ConfigMap;
    type List = ListStream<ConfigMap>;
    type Watch = CuttableWatch;

    async fn list(&self, options: ListOptions, managed_fields: ManagedFields) -> Result<ListStream<ConfigMap>, Error> {
        ListWatch::list(&self.maps(), options, managed_fields).await
    }

    async fn watch(&self, options: WatchOptions, managed_fields: ManagedFields) -> Result<CuttableWatch, Error> {
        let cuts = self.cuts.subscribe();
        let watch = ListWatch::watch(&self.maps(), options, managed_fields).await?;
        Ok(CuttableWatch { watch, cuts, cut: false })
    }

    fn describe(&self) -> String {
        "configmaps".to_owned()
    }

    fn lacks_watch_list(&self) {
        ListWatch::lacks_watch_list(&self.maps());
    }

    fn offers_watch_list(&self) -> bool {
        ListWatch::offers_watch_list(&self.maps())
    }
}

impl WatchEvents for CuttableWatch {
    async fn next(&mut self) -> Option<Result<WatchEvent<RawObject>, Error>> {
        if self.cut {
            return None;
        }
        tokio::select! {
            biased;
            _ = self.cuts.changed() => {
                self.cut = true;
                Some(Err(Error::new(ErrorKind::Transport, "cut")))
            }
            event = self.watch.next_raw() => event,
        }
    }

    fn is_ended(&self) -> bool {
        self.cut || self.watch.is_ended()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u8),
    Delete(u8),
    Cut,
    /// The server drops its history, so that a watch cannot resume.
    Compact,
    AddHandler,
    DropHandler(u8),
    Fault(FaultKind),
    Pause(u16),
}

#[derive(Clone, Debug)]
enum FaultKind {
    Busy,
    Broken,
    Gone,
    CutOff(u16),
    Corrupt(u16),
    Stall(u16),
    NoBookmarks,
    ListBroken,
    ListCutOff(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![
        Just(FaultKind::Busy),
        Just(FaultKind::Broken),
        Just(FaultKind::Gone),
        (0u16..2000).prop_map(FaultKind::CutOff),
        // Only the frame: a changed letter of a name is a valid name, which no check can find.
        (0u16..4).prop_map(FaultKind::Corrupt),
        (0u16..2000).prop_map(FaultKind::Stall),
        Just(FaultKind::NoBookmarks),
        Just(FaultKind::ListBroken),
        (0u16..2000).prop_map(FaultKind::ListCutOff),
    ];
    prop_oneof![
        8 => (0u8..6).prop_map(Step::Write),
        3 => (0u8..6).prop_map(Step::Delete),
        2 => Just(Step::Cut),
        1 => Just(Step::Compact),
        1 => Just(Step::AddHandler),
        1 => (0u8..4).prop_map(Step::DropHandler),
        2 => fault.prop_map(Step::Fault),
        2 => (0u16..20_000).prop_map(Step::Pause),
    ]
}

fn inject(world: &World, fault: &FaultKind) {
    let watches = |fault: Fault| fault.on_watches(true).times(1);
    let lists = |fault: Fault| fault.on_watches(false).on_method(http::Method::GET).times(1);
    world.server.inject(match fault {
        FaultKind::Busy => watches(Fault::too_many_requests(2)),
        FaultKind::Broken => watches(Fault::internal_error()),
        FaultKind::Gone => watches(Fault::gone()),
        FaultKind::CutOff(bytes) => watches(Fault::cut_after((*bytes).into())),
        FaultKind::Corrupt(byte) => watches(Fault::corrupt_at((*byte).into())),
        FaultKind::Stall(bytes) => watches(Fault::stall_after((*bytes).into())),
        FaultKind::NoBookmarks => Fault::no_bookmarks().times(1),
        FaultKind::ListBroken => lists(Fault::internal_error()),
        FaultKind::ListCutOff(bytes) => lists(Fault::cut_after((*bytes).into())),
    });
}

/// The states that a handler knows. Each event must follow from the state before it.
#[derive(Default)]
struct History {
    known: BTreeMap<ObjectKey, String>,
}

impl History {
    fn take(&mut self, event: &Event<ConfigMap>) {
        let version =
            |object: &klient::informer::CachedObject<ConfigMap>| object.resource_version().as_str().to_owned();
        let key = event.key().clone();
        match event {
            Event::Added { object, .. } => {
                assert!(self.known.insert(key.clone(), version(object)).is_none(), "{key} was added twice");
            }
            Event::Updated { old, new } => {
                let known = self.known.insert(key.clone(), version(new));
                assert_eq!(
                    known,
                    Some(version(old)),
                    "{key} was updated from a state that the handler did not receive"
                );
                let order = old.resource_version().compare(&new.resource_version());
                assert_eq!(order, Some(std::cmp::Ordering::Less), "{key} was updated to an older version");
            }
            Event::Deleted(_) => assert!(self.known.remove(&key).is_some(), "{key} was deleted before it was added"),
        }
    }
}

async fn play(steps: Vec<Step>, first_read: FirstRead) {
    let world = World::start().await;
    let source = Cuttable::new(world.maps.clone());
    let informer = SharedInformer::builder(source.clone()).first_read(first_read).build();
    informer.start();
    let mut handlers: Vec<(EventStream<ConfigMap>, History)> = vec![(informer.events(), History::default())];
    let mut value = 0;
    let mut names = BTreeSet::new();
    let damaged = steps.iter().any(|step| matches!(step, Step::Fault(FaultKind::Corrupt(_))));
    for step in steps {
        match step {
            Step::Write(name) => {
                value += 1;
                let name = format!("m{name}");
                if names.insert(name.clone()) {
                    world.create(&name).await;
                } else {
                    world.set(&name, &value.to_string()).await;
                }
            }
            Step::Delete(name) => {
                let name = format!("m{name}");
                if names.remove(&name) {
                    world.delete(&name).await;
                }
            }
            Step::Cut => source.cut(),
            Step::Compact => world.server.compact(),
            Step::AddHandler => handlers.push((informer.events(), History::default())),
            Step::DropHandler(which) if !handlers.is_empty() => {
                handlers.remove(usize::from(which) % handlers.len());
            }
            Step::DropHandler(_) => {}
            Step::Fault(fault) => inject(&world, &fault),
            Step::Pause(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds.into())).await,
        }
    }
    world.server.clear_faults();
    let last = world.create("last").await;
    within(informer.wait_until_seen(&last)).await.unwrap();
    world.assert_equal(&informer).await;
    let expected: BTreeMap<ObjectKey, String> =
        world.state().await.0.into_iter().map(|(key, version)| (key, version.as_str().to_owned())).collect();
    for (mut events, mut history) in handlers {
        while history.known != expected {
            let event = within(events.next()).await.unwrap();
            history.take(&event);
        }
        assert_eq!(events.registration().backlog(), 0, "events are left after the last one");
    }
    assert!(damaged || informer.status().decode_errors == 0, "{:?}", informer.status());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn cache_converges_and_event_histories_are_valid(
        steps in proptest::collection::vec(step(), 0..60),
        watch_list: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(steps, if watch_list { FirstRead::WatchList } else { FirstRead::List }));
    }
}

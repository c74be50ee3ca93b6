//! Informers of several kinds, and the handlers that record what they receive.

use std::{
    collections::BTreeMap,
    panic::panic_any,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, ObjectKey, Resource, SharedInformer,
    informer::{
        CachedObject, Event, FirstRead, HandlerOptions, InformerStatus, ObjectFormat, Registration, RelistReason,
    },
    object::{DynamicObject, PartialObjectMeta},
};
use tokio::task::JoinHandle;

use crate::{
    ExpectedPanic,
    history::{self, Expected, History},
    rng::Rng,
    truth::{Fresh, State, Truth, Watched},
    widget::Widget,
};

/// The kinds of informers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Typed,
    TypedJson,
    Decoded,
    Metadata,
    Red,
    OneName,
    Dynamic,
    TypedWidgets,
    DecodedWidgets,
    TransformedWidgets,
    MetadataOfWidgets,
}

/// How a handler behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Fast,
    Resynced,
    Panicking,
    Slow,
    Blocking,
}

impl Sort {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Typed,
        Self::TypedJson,
        Self::Decoded,
        Self::Metadata,
        Self::Red,
        Self::OneName,
        Self::Dynamic,
        Self::TypedWidgets,
        Self::DecodedWidgets,
        Self::TransformedWidgets,
        Self::MetadataOfWidgets,
    ];

    fn watched(self) -> Watched {
        match self {
            Self::Typed | Self::TypedJson | Self::Decoded | Self::Metadata | Self::Red | Self::OneName => {
                Watched::ConfigMaps
            }
            Self::Dynamic
            | Self::TypedWidgets
            | Self::DecodedWidgets
            | Self::TransformedWidgets
            | Self::MetadataOfWidgets => Watched::Widgets,
        }
    }

    fn selects(self, key: &ObjectKey, state: &State) -> bool {
        match self {
            Self::Red => state.is_red,
            Self::OneName => key.name() == ONE_NAME,
            _ => true,
        }
    }

    /// Returns whether the cache cannot store objects that cannot be decoded. Without a transform, it stores their bytes.
    fn decodes(self) -> bool {
        self == Self::TransformedWidgets
    }
}

/// The settings of an informer that are drawn at random.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) sort: Sort,
    pub(crate) watch_list: bool,
    pub(crate) page_size: Option<u32>,
    pub(crate) consistent: bool,
    /// The pauses of slow handlers, in milliseconds: mostly the first, at times the second.
    pub(crate) slowness: (u64, u64),
}

impl Setup {
    pub(crate) fn draw(rng: &mut Rng, slowness: (u64, u64)) -> Self {
        Self {
            sort: rng.pick(Sort::ALL),
            watch_list: rng.percent(50),
            page_size: rng.percent(30).then_some(3),
            consistent: rng.percent(30),
            slowness,
        }
    }

    /// Starts an informer with these settings.
    pub(crate) fn start(self, client: &Client, namespace: &str) -> Box<dyn AnyObserver> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let widgets: Api<Widget> = Api::namespaced(client.clone(), namespace);
        match self.sort {
            Sort::Typed | Sort::Decoded | Sort::Red | Sort::OneName => self.observe(maps),
            Sort::TypedJson => {
                let client = client.to_builder().json_only().build();
                self.observe(Api::<ConfigMap>::namespaced(client, namespace))
            }
            Sort::Metadata => self.observe(maps.metadata()),
            Sort::Dynamic => self.observe(Watched::Widgets.api(client, namespace)),
            Sort::TypedWidgets | Sort::DecodedWidgets | Sort::TransformedWidgets => self.observe(widgets),
            Sort::MetadataOfWidgets => self.observe(widgets.metadata()),
        }
    }

    fn observe<K: Observed>(self, api: Api<K>) -> Box<dyn AnyObserver> {
        let mut builder = SharedInformer::builder(api).consistent_first_read(self.consistent);
        if self.watch_list {
            builder = builder.first_read(FirstRead::WatchList);
        }
        if let Some(size) = self.page_size {
            builder = builder.page_size(size);
        }
        builder = match self.sort {
            Sort::Red => builder.labels("color=red"),
            Sort::OneName => builder.fields(format!("metadata.name={ONE_NAME}")),
            Sort::Decoded | Sort::DecodedWidgets => builder.object_format(ObjectFormat::Decoded),
            Sort::TransformedWidgets => builder.transform(|object: &mut K| object.metadata_mut().annotations = None),
            _ => builder,
        };
        let informer = builder.build();
        let observer = Observer { setup: self, informer, handlers: Vec::new(), removed: Vec::new() };
        observer.informer.start();
        Box::new(observer)
    }
}

/// A kind whose content can be compared with the server's.
pub(crate) trait Observed: Resource {
    /// Returns the value that writers set, if this kind has it.
    fn value(&self) -> Option<String>;
}

impl Observed for ConfigMap {
    fn value(&self) -> Option<String> {
        self.data.as_ref()?.get("n").cloned()
    }
}

impl Observed for Widget {
    fn value(&self) -> Option<String> {
        Some(self.spec.n.clone())
    }
}

impl Observed for DynamicObject {
    fn value(&self) -> Option<String> {
        self.data.pointer("/spec/n")?.as_str().map(str::to_owned)
    }
}

impl<K: Observed> Observed for PartialObjectMeta<K>
where
    Self: Resource,
{
    fn value(&self) -> Option<String> {
        None
    }
}

/// An informer of any kind, with its handlers.
pub(crate) trait AnyObserver: Send {
    fn describe(&self) -> String;
    fn add_handler(&mut self, manner: Manner, rng: Rng);
    /// Removes one handler, if there are several.
    fn remove_handler(&mut self, rng: &mut Rng);
    fn status(&self) -> InformerStatus;
    /// Returns whether the cache has an object with this value or does not store values.
    fn has_value(&self, key: &ObjectKey, value: &str) -> bool;
    /// Returns how cache and handlers differ from the server's objects.
    fn differences(&self, truth: &Truth, fresh: &BTreeMap<Watched, Fresh>) -> Vec<String>;
    /// Returns what is impossible about the handlers' histories.
    fn impossible(&self, truth: &Truth, fresh: &BTreeMap<Watched, Fresh>) -> Vec<String>;
    /// Returns the number of events that all handlers received.
    fn events(&self) -> usize;
    /// Stops the informer, and waits for its handlers.
    fn stop(&mut self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

struct Observer<K: Resource> {
    setup: Setup,
    informer: SharedInformer<K>,
    handlers: Vec<Handler<K>>,
    removed: Vec<History>,
}

struct Handler<K: Resource> {
    manner: Manner,
    history: History,
    guard: Guard<K>,
}

/// What keeps a handler registered.
enum Guard<K: Resource> {
    Registration(#[expect(dead_code, reason = "dropping it removes the handler")] Registration<K>),
    Task(JoinHandle<()>),
}

impl<K: Resource> Drop for Handler<K> {
    fn drop(&mut self) {
        if let Guard::Task(task) = &self.guard {
            task.abort();
        }
    }
}

impl<K: Observed> Observer<K> {
    fn expected<'a>(
        &self,
        timeline: &'a crate::truth::Timeline,
        fresh: &'a Fresh,
        selects: &'a dyn Fn(&ObjectKey, &State) -> bool,
    ) -> Expected<'a> {
        let status = self.informer.status();
        let listed_once = status.relists.iter().all(|(reason, count)| *reason == RelistReason::Initial && *count == 1);
        Expected {
            timeline,
            fresh,
            selects,
            decodes: self.setup.sort.decodes(),
            is_complete: listed_once && status.decode_errors == 0 && timeline.gaps.is_empty(),
            is_attached: true,
        }
    }

    fn cached(&self) -> Vec<CachedObject<K>> {
        self.informer.lister().list().iter().cloned().collect()
    }
}

impl<K: Observed> AnyObserver for Observer<K> {
    fn describe(&self) -> String {
        let Setup { sort, watch_list, page_size, consistent, .. } = self.setup;
        let start = if watch_list { "watch-list" } else { "list" };
        format!("{sort:?} informer ({start}, pages of {page_size:?}, consistent {consistent})")
    }

    fn add_handler(&mut self, manner: Manner, rng: Rng) {
        let history = History::default();
        let recorded = history.clone();
        let rng = Arc::new(Mutex::new(rng));
        let draw = move |chance: u64| rng.lock().unwrap_or_else(PoisonError::into_inner).percent(chance);
        let guard = match manner {
            Manner::Slow => {
                let mut events = self.informer.events();
                let (short, long) = self.setup.slowness;
                Guard::Task(tokio::spawn(async move {
                    while let Some(event) = events.next().await {
                        recorded.push(&event);
                        tokio::time::sleep(Duration::from_millis(if draw(20) { long } else { short })).await;
                    }
                }))
            }
            Manner::Fast | Manner::Resynced | Manner::Panicking | Manner::Blocking => {
                let handler = move |event: &Event<K>| {
                    recorded.push(event);
                    match manner {
                        Manner::Panicking if draw(20) => panic_any(ExpectedPanic),
                        Manner::Blocking => std::thread::sleep(Duration::from_millis(20)),
                        _ => {}
                    }
                };
                let mut options = HandlerOptions::default();
                if manner == Manner::Resynced {
                    options = options.resync(Duration::from_secs(30));
                }
                Guard::Registration(self.informer.add_handler_with(options, handler))
            }
        };
        self.handlers.push(Handler { manner, history, guard });
    }

    fn remove_handler(&mut self, rng: &mut Rng) {
        if self.handlers.len() > 1 {
            let index = usize::try_from(rng.range(0, self.handlers.len() as u64)).unwrap_or(0);
            let handler = self.handlers.remove(index);
            self.removed.push(handler.history.clone());
        }
    }

    fn status(&self) -> InformerStatus {
        self.informer.status()
    }

    fn has_value(&self, key: &ObjectKey, value: &str) -> bool {
        let decoded = self.informer.lister().get(key).and_then(|object| object.decode().ok());
        decoded.is_some_and(|object| object.value().is_none_or(|found| found == value))
    }

    fn differences(&self, truth: &Truth, fresh: &BTreeMap<Watched, Fresh>) -> Vec<String> {
        let sort = self.setup.sort;
        let selects = |key: &ObjectKey, state: &State| sort.selects(key, state);
        let timeline = truth.of(sort.watched());
        let expected = self.expected(&timeline, &fresh[&sort.watched()], &selects);
        let cached = self.cached();
        let version = |object: &CachedObject<K>| object.resource_version().as_str().parse().unwrap_or(0);
        let known = cached.iter().map(|object| (object.key().clone(), version(object))).collect();
        let mut problems: Vec<String> =
            history::compare(&known, &expected).into_iter().map(|problem| format!("cache: {problem}")).collect();
        for object in &cached {
            let Some((newest, state)) = expected.fresh.get(object.key()) else { continue };
            if !state.is_readable || version(object) != *newest {
                continue;
            }
            match object.decode() {
                Ok(decoded) => {
                    if let Some(value) = decoded.value()
                        && value != state.value
                    {
                        problems.push(format!("cache: {} has {value:?} and not {:?}", object.key(), state.value));
                    }
                }
                Err(error) => problems.push(format!("cache: {} cannot be decoded: {error}", object.key())),
            }
        }
        if expected.decodes {
            let poison = expected.fresh.values().filter(|(_, state)| !state.is_readable).count();
            let unreadable = self.informer.status().unreadable;
            if unreadable != poison {
                problems.push(format!("status: {unreadable} unreadable objects, expected {poison}"));
            }
        }
        for handler in &self.handlers {
            let found = history::compare(&handler.history.known(), &expected);
            problems.extend(found.into_iter().map(|problem| format!("{:?} handler: {problem}", handler.manner)));
        }
        problems
    }

    fn impossible(&self, truth: &Truth, fresh: &BTreeMap<Watched, Fresh>) -> Vec<String> {
        let sort = self.setup.sort;
        let selects = |key: &ObjectKey, state: &State| sort.selects(key, state);
        let timeline = truth.of(sort.watched());
        let expected = self.expected(&timeline, &fresh[&sort.watched()], &selects);
        let mut problems = Vec::new();
        for handler in &self.handlers {
            let found = handler.history.check(&expected);
            problems.extend(found.into_iter().map(|problem| format!("{:?} handler: {problem}", handler.manner)));
        }
        let removed = Expected { is_attached: false, ..expected };
        for history in &self.removed {
            let found = history.check(&removed);
            problems.extend(found.into_iter().map(|problem| format!("removed handler: {problem}")));
        }
        problems
    }

    fn events(&self) -> usize {
        let attached = self.handlers.iter().map(|handler| handler.history.len());
        attached.chain(self.removed.iter().map(History::len)).sum()
    }

    fn stop(&mut self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            self.informer.stop().await;
            self.handlers.clear();
        })
    }
}

/// The name that a field selector selects.
pub(crate) const ONE_NAME: &str = "m3";

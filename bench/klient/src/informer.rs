//! Jobs of informers: syncs, events, index lookups and relists.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context as _, Result, ensure};
use bench_jobs::{Answer, Arguments, Mark, Measured, forget_peak, group_of, last_of, peak, replay_expiry};
use k8s_openapi::api::core::v1::Pod;
use klient::wire::ManagedFields;
use klient::{
    Api,
    client::{ListStream, Watch},
};
use klient::{
    Error,
    object::VersionMatch,
    options::{ListOptions, WatchOptions},
};
use klient::{
    SharedInformer,
    informer::{CachedObject, Event, FirstRead, IndexFunc, ListWatch, ObjectFormat},
};
use tokio::sync::Notify;

use crate::replay::take_object;

fn answer(informer: &SharedInformer<Pod>) -> Answer {
    let mut answer = Answer::default();
    for pod in &informer.lister().list() {
        take_object(&mut answer, pod);
    }
    answer
}

/// Fills a cache from the start, with a handler.
pub(crate) async fn sync(
    mark: Mark,
    fleet: Api<Pod>,
    form: ObjectFormat,
    first_read: FirstRead,
) -> Result<(Measured, Answer)> {
    let told = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&told);
    let informer = SharedInformer::builder(fleet).object_format(form).first_read(first_read).build();
    let registration = informer.add_handler(move |_: &Event<Pod>| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    informer.start();
    registration.wait_for_sync().await?;
    let mut measured = mark.measured()?;
    measured.rest().await?;
    let answer = answer(&informer);
    ensure!(told.load(Ordering::Relaxed) == answer.count(), "the handler was not told of everything");
    Ok((measured, answer))
}

/// Lists the state of an old version, so that the watch sends the later events. Reports when the watch starts.
struct Old {
    fleet: Api<Pod>,
    since: String,
    begun: Arc<OnceLock<Mark>>,
}

impl ListWatch for Old {
    type Kind = Pod;
    type List = ListStream<Pod>;
    type Watch = Watch<Pod>;

    async fn list(&self, mut options: ListOptions, managed_fields: ManagedFields) -> Result<ListStream<Pod>, Error> {
        options.version = VersionMatch::Exact(self.since.as_str().into());
        options.limit = 0;
        ListWatch::list(&self.fleet, options, managed_fields).await
    }

    async fn watch(&self, options: WatchOptions, managed_fields: ManagedFields) -> Result<Watch<Pod>, Error> {
        if let Ok(now) = Mark::now() {
            // The first watch counts.
            let _ = self.begun.set(now);
        }
        ListWatch::watch(&self.fleet, options, managed_fields).await
    }

    fn describe(&self) -> String {
        ListWatch::describe(&self.fleet)
    }
}

/// Measures past events on their way through reflector, fifo and store to a handler that takes the key.
pub(crate) async fn events(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let (count, done) = (arguments.count, Arc::new(Notify::new()));
    let (keys, ended) = (Arc::new(std::sync::Mutex::new(Answer::default())), Arc::clone(&done));
    let taken = Arc::clone(&keys);
    let begun = Arc::default();
    let source = Old { fleet, since: arguments.since.clone(), begun: Arc::clone(&begun) };
    let informer = SharedInformer::new(source);
    let _registration = informer.add_handler(move |event: &Event<Pod>| {
        let Event::Updated { new, .. } = event else { return };
        let Ok(mut answer) = taken.lock() else { return };
        answer.add_key(new.key().namespace().unwrap_or_default(), new.key().name());
        if answer.count() == count {
            ended.notify_one();
        }
    });
    informer.start();
    done.notified().await;
    let measured = begun.get().context("no watch was begun")?.measured()?;
    let answer = std::mem::take(&mut *keys.lock().expect("no thread panics"));
    Ok((measured, answer))
}

/// Looks objects up by index values, 20 for each.
pub(crate) async fn index(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let informer = SharedInformer::new(fleet);
    let group = IndexFunc::new(|pod: &CachedObject<Pod>, found| found.add(&group_of(pod.key().name())));
    let groups = informer.add_index("group", group)?;
    informer.start();
    informer.wait_for_sync().await?;
    let values: Vec<_> = groups.values();
    let last = |pod: &CachedObject<Pod>| last_of(pod.key().name());
    let mut answer = Answer::default();
    let mark = Mark::now()?;
    for number in 0..arguments.count {
        answer.add_number((&groups.get(&values[number % values.len()])).into_iter().map(last).sum());
    }
    Ok((mark.measured()?, answer))
}

/// Measures a relist, after the server has ended the watch and rejected its resumption. One object has changed meanwhile: when the
/// handler receives that change, the cache has the whole new state. Memory is the peak during the relist, and the resident memory
/// before it.
pub(crate) async fn expire(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let changed = Arc::new(Notify::new());
    let tells = Arc::clone(&changed);
    let informer = SharedInformer::new(fleet);
    let registration = informer.add_handler(move |event: &Event<Pod>| {
        if matches!(event, Event::Updated { .. }) {
            tells.notify_one();
        }
    });
    informer.start();
    registration.wait_for_sync().await?;
    let mut rest = Mark::now()?.measured()?;
    rest.rest().await?;
    forget_peak()?;
    let mark = Mark::now()?;
    replay_expiry(arguments)?;
    changed.notified().await;
    let mut measured = mark.measured()?;
    measured.peak_rss_bytes = i64::try_from(peak()?)?;
    (measured.rss_bytes, measured.heap_bytes) = (rest.rss_bytes, rest.heap_bytes);
    Ok((measured, answer(&informer)))
}

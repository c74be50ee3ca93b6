//! Handlers that block their thread, and callers that wait for handlers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    SharedInformer,
    informer::{Event, HandlerOptions, Registration},
};

use super::{
    source::{Page, Source, added},
    within,
};

/// Blocking handlers on a runtime of two threads. `sent` events, and the time that one call blocks.
fn delays_behind_blocking_handlers(blocking: usize, sent: usize, call: Duration) -> (Duration, Duration) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let watch = source.watch();
    let times = runtime.block_on(runtime.spawn(async move {
        let informer = SharedInformer::new(source);
        let seen = Arc::new(AtomicU64::new(0));
        let (counter, done) = (Arc::clone(&seen), Arc::new(tokio::sync::Notify::new()));
        let finished = Arc::clone(&done);
        let _other = informer.add_handler(move |_: &Event<ConfigMap>| {
            if counter.fetch_add(1, Ordering::Relaxed) + 1 == sent as u64 {
                finished.notify_one();
            }
        });
        // Added last, so that the runtime prefers them to the tasks that they must not delay.
        let blocked: Vec<_> =
            (0..blocking).map(|_| informer.add_handler(move |_: &Event<ConfigMap>| std::thread::sleep(call))).collect();
        informer.start();
        informer.wait_for_sync().await.unwrap();
        let started = std::time::Instant::now();
        for number in 0..sent {
            watch.send(added(&format!("m-{number}"), &(10 + number).to_string())).unwrap();
        }
        informer.wait_until_seen(&(9 + sent).to_string().as_str().into()).await.unwrap();
        let cached = started.elapsed();
        done.notified().await;
        (cached, started.elapsed(), blocked)
    }));
    let (cached, handled, _blocked) = times.unwrap();
    runtime.shutdown_background();
    (cached, handled)
}

#[test]
fn blocking_handler_delays_only_itself_on_two_threads() {
    // 100 calls of 0.1 s are 10 s of blocking.
    let (cached, handled) = delays_behind_blocking_handlers(1, 100, Duration::from_millis(100));
    assert!(cached < Duration::from_secs(1) && handled < Duration::from_secs(1), "{cached:?} {handled:?}");
}

#[test]
fn others_go_first_after_calls_that_block_all_threads() {
    let (cached, handled) = delays_behind_blocking_handlers(2, 100, Duration::from_millis(20));
    // Two handlers that block for 2 s each, one call at a time.
    assert!(cached < Duration::from_secs(1) && handled < Duration::from_secs(1), "{cached:?} {handled:?}");
}

/// A handler that blocks in its first call until the test releases it.
struct Blocked {
    informer: SharedInformer<ConfigMap>,
    registration: Registration<ConfigMap>,
    release: mpsc::Sender<()>,
    in_call: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
}

async fn blocked() -> Blocked {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let informer = SharedInformer::new(source);
    let (entered, first_call) = tokio::sync::oneshot::channel();
    let (release, released) = mpsc::channel();
    let (in_call, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (running, counter, mut entered) = (Arc::clone(&in_call), Arc::clone(&calls), Some(entered));
    let registration = informer.add_handler(move |_: &Event<ConfigMap>| {
        counter.fetch_add(1, Ordering::SeqCst);
        if let Some(entered) = entered.take() {
            running.store(true, Ordering::SeqCst);
            entered.send(()).unwrap();
            released.recv().unwrap();
            running.store(false, Ordering::SeqCst);
        }
    });
    informer.start();
    within(first_call).await.unwrap();
    Blocked { informer, registration, release, in_call, calls }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn removal_waits_for_the_running_call() {
    let Blocked { informer: _informer, registration, release, in_call, calls } = blocked().await;
    let mut removal = tokio::spawn(registration.remove());
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut removal).await.is_err(), "a call is running");
    release.send(()).unwrap();
    within(removal).await.unwrap();
    assert!(!in_call.load(Ordering::SeqCst));
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the event that waited was dropped");
}

#[tokio::test]
async fn removal_before_start_returns_at_once() {
    let informer = SharedInformer::new(Source::default());
    within(informer.add_handler(|_: &Event<ConfigMap>| ()).remove()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_several_stops_waits_for_handlers() {
    let Blocked { informer, registration, release, in_call, calls } = blocked().await;
    let mut stops: Vec<_> = (0..3)
        .map(|_| {
            let informer = informer.clone();
            tokio::spawn(async move { informer.stop().await })
        })
        .collect();
    for stop in &mut stops {
        assert!(tokio::time::timeout(Duration::from_millis(30), stop).await.is_err(), "a call is running");
    }
    release.send(()).unwrap();
    for stop in stops {
        within(stop).await.unwrap();
        assert!(!in_call.load(Ordering::SeqCst));
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
    drop(registration);
}

#[tokio::test(start_paused = true)]
async fn informer_accepts_the_longest_durations() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]));
    let watch = source.watch();
    let mut options = klient::informer::ReflectorOptions::default();
    options.min_watch_timeout = Duration::MAX;
    options.max_silence = Duration::MAX;
    options.watch_list_deadline = Duration::MAX;
    let informer = SharedInformer::builder(source).reflector_options(options).build();
    let _registration =
        informer.add_handler_with(HandlerOptions::default().resync(Duration::MAX), |_: &Event<ConfigMap>| ());
    informer.start();
    for sent in [super::source::bookmark("6", false), added("b", "7")] {
        watch.send(sent).unwrap();
    }
    within(informer.wait_until_seen(&"7".into())).await.unwrap();
}

//! Events on the embedded server.

use std::{collections::BTreeSet, future::pending, time::Duration};

use k8s_openapi::api::{
    core::v1::{ConfigMap, Event as CoreEvent, ObjectReference},
    events::v1::Event as NewEvent,
};
use klient::{
    Api, Client,
    events::{Event, EventApi, EventOptions, EventRecorder, EventSink},
    metrics::Registry,
};
use klient_apiserver::{ApiServer, Fault};
use tokio::time::timeout;

use crate::support::embedded::client;

struct Fixture {
    server: ApiServer,
    client: Client,
    recorder: EventRecorder,
    object: ConfigMap,
}

async fn fixture(options: EventOptions) -> (Fixture, EventSink) {
    let server = ApiServer::start().await.unwrap();
    let client = client(&server);
    let mut object = ConfigMap::default();
    object.metadata.name = Some("web".to_owned());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let object = maps.create(&object).await.unwrap();
    let (recorder, sink) = EventRecorder::new(client.clone(), options.registry(Registry::new()));
    (Fixture { server, client, recorder, object }, sink)
}

fn options() -> EventOptions {
    EventOptions::new("example.com/webs").instance("webs-1")
}

#[tokio::test(start_paused = true)]
async fn sink_accepts_the_longest_flush_deadline() {
    let mut options = options();
    options.flush_deadline = Duration::MAX;
    let (fixture, sink) = fixture(options).await;
    fixture.recorder.record(&fixture.object, Event::normal("Started", "Start", "note"));
    sink.run_until(std::future::ready(())).await;
    let events: Api<NewEvent> = Api::namespaced(fixture.client.clone(), "default");
    assert_eq!(events.list().await.unwrap().items.len(), 1);
}

impl Fixture {
    fn record(&self, note: &str) {
        self.recorder.record(&self.object, Event::warning("Broken", "Repair", note));
    }

    fn reference(&self) -> ObjectReference {
        let metadata = &self.object.metadata;
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            ..ObjectReference::default()
        }
    }

    async fn events(&self) -> Vec<NewEvent> {
        let api: Api<NewEvent> = Api::namespaced(self.client.clone(), "default");
        api.list().await.unwrap().items
    }

    async fn core_events(&self) -> Vec<CoreEvent> {
        let api: Api<CoreEvent> = Api::namespaced(self.client.clone(), "default");
        api.list().await.unwrap().items
    }
}

/// Sends all recorded events, while the recorder still exists.
async fn send(sink: EventSink) {
    sink.run_until(async {}).await;
}

#[tokio::test(start_paused = true)]
async fn event_names_object_reason_and_controller() {
    let (fixture, sink) = fixture(options()).await;
    fixture.record("no space left");
    send(sink).await;
    let [event] = fixture.events().await.try_into().unwrap();
    let regarding = event.regarding.unwrap();
    assert_eq!((regarding.kind.as_deref(), regarding.name.as_deref()), (Some("ConfigMap"), Some("web")));
    assert_eq!(regarding.uid, fixture.object.metadata.uid);
    assert_eq!(event.note.as_deref(), Some("no space left"));
    assert_eq!((event.reason.as_deref(), event.action.as_deref()), (Some("Broken"), Some("Repair")));
    assert_eq!((event.type_.as_deref(), event.reporting_instance.as_deref()), (Some("Warning"), Some("webs-1")));
    assert!(event.event_time.is_some() && event.series.is_none());
}

#[tokio::test(start_paused = true)]
async fn repeated_events_become_a_series() {
    let (fixture, sink) = fixture(options()).await;
    for turn in 0..5 {
        fixture.record(&format!("turn {turn}"));
    }
    send(sink).await;
    let [event] = fixture.events().await.try_into().unwrap();
    assert_eq!(event.series.unwrap().count, 5);
    let writes = fixture.server.requests().into_iter().filter(|((_, path), _)| path.contains("/events"));
    // The create, the patch to a series of two, and the patch of the last count.
    assert_eq!(writes.filter(|((method, _), _)| method != "GET").map(|(_, count)| count).sum::<u64>(), 3);
}

#[tokio::test(start_paused = true)]
async fn sink_writes_count_of_idle_series() {
    let (fixture, sink) = fixture(options()).await;
    for _ in 0..4 {
        fixture.record("again");
    }
    // The count is written six minutes after the last event, not at the end of the run.
    let _ = timeout(Duration::from_secs(6 * 60 + 1), sink.run_until(pending())).await;
    let [event] = fixture.events().await.try_into().unwrap();
    assert_eq!(event.series.unwrap().count, 4);
}

#[tokio::test(start_paused = true)]
async fn core_events_are_counted_and_combined() {
    let (fixture, sink) = fixture(options().api(EventApi::Core)).await;
    for _ in 0..3 {
        fixture.record("the same");
    }
    for turn in 0..12 {
        fixture.record(&format!("turn {turn}"));
    }
    send(sink).await;
    let events = fixture.core_events().await;
    let count = |note: &str| {
        let event = events.iter().find(|event| event.message.as_deref().is_some_and(|text| text.starts_with(note)));
        event.and_then(|event| event.count)
    };
    assert_eq!(count("the same"), Some(3));
    assert_eq!(count("turn 0"), Some(1));
    // Nine different notes are separate events, and the others are combined.
    assert_eq!(count("(combined from similar events): turn 11"), Some(4));
    assert_eq!(events.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn spam_filter_applies_to_core_events_only() {
    for (api, sent) in [(EventApi::Events, 40), (EventApi::Core, 25)] {
        let (fixture, sink) = fixture(options().api(api)).await;
        for turn in 0..40 {
            fixture.recorder.record(&fixture.object, Event::normal(format!("Reason{turn}"), "Act", "note"));
        }
        send(sink).await;
        assert_eq!(fixture.core_events().await.len(), sent, "{api:?}");
        assert_eq!(fixture.recorder.filtered(), 40 - sent as u64);
        assert_eq!(fixture.recorder.dropped(), 40 - sent as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn filtered_repetitions_are_in_the_next_count() {
    let (fixture, sink) = fixture(options().api(EventApi::Core)).await;
    let recording = async {
        for _ in 0..40 {
            fixture.record("the same");
        }
        // One more event is allowed after five minutes.
        tokio::time::sleep(Duration::from_secs(5 * 60 + 1)).await;
        fixture.record("the same");
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    sink.run_until(recording).await;
    let [event] = fixture.core_events().await.try_into().unwrap();
    assert_eq!(event.count, Some(41));
    assert_eq!(fixture.recorder.filtered(), 15);
}

#[tokio::test(start_paused = true)]
async fn field_path_distinguishes_events() {
    for api in [EventApi::Events, EventApi::Core] {
        let (fixture, sink) = fixture(options().api(api)).await;
        for container in ["web", "proxy", "web"] {
            let mut reference = fixture.reference();
            reference.field_path = Some(format!("spec.containers{{{container}}}"));
            fixture.recorder.record_ref(reference, Event::warning("Failed", "Pull", "no such image"));
        }
        send(sink).await;
        let events = fixture.core_events().await;
        let paths: BTreeSet<_> = events.iter().map(|event| event.involved_object.field_path.as_deref()).collect();
        assert_eq!(paths, [Some("spec.containers{proxy}"), Some("spec.containers{web}")].into(), "{api:?}");
        assert_eq!(events.len(), 2, "{api:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn window_of_similar_core_events_slides() {
    let (fixture, sink) = fixture(options().api(EventApi::Core)).await;
    let recording = async {
        // Each is recorded within ten minutes after the one before, but not all of them within ten minutes.
        for turn in 0..12 {
            fixture.record(&format!("turn {turn}"));
            tokio::time::sleep(Duration::from_secs(9 * 60)).await;
        }
    };
    sink.run_until(recording).await;
    let events = fixture.core_events().await;
    let combined = |event: &&CoreEvent| event.message.as_deref().is_some_and(|text| text.starts_with("(combined"));
    let counts: Vec<_> = events.iter().filter(combined).map(|event| event.count).collect();
    assert_eq!(counts, [Some(3)], "notes 10 to 12 are combined");
    assert_eq!(events.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn record_counts_events_beyond_capacity() {
    let (fixture, sink) = fixture(options().capacity(10)).await;
    for _ in 0..25 {
        fixture.record("note");
    }
    assert_eq!(fixture.recorder.dropped(), 15);
    drop(sink);
    fixture.record("no sink");
    assert_eq!(fixture.recorder.dropped(), 16);
}

#[tokio::test(start_paused = true)]
async fn sink_resends_after_lost_response_without_duplicate() {
    let (fixture, sink) = fixture(options()).await;
    fixture.server.inject(Fault::cut_after(0).on_method(http::Method::POST).times(1));
    fixture.record("note");
    let _ = timeout(Duration::from_secs(300), sink.run()).await;
    assert_eq!(fixture.events().await.len(), 1);
    assert_eq!(fixture.recorder.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn sink_flushes_up_to_the_deadline() {
    let (fixture, sink) = fixture(options().flush_deadline(Duration::from_secs(3))).await;
    fixture.server.inject(Fault::delay(Duration::from_secs(3600)).on_method(http::Method::POST));
    for turn in 0..4 {
        fixture.recorder.record(&fixture.object, Event::normal(format!("Reason{turn}"), "Act", "note"));
    }
    let started = tokio::time::Instant::now();
    sink.run_until(tokio::time::sleep(Duration::from_secs(1))).await;
    assert_eq!(started.elapsed().as_secs(), 4);
    assert_eq!(fixture.recorder.dropped(), 4);
}

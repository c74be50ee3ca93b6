//! Events on the real server, in both encodings.

use std::time::Duration;

use k8s_openapi::api::{core::v1::Namespace, events::v1::Event as NewEvent};
use klient::{
    Api, Client,
    events::{Event, EventApi, EventOptions, EventRecorder},
    metrics::Registry,
};

use crate::cluster::{config, or_skip};

#[tokio::test]
async fn events_are_accepted_and_counted_in_both_encodings() {
    let config = or_skip!(config());
    let client = Client::from_config(&config).unwrap();
    let namespaces: Api<Namespace> = Api::cluster(client.clone());
    let object = namespaces.get("default").await.unwrap();
    for (api, reason) in [(EventApi::Events, "E2eNewForm"), (EventApi::Core, "E2eOldForm")] {
        let options = EventOptions::new("example.com/e2e")
            .api(api)
            .registry(Registry::new())
            .flush_deadline(Duration::from_secs(60));
        let (recorder, sink) = EventRecorder::new(client.clone(), options);
        for _ in 0..3 {
            recorder.record(&object, Event::normal(reason, "Test", "it happened"));
        }
        sink.run_until(async {}).await;
        assert_eq!(recorder.dropped(), 0);
        let events: Api<NewEvent> = Api::namespaced(client.clone(), "default");
        let events = events.list().await.unwrap().items;
        let event = events.iter().find(|event| event.reason.as_deref() == Some(reason)).unwrap();
        let count = event.series.as_ref().map(|series| series.count).or(event.deprecated_count);
        assert_eq!(count, Some(3));
    }
}

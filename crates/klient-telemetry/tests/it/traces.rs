//! One trace shows a change from the watch to the writes that it caused, on the embedded server and on the real one.

use std::{
    io::Write as _,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, InformerFactory, ObjectKey, Patch,
    client::{
        config::{Config, KubeconfigFiles, Overrides},
        http::{SendFuture, Transport},
    },
    controller::{Outcome, ReasonKind, Request},
    metrics::Registry,
};
use klient_apiserver::ApiServer;
use klient_harness::{Programs, Server};
use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tracing_subscriber::layer::SubscriberExt as _;

fn named<'a>(spans: &'a [SpanData], name: &str) -> Vec<&'a SpanData> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// Method and trace context of each request, as the server receives them.
#[derive(Clone, Default)]
struct Headers(Arc<Mutex<Vec<(String, String)>>>);

/// A transport that notes the headers of requests.
struct Noting {
    inner: Arc<dyn Transport>,
    headers: Headers,
}

impl Transport for Noting {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
        let parent = parent.unwrap_or_default().to_owned();
        self.headers.0.lock().unwrap().push((request.method().to_string(), parent));
        self.inner.send(request)
    }
}

#[tokio::test]
async fn trace_goes_from_the_event_to_the_requests() {
    let server = ApiServer::start().await.unwrap();
    check_traces(Client::from_service(server.service())).await;
}

#[tokio::test]
async fn trace_on_the_real_server_is_the_same() {
    let Some(programs) = Programs::for_tests().unwrap() else {
        std::io::stderr().write_all(b"skipped: traces on the real kube-apiserver, since there is none\n").unwrap();
        return;
    };
    let server = Server::start(&programs).unwrap();
    let files = KubeconfigFiles::explicit(server.kubeconfig());
    let config = Config::load(&files, &Overrides::default().context("token")).unwrap();
    check_traces(Client::from_config(&config).unwrap()).await;
}

/// Runs a controller that writes, and checks the spans of all its parts.
async fn check_traces(plain: Client) {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("klient"));
    // One thread runs everything here, so that its subscriber sees all spans.
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));

    // Only the first call in a process has an effect.
    klient_telemetry::exemplars();
    let registry = Registry::new();
    let headers = Headers::default();
    let noting = {
        let headers = headers.clone();
        |inner| Noting { inner, headers }
    };
    let client = klient_telemetry::trace_context(plain.to_builder().layer(noting)).build();
    let maps: Api<ConfigMap> = Api::namespaced(plain, "default");
    maps.create(&serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap()).await.unwrap();

    let (began, mut turns) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let (open, written) = (Arc::clone(&gate), Api::<ConfigMap>::namespaced(client.clone(), "default"));
    let informer = InformerFactory::new(client).namespace("default").core_v1().config_maps();
    let controller = Controller::builder("maps", informer).registry(registry.clone()).reconcile(
        move |request: Request<ConfigMap>| {
            let (began, gate, written) = (began.clone(), Arc::clone(&gate), written.clone());
            async move {
                began.send(()).unwrap();
                gate.acquire().await.unwrap().forget();
                if request.reasons().has(ReasonKind::Updated) {
                    written.patch("a", Patch::merge(json!({"metadata": {"labels": {"seen": "yes"}}}))).await?;
                }
                Ok::<_, klient::Error>(Outcome::Done)
            }
        },
    );
    let task = tokio::spawn({
        let controller = controller.clone();
        async move { controller.run_until(std::future::pending()).await }
    });
    turns.recv().await.unwrap();
    // Both changes arrive while the first turn runs: they are one reconcile. The second is sent after the event of the first, since an
    // informer may merge two changes into one event.
    let key = ObjectKey::namespaced("default", "a");
    let mut version = None;
    for value in ["1", "2"] {
        let map = maps.patch("a", Patch::merge(json!({"data": {"n": value}}))).await.unwrap();
        version = map.metadata.resource_version.and_then(|version| version.parse::<u64>().ok());
        while controller.explain(&key).pending.first().map(|reason| reason.resource_version) != Some(version) {
            tokio::task::yield_now().await;
        }
    }
    open.add_permits(9);
    while controller.status().succeeded < 3 {
        tokio::task::yield_now().await;
    }
    task.abort();
    let _ = task.await;
    provider.force_flush().unwrap();
    let spans = exporter.get_finished_spans().unwrap();

    check_trace(&spans, version, &headers.0.lock().unwrap());

    // The durations of reconciles name the trace of one of them.
    let traces: Vec<String> =
        named(&spans, "reconcile").iter().map(|span| span.span_context.trace_id().to_string()).collect();
    let page = registry.render_open_metrics();
    let line =
        page.lines().find(|line| line.contains("reconcile_time_seconds_bucket") && line.contains("trace_id")).unwrap();
    assert!(traces.iter().any(|trace| line.contains(&format!("# {{trace_id=\"{trace}\"}} "))), "{line}");
    assert!(!registry.render().contains("trace_id"), "Prometheus' own format has no exemplars");
    assert!(page.ends_with("# EOF\n"));
}

/// Checks the trace of the two changes, whose last version is given.
fn check_trace(spans: &[SpanData], version: Option<u64>, headers: &[(String, String)]) {
    let is_written = |span: &&&SpanData| attribute(span, "method") == "PATCH" && span.parent_span_id != SpanId::INVALID;
    let request = *named(spans, "request").iter().find(is_written).unwrap();
    let trace = request.span_context.trace_id();
    let reconcile = *named(spans, "reconcile").iter().find(|span| span.span_context.trace_id() == trace).unwrap();
    assert_eq!(request.parent_span_id, reconcile.span_context.span_id());
    assert_eq!(attribute(reconcile, "key"), "default/a");
    assert_eq!(attribute(request, "http.response.status_code"), "200");
    let event = *named(spans, "event").iter().find(|span| span.span_context.trace_id() == trace).unwrap();
    assert_eq!(reconcile.parent_span_id, event.span_context.span_id());
    assert_eq!((attribute(event, "kind"), attribute(event, "object")), ("changed".to_owned(), "default/a".to_owned()));
    let queue = *named(spans, "queue").iter().find(|span| span.span_context.trace_id() == trace).unwrap();
    assert_eq!(queue.parent_span_id, event.span_context.span_id());

    // The other change is another trace, which the reconcile links to.
    let [link] = &reconcile.links.links[..] else { panic!("{:?}", reconcile.links) };
    let linked =
        *named(spans, "event").iter().find(|span| span.span_context.span_id() == link.span_context.span_id()).unwrap();
    assert_eq!(attribute(linked, "version"), version.unwrap().to_string());
    assert_ne!(linked.span_context.trace_id(), trace);

    // The API server received the context of the request's span.
    let expected = format!("00-{trace}-{}-01", request.span_context.span_id());
    assert!(headers.contains(&("PATCH".to_owned(), expected)), "{headers:?}");
}

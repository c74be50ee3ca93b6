//! One trace from a change to the writes that it caused, in a collector of the same process.
//!
//! The collector stores spans in memory. A program would use an exporter to its own collector instead.

#![allow(clippy::print_stdout)]

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, InformerFactory, Patch,
    controller::{Outcome, Request},
};
use klient_apiserver::ApiServer;
use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let collector = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(collector.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("example"));
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;

    let server = ApiServer::start().await?;
    // The server receives the trace context of each request.
    let client = klient_telemetry::trace_context(Client::from_service(server.service()).to_builder()).build();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let (done, mut reconciled) = tokio::sync::mpsc::unbounded_channel();
    let written = maps.clone();
    let controller = Controller::builder("labels", InformerFactory::new(client).core_v1().config_maps()).reconcile(
        move |request: Request<ConfigMap>| {
            let (written, done) = (written.clone(), done.clone());
            async move {
                let is_labelled = request.cached().is_none_or(|map| map.label("seen").is_some());
                if !is_labelled {
                    let patch = Patch::merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
                    written.patch(request.name(), patch).await?;
                }
                // The program ends after the reconcile that has nothing left to do.
                let _ = done.send(is_labelled);
                Ok::<_, klient::Error>(Outcome::Done)
            }
        },
    );
    let menu = serde_json::from_value(json!({"metadata": {"name": "menu"}}))?;
    let stop = async {
        while let Some(is_labelled) = reconciled.recv().await {
            if is_labelled {
                break;
            }
        }
    };
    tokio::try_join!(controller.run_until(stop), async { maps.create(&menu).await.map(drop) })?;

    provider.force_flush()?;
    let spans = collector.get_finished_spans()?;
    let write = spans.iter().find(|span| span.name == "request" && attribute(span, "method") == "PATCH");
    let write = write.ok_or_else(|| anyhow::anyhow!("no write was traced"))?;
    let trace: Vec<&SpanData> =
        spans.iter().filter(|span| span.span_context.trace_id() == write.span_context.trace_id()).collect();
    println!("trace {}", write.span_context.trace_id());
    print(&trace, SpanId::INVALID, 1);
    Ok(())
}

/// Prints the spans below another one.
fn print(trace: &[&SpanData], parent: SpanId, depth: usize) {
    for span in trace.iter().filter(|span| span.parent_span_id == parent) {
        let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
        let what = ["object", "key", "method", "path"].map(|name| attribute(span, name)).join(" ");
        println!("{}{} {} ({took:.1?})", "  ".repeat(depth), span.name, what.trim());
        print(trace, span.span_context.span_id(), depth + 1);
    }
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

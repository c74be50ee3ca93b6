//! The W3C trace context of requests: the API server's spans belong to the trace of the reconcile that sent the request.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use klient::client::{
    ClientBuilder,
    http::{SendFuture, Transport},
};
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// A transport that adds the headers `traceparent` and `tracestate` of the current span to each request.
///
/// See [`trace_context`].
pub struct TraceContext {
    inner: Arc<dyn Transport>,
}

/// Adds the trace context of the current `tracing` span to each request of a client, if a `tracing-opentelemetry` layer is installed.
///
/// ```no_run
/// # fn set_up() -> Result<(), klient::Error> {
/// use klient::{Client, client::config::Config};
///
/// let client = klient_telemetry::trace_context(Client::builder_from_config(&Config::infer()?)?).build();
/// # Ok(())
/// # }
/// ```
pub fn trace_context(builder: ClientBuilder) -> ClientBuilder {
    builder.layer(|inner| TraceContext { inner })
}

/// Takes exemplars for klient's histograms from the current `tracing` span, if its trace is sampled. Returns whether this is the first call
/// in the process, which alone has an effect.
///
/// The manager's `/metrics` shows them to clients that accept OpenMetrics, such as Prometheus with exemplar storage.
pub fn exemplars() -> bool {
    klient::metrics::set_exemplars(|| {
        let context = tracing::Span::current().context();
        let span = context.span();
        let context = span.span_context();
        (context.is_valid() && context.is_sampled()).then(|| context.trace_id().to_string())
    })
}

impl Transport for TraceContext {
    fn send(&self, mut request: http::Request<Bytes>) -> SendFuture<'_> {
        let context = tracing::Span::current().context();
        let span = context.span();
        if let Some((parent, state)) = headers(span.span_context()) {
            request.headers_mut().insert(TRACEPARENT, parent);
            if let Some(state) = state {
                request.headers_mut().insert(TRACESTATE, state);
            }
        }
        self.inner.send(request)
    }
}

/// Returns the values of both headers. An invalid context has none.
fn headers(context: &SpanContext) -> Option<(HeaderValue, Option<HeaderValue>)> {
    if !context.is_valid() {
        return None;
    }
    let flags = u8::from(context.trace_flags().is_sampled());
    let parent = format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id());
    let state = context.trace_state().header();
    let state = if state.is_empty() { None } else { HeaderValue::from_str(&state).ok() };
    Some((HeaderValue::from_str(&parent).ok()?, state))
}

impl std::fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceContext").finish_non_exhaustive()
    }
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

//! The client's metrics, under client-go's names.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use http::{Method, StatusCode};
use klient_core::Verb;

use crate::metrics::{Counter, Histogram, Registry};

/// The client's metrics, each looked up in the registry once.
pub(in crate::client) struct ClientMetrics {
    registry: Registry,
    host: String,
    requests: Mutex<HashMap<(Method, Option<StatusCode>), Counter>>,
    retries: Mutex<HashMap<(Method, Option<StatusCode>), Counter>>,
    durations: Mutex<HashMap<&'static str, Histogram>>,
    throttled: Mutex<HashMap<&'static str, Histogram>>,
}

impl ClientMetrics {
    pub(in crate::client) fn new(registry: Registry, host: String) -> Self {
        Self {
            registry,
            host,
            requests: Mutex::default(),
            retries: Mutex::default(),
            durations: Mutex::default(),
            throttled: Mutex::default(),
        }
    }

    pub(in crate::client) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(in crate::client) fn host(&self) -> &str {
        &self.host
    }

    /// Counts one response, or its absence.
    pub(in crate::client) fn responded(&self, method: &Method, code: Option<StatusCode>) {
        let help = "Number of HTTP requests, partitioned by status code, method, and host.";
        self.count(&self.requests, "rest_client_requests_total", help, method, code);
    }

    /// Counts a retry after such a response, or after none.
    pub(in crate::client) fn retried(&self, method: &Method, code: Option<StatusCode>) {
        let help = "Number of request retries, partitioned by status code, verb, and host.";
        self.count(&self.retries, "rest_client_request_retries_total", help, method, code);
    }

    /// Records the time from the request to the head of its last response.
    pub(in crate::client) fn took(&self, verb: Option<Verb>, method: &Method, time: Duration) {
        let help = "Request latency in seconds. Broken down by verb, and host.";
        let verb = verb_label(verb, method);
        let mut durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = durations.entry(verb).or_insert_with(|| {
            let labels = [("verb", verb), ("host", self.host.as_str())];
            self.registry.histogram("rest_client_request_duration_seconds", help, &labels, LATENCY)
        });
        histogram.observe_duration(time);
    }

    /// Records how long a request waited for the client's rate limit.
    pub(in crate::client) fn throttled(&self, verb: Option<Verb>, method: &Method, time: Duration) {
        let help = "Client side rate limiter latency in seconds. Broken down by verb, and host.";
        let verb = verb_label(verb, method);
        let mut throttled = self.throttled.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = throttled.entry(verb).or_insert_with(|| {
            let labels = [("verb", verb), ("host", self.host.as_str())];
            self.registry.histogram("rest_client_rate_limiter_duration_seconds", help, &labels, LATENCY)
        });
        histogram.observe_duration(time);
    }

    fn count(
        &self,
        counters: &Mutex<HashMap<(Method, Option<StatusCode>), Counter>>,
        name: &'static str,
        help: &'static str,
        method: &Method,
        code: Option<StatusCode>,
    ) {
        let mut counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = counters.entry((method.clone(), code)).or_insert_with(|| {
            let code = code.map_or("<error>".to_owned(), |code| code.as_u16().to_string());
            let labels = [("code", code.as_str()), ("method", method.as_str()), ("host", self.host.as_str())];
            self.registry.counter(name, help, &labels)
        });
        counter.increment();
    }
}

/// Returns client-go's label: the HTTP method, except for lists and watches.
fn verb_label(verb: Option<Verb>, method: &Method) -> &'static str {
    match (verb, method.as_str()) {
        (Some(Verb::List), _) => "LIST",
        (Some(Verb::Watch), _) => "WATCH",
        (_, "GET") => "GET",
        (_, "POST") => "POST",
        (_, "PUT") => "PUT",
        (_, "PATCH") => "PATCH",
        (_, "DELETE") => "DELETE",
        (_, "HEAD") => "HEAD",
        _ => "OTHER",
    }
}

const LATENCY: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

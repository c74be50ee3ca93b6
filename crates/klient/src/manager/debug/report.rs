//! Collects the state of a manager's parts.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use klient_core::ObjectKey;
use tokio::time::Instant;

use super::fights::Fights;
use crate::{
    introspection::{
        ConnectionReport, InformerReport, KeySearch, KeyState, Sample, ShardReport, Snapshot, Stories, VERSION,
        WebhookReport,
    },
    manager::{
        inspect::Inspect,
        part::{AnyController, AnyElector, AnyInformer},
    },
    metrics::{MetricValue, Registry},
    shard::Shards,
};

/// The parts of a manager. They are not kept alive.
pub(super) struct Reporter {
    started: Instant,
    controllers: Vec<Weak<dyn AnyController>>,
    samples: Mutex<BTreeMap<String, Samples>>,
    informers: Vec<Weak<dyn AnyInformer>>,
    elector: Option<Weak<dyn AnyElector>>,
    shards: Option<Shards>,
    registry: Registry,
}

/// The samples of a controller, each with the time at which it was taken.
type Samples = VecDeque<(Instant, Sample)>;

impl Reporter {
    pub(super) fn new(
        controllers: &[Arc<dyn AnyController>],
        informers: &[Arc<dyn AnyInformer>],
        elector: Option<&Arc<dyn AnyElector>>,
        shards: Option<&Shards>,
        registry: &Registry,
    ) -> Self {
        Self {
            started: Instant::now(),
            controllers: controllers.iter().map(Arc::downgrade).collect(),
            samples: Mutex::default(),
            shards: shards.cloned(),
            informers: informers.iter().map(Arc::downgrade).collect(),
            elector: elector.map(Arc::downgrade),
            registry: registry.clone(),
        }
    }

    /// Samples the controllers.
    pub(super) fn sample(&self) {
        let now = Instant::now();
        let mut all = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        // Clusters come and go, and the samples of their controllers with them.
        let mut before = std::mem::take(&mut *all);
        for controller in self.inspected() {
            let numbers = controller.numbers();
            let sample = Sample {
                ago: 0.0,
                ready: numbers.queue.ready,
                delayed: numbers.queue.delayed,
                in_process: numbers.queue.in_process,
                succeeded: numbers.succeeded,
                failed: numbers.failed,
            };
            let (name, mut samples) =
                before.remove_entry(&numbers.name).unwrap_or_else(|| (numbers.name, Samples::new()));
            if samples.len() >= MAX_SAMPLES {
                samples.pop_front();
            }
            samples.push_back((now, sample));
            all.insert(name, samples);
        }
    }

    /// Returns the controllers that run now, those of clusters included.
    fn inspected(&self) -> impl Iterator<Item = Arc<dyn Inspect>> {
        self.controllers.iter().filter_map(Weak::upgrade).flat_map(AnyController::inspected)
    }

    /// Returns the state of all parts.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut informers: Vec<InformerReport> = Vec::new();
        let mut add = |status: &crate::informer::InformerStatus| {
            let report = InformerReport::from(status);
            // Controllers share informers: the same numbers mean the same informer.
            let is_same = |known: &InformerReport| {
                (&known.resource, &known.resource_version, known.objects, known.events)
                    == (&report.resource, &report.resource_version, report.objects, report.events)
            };
            if !informers.iter().any(is_same) {
                informers.push(report);
            }
        };
        let mut controllers = Vec::new();
        for controller in self.inspected() {
            controller.informers().iter().for_each(&mut add);
            let mut report = controller.report();
            let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            let aged = samples
                .get(&report.name)
                .into_iter()
                .flatten()
                .map(|(at, sample)| Sample { ago: at.elapsed().as_secs_f64(), ..*sample });
            report.samples = aged.collect();
            controllers.push(report);
        }
        for informer in self.informers.iter().filter_map(Weak::upgrade) {
            informer.informers().iter().for_each(&mut add);
        }
        let (webhooks, connections) = self.traffic();
        Snapshot {
            version: VERSION,
            uptime: self.started.elapsed().as_secs_f64(),
            leadership: self.elector.as_ref().and_then(Weak::upgrade).map(|elector| elector.report()),
            shards: self.shards.as_ref().map(|shards| ShardReport::from(&shards.status())),
            controllers,
            informers,
            webhooks,
            connections,
        }
    }

    /// Returns the story of a key in each controller that may know it, or in one controller.
    pub(super) fn stories(&self, key: &ObjectKey, only: Option<&str>, fights: Option<&Fights>) -> Stories {
        let elector = self.elector.as_ref().and_then(Weak::upgrade).map(|elector| elector.report());
        let mut stories = Vec::new();
        for controller in self.inspected() {
            let mut story = controller.explain(key);
            if only.is_some_and(|only| only != story.controller) {
                continue;
            }
            let standby = elector.as_ref().filter(|report| !report.is_leader);
            if let (Some(report), KeyState::NotStarted) = (standby, &story.state) {
                story.state = KeyState::NotLeader { leader: report.leader.clone() };
                story.summary = story.state.to_string();
            }
            if let (KeyState::OtherShard { owner }, Some(shards), Some(slot)) =
                (&mut story.state, &self.shards, controller.closed_slot(key))
            {
                *owner = shards.owner_of_slot(slot);
                story.summary = story.state.to_string();
            }
            if let Some(fights) = fights {
                story.fights = fights.over(&controller.rewritten(key));
            }
            stories.push(story);
        }
        // Controllers that know nothing about the key are left out, unless none does.
        let is_known = |state: &KeyState| !matches!(state, KeyState::NotCached { .. });
        if stories.iter().any(|story| is_known(&story.state)) {
            stories.retain(|story| is_known(&story.state));
        }
        Stories { version: VERSION, key: key.to_string(), stories }
    }

    /// Returns the keys of all controllers that contain a text.
    pub(super) fn search(&self, text: &str, limit: usize) -> KeySearch {
        let mut keys = Vec::new();
        for controller in self.inspected() {
            keys.extend(controller.search(text, (limit + 1).saturating_sub(keys.len())));
        }
        let is_truncated = keys.len() > limit;
        keys.truncate(limit);
        KeySearch { version: VERSION, keys, is_truncated }
    }

    /// Returns the numbers of webhooks and API servers, from the metrics.
    fn traffic(&self) -> (Vec<WebhookReport>, Vec<ConnectionReport>) {
        let mut webhooks: BTreeMap<String, WebhookReport> = BTreeMap::new();
        let mut servers: BTreeMap<String, (ConnectionReport, f64, u64)> = BTreeMap::new();
        self.registry.visit(|metric| {
            let label = |name: &str| metric.label(name).unwrap_or_default().to_owned();
            if metric.name.starts_with("controller_runtime_webhook_") && metric.label("webhook").is_some() {
                let hook = webhooks.entry(label("webhook")).or_default();
                match (metric.name, metric.value) {
                    ("controller_runtime_webhook_requests_total", MetricValue::Counter(count)) => {
                        *hook.requests.entry(label("code")).or_default() += count;
                    }
                    ("controller_runtime_webhook_requests_in_flight", MetricValue::Gauge(value)) => {
                        hook.in_flight = value as i64;
                    }
                    ("controller_runtime_webhook_latency_seconds", MetricValue::Histogram(histogram)) => {
                        let count = histogram.count();
                        hook.mean_latency = (count > 0).then(|| histogram.sum() / count as f64);
                    }
                    _ => {}
                }
            } else if metric.name.starts_with("rest_client_") && metric.label("host").is_some() {
                let (server, sum, count) = servers.entry(label("host")).or_default();
                match (metric.name, metric.value) {
                    ("rest_client_requests_total", MetricValue::Counter(requests)) => {
                        *server.requests.entry(label("code")).or_default() += requests;
                    }
                    ("rest_client_request_retries_total", MetricValue::Counter(retries)) => server.retries += retries,
                    ("rest_client_request_duration_seconds", MetricValue::Histogram(histogram))
                        if metric.label("verb") != Some("WATCH") =>
                    {
                        *sum += histogram.sum();
                        *count += histogram.count();
                    }
                    _ => {}
                }
            }
        });
        let webhooks = webhooks.into_iter().map(|(path, hook)| WebhookReport { path, ..hook }).collect();
        let servers = servers.into_iter().map(|(host, (server, sum, count))| ConnectionReport {
            host,
            mean_latency: (count > 0).then(|| sum / count as f64),
            ..server
        });
        (webhooks, servers.collect())
    }
}

/// Ten minutes.
const MAX_SAMPLES: usize = 120;

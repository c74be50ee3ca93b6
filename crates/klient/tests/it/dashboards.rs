//! The Grafana dashboard and the Prometheus rules use metrics that are exported, with labels that they have.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, SharedInformer,
    controller::{Outcome, Request},
    election::{ElectionOptions, LeaderElector, LeaseLock},
    metrics::{MetricValue, Registry},
};
use klient_apiserver::Fault;
use serde_json::Value;

use crate::informer::World;

const DASHBOARD: &str = include_str!("../../../../docs/observability/grafana-dashboard.json");
const RULES: &str = include_str!("../../../../docs/observability/prometheus-rules.yaml");

/// Returns every expression of both files, with the place where it stands.
fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push((panel["title"].to_string(), target["expr"].as_str().unwrap().to_owned()));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["definition"].as_str() {
            found.push((variable["name"].to_string(), query.to_owned()));
        }
    }
    let mut alert = String::new();
    for line in RULES.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            alert = name.to_owned();
        } else if let Some(text) = line.strip_prefix("expr: ") {
            found.push((alert.clone(), serde_json::from_str(text).unwrap()));
        }
    }
    assert!(found.len() > 30, "found only {} expressions", found.len());
    found
}

/// Returns the metrics of an expression, each with the labels that its selector names.
fn metrics(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(is_word) {
        let word: String = rest[start..].chars().take_while(|c| is_word(*c)).collect();
        rest = &rest[start + word.len()..];
        let next = rest.trim_start();
        if ["by", "without"].contains(&word.as_str()) {
            rest = rest.split_once(')').unwrap().1;
        } else if next.starts_with("by ")
            || next.starts_with('(')
            || word.starts_with(|c: char| c.is_ascii_digit() || c == '$')
        {
            // A function or a number. The metric of `label_values` is its first argument.
            if word == "label_values" {
                let (inside, _) = next[1..].rsplit_once(',').unwrap();
                found.extend(metrics(inside));
                return found;
            }
        } else {
            let mut labels = Vec::new();
            if let Some(selector) = next.strip_prefix('{') {
                let (selector, after) = selector.split_once('}').unwrap();
                labels = selector.split(", ").map(|part| part.split(['=', '!']).next().unwrap().to_owned()).collect();
                rest = after;
            }
            // The length of a range, such as `[5m]`.
            if let Some((_, after)) = rest.strip_prefix('[').and_then(|range| range.split_once(']')) {
                rest = after;
            }
            found.push((word, labels));
        }
    }
    found
}

/// Runs everything that has metrics. Returns the names that Prometheus sees, with their labels.
async fn exported() -> BTreeMap<String, BTreeSet<String>> {
    let world = World::start().await;
    let registry = Registry::new();
    let client: Client = world.client.to_builder().metrics(&registry).build();
    world.server.inject(Fault::too_many_requests(1).on_path("/api/v1/namespaces/default/configmaps/a").times(1));
    world.create("a").await;
    let read: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let maps = SharedInformer::builder(read.clone()).metrics(&registry, "maps").build();
    let (done, mut reconciled) = tokio::sync::mpsc::unbounded_channel();
    let controller =
        Controller::builder("maps", maps).registry(registry.clone()).reconcile(move |_: Request<ConfigMap>| {
            done.send(()).unwrap();
            async { Ok::<_, klient::Error>(Outcome::Done) }
        });
    let task = tokio::spawn({
        let controller = controller.clone();
        async move { controller.run_until(std::future::pending()).await }
    });
    reconciled.recv().await.unwrap();
    read.get("a").await.unwrap();
    let lock = LeaseLock::new(client, "default", "lock");
    let _elector = LeaderElector::new(lock, "anna", ElectionOptions::default().registry(registry.clone())).unwrap();
    #[cfg(feature = "webhook")]
    crate::webhooks::observe_one(&registry).await;

    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    registry.visit(|metric| {
        let labels = metric.labels.iter().map(|(name, _)| (*name).to_owned());
        let suffixes: &[&str] = match metric.value {
            MetricValue::Histogram(_) => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        for suffix in suffixes {
            let known = names.entry(format!("{}{suffix}", metric.name)).or_default();
            // Prometheus adds the first two to everything that it scrapes.
            known.extend(["job".to_owned(), "instance".to_owned(), "le".to_owned()]);
            known.extend(labels.clone());
        }
    });
    task.abort();
    names
}

#[tokio::test(start_paused = true)]
async fn dashboard_and_rules_use_exported_metrics_only() {
    let exported = exported().await;
    let mut wrong = Vec::new();
    for (place, expression) in expressions() {
        let used = metrics(&expression);
        assert!(!used.is_empty(), "{place}: {expression}");
        for (name, labels) in used {
            if cfg!(not(feature = "webhook")) && name.starts_with("controller_runtime_webhook_") {
                continue;
            }
            match exported.get(&name) {
                None => wrong.push(format!("{place}: {name}")),
                Some(known) => {
                    let unknown = labels.iter().filter(|label| !known.contains(*label));
                    wrong.extend(unknown.map(|label| format!("{place}: {name} has no label {label}")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "not exported: {wrong:#?}\nexported: {:#?}", exported.keys());
}

#[test]
fn names_of_metrics_are_found_in_expressions() {
    let names = |text: &str| metrics(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("rate(a_total{x=~\"5..|b\"}[5m]) / sum by (c, d) (e > 0.1)"), ["a_total", "e"]);
    assert_eq!(names("time() - max by (job) (f > 0) > 900"), ["f"]);
    assert_eq!(names("label_values(g{job=~\"$job\"}, controller)"), ["g"]);
    assert_eq!(metrics("h{i=\"1\", j!=\"2\"}"), [("h".to_owned(), vec!["i".to_owned(), "j".to_owned()])]);
}

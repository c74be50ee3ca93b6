//! Random writes to config maps, compared with a model.

use std::collections::BTreeMap;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use klient_apiserver::ApiServer;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// A write: its object and label.
#[derive(Clone, Copy, Debug)]
enum Write {
    Create(u8, u8),
    Update(u8, u8),
    /// A write with an outdated resource version.
    StaleUpdate(u8, u8),
    Patch(u8, u8),
    Delete(u8),
}

/// The expected state.
#[derive(Default)]
struct Model {
    /// The label and resource version of each object.
    objects: BTreeMap<String, (u8, String)>,
    /// The expected watch events: type, object name, and label before and after.
    log: Vec<(String, Option<u8>, Option<u8>)>,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let (name, label) = (0..4u8, 0..3u8);
    vec(
        prop_oneof![
            3 => (name.clone(), label.clone()).prop_map(|(name, label)| Write::Create(name, label)),
            2 => (name.clone(), label.clone()).prop_map(|(name, label)| Write::Update(name, label)),
            1 => (name.clone(), label.clone()).prop_map(|(name, label)| Write::StaleUpdate(name, label)),
            2 => (name.clone(), label).prop_map(|(name, label)| Write::Patch(name, label)),
            2 => name.prop_map(Write::Delete),
        ],
        1..40,
    )
}

async fn ask(server: &ApiServer, method: &str, path: &str, body: Option<Value>) -> (u16, String) {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
    let (parts, body) = server.handle(request.body(body).unwrap()).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), String::from_utf8(bytes.to_vec()).unwrap())
}

fn version(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap();
    value["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

fn object(name: &str, label: u8, version: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "labels": {"l": label.to_string()}});
    if let Some(version) = version {
        metadata["resourceVersion"] = json!(version);
    }
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

impl Model {
    async fn write(&mut self, server: &ApiServer, write: Write) {
        let (Write::Create(name, _)
        | Write::Update(name, _)
        | Write::StaleUpdate(name, _)
        | Write::Patch(name, _)
        | Write::Delete(name)) = write;
        let name = format!("m{name}");
        let path = format!("{PATH}/{name}");
        let known = self.objects.get(&name).cloned();
        let current = known.as_ref().map(|(_, version)| version.as_str());
        let (expected, (code, text), label) = match write {
            Write::Create(_, label) => {
                let expected = if known.is_some() { 409 } else { 201 };
                (expected, ask(server, "POST", PATH, Some(object(&name, label, None))).await, Some(label))
            }
            Write::Update(_, label) => {
                let expected = if known.is_some() { 200 } else { 404 };
                (expected, ask(server, "PUT", &path, Some(object(&name, label, current))).await, Some(label))
            }
            Write::StaleUpdate(_, label) => {
                let expected = if known.is_some() { 409 } else { 404 };
                (expected, ask(server, "PUT", &path, Some(object(&name, label, Some("1")))).await, Some(label))
            }
            Write::Patch(_, label) => {
                let expected = if known.is_some() { 200 } else { 404 };
                let patch = json!({"metadata": {"labels": {"l": label.to_string()}}});
                (expected, ask(server, "PATCH", &path, Some(patch)).await, Some(label))
            }
            Write::Delete(_) => {
                let expected = if known.is_some() { 200 } else { 404 };
                (expected, ask(server, "DELETE", &path, None).await, None)
            }
        };
        assert_eq!(code, expected, "{write:?}: {text}");
        if code >= 300 {
            return;
        }
        let before = known.as_ref().map(|(label, _)| *label);
        match label {
            Some(label) => {
                let new = version(&text);
                // An update without changes writes nothing.
                assert_eq!(before == Some(label), current == Some(new.as_str()), "{write:?}");
                self.objects.insert(name.clone(), (label, new));
            }
            None => drop(self.objects.remove(&name)),
        }
        if before != label {
            self.log.push((name, before, label));
        }
    }

    fn list(&self, selected: Option<u8>) -> Vec<String> {
        let is_selected = |label: u8| selected.is_none_or(|selected| selected == label);
        self.objects.iter().filter(|(_, (label, _))| is_selected(*label)).map(|(name, _)| name.clone()).collect()
    }

    fn events(&self, selected: Option<u8>) -> Vec<String> {
        let is_selected = |label: Option<u8>| label.is_some_and(|label| selected.is_none_or(|it| it == label));
        let event = |(name, before, after): &(String, Option<u8>, Option<u8>)| {
            let kind = match (is_selected(*before), is_selected(*after)) {
                (false, true) => "ADDED",
                (true, true) => "MODIFIED",
                (true, false) => "DELETED",
                (false, false) => return None,
            };
            Some(format!("{kind} {name}"))
        };
        self.log.iter().filter_map(event).collect()
    }
}

async fn check(writes: Vec<Write>) {
    let server = ApiServer::start().await.unwrap();
    let (_, text) = ask(&server, "GET", PATH, None).await;
    let start = version(&text);
    let mut model = Model::default();
    for write in writes {
        model.write(&server, write).await;
    }
    for selected in [None, Some(0), Some(1), Some(2)] {
        let query = selected.map_or_else(String::new, |label| format!("&labelSelector=l%3D{label}"));
        let (_, text) = ask(&server, "GET", &format!("{PATH}?limit=100{query}"), None).await;
        let list: Value = serde_json::from_str(&text).unwrap();
        let items = list["items"].as_array().unwrap();
        let names: Vec<&str> = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, model.list(selected));
        let watch = format!("{PATH}?watch=1&timeoutSeconds=1&resourceVersion={start}{query}");
        let (_, text) = ask(&server, "GET", &watch, None).await;
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told = |event: &Value| {
            format!("{} {}", event["type"].as_str().unwrap(), event["object"]["metadata"]["name"].as_str().unwrap())
        };
        assert_eq!(events.iter().map(told).collect::<Vec<_>>(), model.events(selected));
        let versions: Vec<u64> =
            events.iter().map(|event| version(&event["object"].to_string()).parse().unwrap()).collect();
        assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    }
}

#[test]
fn random_writes_match_model_and_watches_see_all() {
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let run = |writes| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(check(writes));
        Ok(())
    };
    runner.run(&writes(), run).unwrap();
}

//! Runs with faults that are recorded, and their replays.

#![allow(clippy::unwrap_used)]

#[path = "shared/menus.rs"]
mod menus;

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use klient::{
    Api, Client, Controller, Manager, ObjectKey, ResourceExt,
    client::http::FnTransport,
    controller::{Outcome, Request},
    metrics::Registry,
    recording::{Recorder, Recording, Step, TurnEnd},
};
use klient_apiserver::{ApiServer, Fault};
use klient_replay::{DifferenceKind, Replay};
use menus::{Program, controller, eventually, menu, replayed};
use serde_json::json;

/// Runs the controller in real time, with conflicts, failures, a broken watch and writes by others, and records it.
async fn record(recorder: &Recorder) {
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&menu("lunch", &[("soup", "leek"), ("price", "5")])).await.unwrap();
    let of_program = |_: &Method, _: &str, headers: &http::HeaderMap| headers.contains_key("x-program");
    server.inject(Fault::internal_error().on_method(Method::POST).when(of_program).after(1).times(2));
    server.inject(Fault::conflict().on_method(Method::PUT).when(of_program).times(2));
    let client = Client::builder(FnTransport::new(server.service()))
        .header(http::HeaderName::from_static("x-program"), http::HeaderValue::from_static("menus"))
        .build();
    let manager =
        Manager::builder().recorder(recorder).controller(controller(client, Program::Old)).build().await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
    let copied = async |name: &str, key: &str, value: &str| {
        let copy = maps.get_opt(&format!("{name}-guests")).await.unwrap();
        copy.and_then(|copy| copy.data?.get(key).cloned()).as_deref() == Some(value)
    };
    eventually("lunch is copied", async || copied("lunch", "soup", "leek").await).await;
    // The next two creates of the controller fail.
    maps.create(&menu("dinner", &[("soup", "pea"), ("price", "9")])).await.unwrap();
    maps.create(&menu("kitchen", &[("soup", "stock")])).await.unwrap();
    eventually("kitchen is copied", async || copied("kitchen", "soup", "stock").await).await;
    server.end_watches();
    let mut lunch = maps.get("lunch").await.unwrap();
    lunch.data.get_or_insert_default().insert("soup".to_owned(), "onion".to_owned());
    maps.update(&lunch).await.unwrap_or(lunch.clone());
    eventually("lunch is updated", async || {
        let patch = klient::Patch::merge(json!({"data": {"soup": "onion"}}));
        maps.patch("lunch", patch).await.is_ok() && copied("lunch", "soup", "onion").await
    })
    .await;
    let patch = klient::Patch::merge(json!({"data": {"broken": "yes"}}));
    maps.patch("dinner", patch).await.unwrap();
    eventually("dinner is copied once more", async || copied("dinner", "broken", "yes").await).await;
    // Others delete and change copies.
    maps.delete("kitchen-guests").await.unwrap();
    eventually("the copy is back", async || copied("kitchen", "soup", "stock").await).await;
    maps.delete("kitchen").await.unwrap();
    eventually("the dinner fails again", async || {
        let ends = recorder.recording().entries.into_iter().filter(
            |entry| matches!(&entry.step, Step::Ended { end: TurnEnd::Failed { error }, .. } if error.contains("oven")),
        );
        ends.count() >= 3
    })
    .await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

/// A recording of a run on two threads.
fn recorded() -> Recording {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let recorder = Recorder::builder().build();
    runtime.block_on(record(&recorder));
    recorder.recording()
}

#[test]
fn run_with_faults_replays_the_same_a_hundred_times() {
    let recording = recorded();
    let first = replayed(&recording, Program::Old);
    assert!(first.is_same(), "{first}");
    let started = recording.entries.iter().filter(|entry| matches!(entry.step, Step::Started { .. })).count();
    assert_eq!(first.turns.len(), started);
    let failures = first.turns.iter().filter(|turn| matches!(turn.end, Some(TurnEnd::Failed { .. }))).count();
    assert!(failures >= 5, "the faults are in the recording: {first}");
    for _ in 0..100 {
        let again = replayed(&recording, Program::Old);
        assert!(again.is_same(), "{again}");
        assert_eq!(again.turns, first.turns);
    }
}

#[test]
fn changed_program_differs_where_it_changed() {
    let recording = recorded();
    let report = replayed(&recording, Program::WithoutPrices);
    let kinds: Vec<DifferenceKind> = report.differences.iter().map(|difference| difference.kind).collect();
    assert!(kinds.contains(&DifferenceKind::Body), "{report}");
    let report = replayed(&recording, Program::WithoutKitchen);
    let not_sent = report.differences.iter().find(|difference| difference.kind == DifferenceKind::NotSent);
    assert!(not_sent.is_some_and(|difference| difference.message.contains("kitchen")), "{report}");
    assert!(
        report.turns.iter().any(|turn| turn.key == ObjectKey::namespaced("default", "dinner")),
        "it goes on: {report}"
    );
}

#[test]
fn recording_that_lost_its_begin_is_replayed_from_the_state() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let whole = Recorder::builder().build();
    runtime.block_on(record(&whole));
    let cut = Recorder::builder().max_bytes(20_000).build();
    runtime.block_on(record(&cut));
    let recording = cut.recording();
    assert!(!recording.header.whole && whole.recording().header.whole);
    assert!(recording.entries.len() < whole.recording().entries.len());
    let report = replayed(&recording, Program::Old);
    assert!(report.is_same(), "{report}");
    assert!(!report.turns.is_empty());
}

#[test]
fn recording_survives_the_file_and_has_no_secrets() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("night.klient");
    let recorder = Recorder::builder().write_to(&path).unwrap();
    runtime.block_on(async {
        let server = ApiServer::start().await.unwrap();
        let client = Client::from_service(server.service());
        let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
        let mut secret =
            Secret { string_data: Some([("password".to_owned(), "hunter2".to_owned())].into()), ..Secret::default() };
        secret.metadata.name = Some("db".to_owned());
        secrets.create(&secret).await.unwrap();
        let writer = secrets.clone();
        let controller = Controller::builder("secrets", secrets).registry(Registry::new()).reconcile(
            move |request: Request<Secret>| {
                let writer = writer.clone();
                async move {
                    let Some(secret) = request.object()? else { return Ok(Outcome::Done) };
                    if secret.label("seen").is_none() {
                        let mut seen = (*secret).clone();
                        seen.metadata.labels = Some([("seen".to_owned(), "yes".to_owned())].into());
                        writer.update(&seen).await?;
                    }
                    Ok::<_, klient::Error>(Outcome::Done)
                }
            },
        );
        let manager = Manager::builder().recorder(&recorder).controller(controller.clone()).build().await.unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
        eventually("it is labelled", async || controller.status().succeeded >= 2).await;
        stop.send(()).unwrap();
        running.await.unwrap().unwrap();
    });
    assert!(recorder.save(&path).is_err(), "the file is written already");
    drop((recorder, runtime));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    let recording = Recording::open(&path).unwrap();
    let requests = recording.entries.iter().filter(|entry| matches!(entry.step, Step::Request { .. })).count();
    assert_eq!(requests, 1, "{text}");
    assert!(recording.entries.iter().any(|entry| matches!(entry.step, Step::Object { .. })));
}

#[tokio::test]
async fn replay_without_paused_clock_is_refused() {
    let recording = Recording {
        header: klient::recording::Header {
            klient: "recording".to_owned(),
            version: 1,
            started: "2026-01-01T00:00:00Z".to_owned(),
            whole: true,
        },
        entries: Vec::new(),
    };
    let error = Replay::of(&recording).await.unwrap_err().to_string();
    assert_eq!(error, "a replay needs a paused clock: use #[tokio::test(start_paused = true)]");
}

#[tokio::test(start_paused = true)]
async fn controller_that_was_not_added_is_named() {
    let text = concat!(
        r#"{"klient":"recording","version":1,"started":"2026-01-01T00:00:00Z","whole":true}"#,
        "\n",
        r#"{"at":1,"step":"started","turn":1,"controller":"menus","key":"default/a","reasons":[],"failures":0}"#,
    );
    let replay = Replay::of(&Recording::read(text.as_bytes()).unwrap()).await.unwrap();
    let error = replay.run().await.unwrap_err().to_string();
    assert!(error.contains("\"menus\"") && error.contains("replay.controller"), "{error}");
}

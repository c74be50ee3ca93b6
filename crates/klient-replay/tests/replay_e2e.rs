//! A run on the real kube-apiserver, replayed on the embedded server. Skipped where there is no real one.

#![allow(clippy::unwrap_used)]

#[path = "shared/menus.rs"]
mod menus;

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Method, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Error, ErrorKind, Manager, Patch,
    client::{
        config::{Config, KubeconfigFiles, Overrides},
        http::{SendFuture, Transport},
    },
    recording::{Recorder, Step, TurnEnd},
};
use klient_harness::{Programs, Server};
use menus::{Program, controller, eventually, menu, replayed};
use serde_json::json;

/// A transport that loses every third write before it is sent.
struct Lossy {
    inner: Arc<dyn Transport>,
    writes: AtomicUsize,
}

impl Transport for Lossy {
    fn send(&self, request: Request<Bytes>) -> SendFuture<'_> {
        let is_write = request.method() != Method::GET;
        if is_write && self.writes.fetch_add(1, Ordering::Relaxed) % 3 == 1 {
            return Box::pin(async { Err(Error::new(ErrorKind::Transport, "lost on purpose")) });
        }
        self.inner.send(request)
    }
}

async fn record(config: &Config, recorder: &Recorder) {
    let client = Client::from_config(config).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&menu("lunch", &[("soup", "leek")])).await.unwrap();
    let lossy = |inner| Lossy { inner, writes: AtomicUsize::new(0) };
    let client = Client::builder_from_config(config).unwrap().layer(lossy).build();
    let manager =
        Manager::builder().recorder(recorder).controller(controller(client, Program::Old)).build().await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
    let copied = async |name: &str, soup: &str| {
        let copy = maps.get_opt(&format!("{name}-guests")).await.unwrap();
        copy.and_then(|copy| copy.data?.get("soup").cloned()).as_deref() == Some(soup)
    };
    eventually("lunch is copied", async || copied("lunch", "leek").await).await;
    for (name, soup) in [("dinner", "pea"), ("supper", "bean"), ("brunch", "egg")] {
        maps.create(&menu(name, &[("soup", soup)])).await.unwrap();
        eventually(name, async || copied(name, soup).await).await;
    }
    for soup in ["onion", "tomato", "leek"] {
        maps.patch("lunch", Patch::merge(json!({"data": {"soup": soup}}))).await.unwrap();
        eventually(soup, async || copied("lunch", soup).await).await;
    }
    maps.delete("supper-guests").await.unwrap();
    eventually("the copy is back", async || copied("supper", "bean").await).await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[test]
fn run_on_the_real_server_replays_on_the_embedded_one() {
    let Some(programs) = Programs::for_tests().unwrap() else {
        std::io::stderr().write_all(b"skipped: a recording of the real kube-apiserver, since there is none\n").unwrap();
        return;
    };
    let server = Server::start(&programs).unwrap();
    let overrides = Overrides::default().context("token");
    let config = Config::load(&KubeconfigFiles::explicit(server.kubeconfig()), &overrides).unwrap();
    let recorder = Recorder::builder().build();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(record(&config, &recorder));
    let recording = recorder.recording();
    let failed = recording.entries.iter().filter(|entry| {
        matches!(&entry.step, Step::Ended { end: TurnEnd::Failed { error }, .. } if error.contains("lost on purpose"))
    });
    assert!(failed.count() >= 2);
    let first = replayed(&recording, Program::Old);
    assert!(first.is_same(), "{first}");
    for _ in 0..10 {
        let again = replayed(&recording, Program::Old);
        assert!(again.is_same(), "{again}");
        assert_eq!(again.turns, first.turns);
    }
}

//! An API server that is killed and restarted, as its clients see it. Each test here has its own server.

use std::{path::PathBuf, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, ErrorKind, Patch, WatchEvent,
    client::RetryWatch,
    options::{ListOptions, WatchOptions},
};
use klient_harness::Server;
use serde_json::json;

use crate::cluster::{config_of, or_skip, programs};

/// A server that a test may kill. Its methods block, which would stop a client on the same thread.
pub(crate) struct OwnServer {
    server: Option<Server>,
    kubeconfig: PathBuf,
}

impl OwnServer {
    pub(crate) async fn start(flags: &'static [(&'static str, &'static str)]) -> Option<Self> {
        let programs = programs()?;
        let start = move || Server::start_with(&programs, flags);
        let server = tokio::task::spawn_blocking(start).await.unwrap().unwrap();
        Some(Self { kubeconfig: server.kubeconfig(), server: Some(server) })
    }

    pub(crate) fn client(&self) -> Client {
        Client::from_config(&config_of(&self.kubeconfig, "token")).unwrap()
    }

    pub(crate) async fn with<T: Send + 'static>(&mut self, work: impl FnOnce(&mut Server) -> T + Send + 'static) -> T {
        let mut server = self.server.take().unwrap();
        let work = move || {
            let result = work(&mut server);
            (server, result)
        };
        let (server, result) = tokio::task::spawn_blocking(work).await.unwrap();
        self.server = Some(server);
        result
    }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": "faults"}}})).unwrap()
}

/// Describes an event and its object.
fn describe(event: &WatchEvent<ConfigMap>) -> String {
    let name = event.object().and_then(|map| map.metadata.name.as_deref()).unwrap_or_default();
    format!("{} {name}", event.type_name())
}

#[tokio::test]
async fn retry_watch_survives_a_killed_server_without_loss() {
    // With a cache, a restarted server has no earlier events: see the next test.
    let mut server = or_skip!(OwnServer::start(&[("watch-cache", "false")]).await);
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    let version = maps.list().await.unwrap().resource_version();
    let options = WatchOptions::after(version.clone()).labels("app=faults");
    let mut watch = RetryWatch::new(maps.clone(), options.clone()).unwrap();
    let mut seen = Vec::new();

    for round in 0..2 {
        let name = |when: &str| format!("{when}-{round}");
        maps.create(&map(&name("read"))).await.unwrap();
        seen.push(describe(&watch.next().await.unwrap().unwrap()));
        // The watch receives this before or after the server is killed.
        maps.create(&map(&name("unread"))).await.unwrap();
        server.with(Server::kill).await;
        let error = maps.create(&map(&name("during"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport, "{error}");

        server.with(Server::restart).await.unwrap();
        assert_eq!(maps.get_opt(&name("during")).await.unwrap(), None);
        let patch = Patch::merge(json!({"data": {"a": "b"}}));
        maps.patch(&name("read"), patch.clone()).await.unwrap();
        maps.delete(&name("unread")).await.unwrap();
        maps.create(&map(&name("after"))).await.unwrap();
        for _ in 0..4 {
            seen.push(describe(&watch.next().await.unwrap().unwrap()));
        }
    }
    let expected = |round: i32| {
        ["ADDED read", "ADDED unread", "MODIFIED read", "DELETED unread", "ADDED after"]
            .map(|event| format!("{event}-{round}"))
    };
    assert_eq!(seen, [expected(0), expected(1)].concat());
    assert!(watch.last_error().is_none());

    // All events again, from etcd. The watch returned every one of them.
    let mut again = RetryWatch::new(maps, options).unwrap();
    for told_before in seen {
        assert_eq!(describe(&again.next().await.unwrap().unwrap()), told_before);
    }
    let more = tokio::time::timeout(Duration::from_millis(500), watch.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn restarted_server_without_history_requires_a_list() {
    let mut server = or_skip!(OwnServer::start(&[]).await);
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    let options = ListOptions::default().labels("app=faults");
    let version = maps.list().options(options.clone()).await.unwrap().resource_version();
    let mut watch = RetryWatch::new(maps.clone(), WatchOptions::after(version).labels("app=faults")).unwrap();
    maps.create(&map("read")).await.unwrap();
    assert_eq!(describe(&watch.next().await.unwrap().unwrap()), "ADDED read");
    let seen = watch.resource_version().clone();
    drop(watch);
    maps.create(&map("unread")).await.unwrap();
    server.with(Server::restart).await.unwrap();
    let options_after = WatchOptions::after(seen).labels("app=faults");
    let mut watch = RetryWatch::new(maps.clone(), options_after).unwrap();
    let ended = watch.next().await.unwrap().unwrap_err();
    assert!(ended.is_gone(), "{ended}");
    assert!(watch.next().await.is_none());

    let list = maps.list().options(options.clone()).await.unwrap();
    let names: Vec<_> = list.iter().map(|map| map.metadata.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["read", "unread"]);
    let options = WatchOptions::after(list.resource_version()).labels("app=faults");
    let mut watch = RetryWatch::new(maps.clone(), options).unwrap();
    maps.create(&map("after")).await.unwrap();
    assert_eq!(describe(&watch.next().await.unwrap().unwrap()), "ADDED after");
}

#[tokio::test]
async fn list_fails_while_the_server_is_down_and_then_succeeds() {
    let mut server = or_skip!(OwnServer::start(&[]).await);
    let client = server.client();
    let maps: Api<ConfigMap> = Api::all(client);
    maps.list().await.unwrap();
    server.with(Server::kill).await;
    let error = maps.list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.to_string().contains("127.0.0.1"), "{error}");

    // Requested continuously during the start: the server is down, or not ready, or responds.
    let lists = tokio::spawn(async move {
        loop {
            match maps.list().await {
                Ok(list) => return list.items.len(),
                Err(error) => {
                    let away = matches!(error.kind(), ErrorKind::Transport | ErrorKind::Unavailable);
                    assert!(away, "{error:?}");
                }
            }
        }
    });
    server.with(Server::restart).await.unwrap();
    let listed = tokio::time::timeout(Duration::from_secs(60), lists).await.expect("the lists end").unwrap();
    assert!(listed > 0, "the server's own config maps are still there");
}

#[tokio::test]
async fn new_authority_is_trusted_once_the_file_has_it() {
    let mut server = or_skip!(OwnServer::start(&[]).await);
    let trusting = server.client();
    let maps = |client: &Client| Api::<ConfigMap>::all(client.clone());
    maps(&trusting).list().await.unwrap();
    // This client has the old authority in its settings, and never reads the new one.
    let mut config = config_of(&server.kubeconfig, "token");
    let old = std::fs::read(server.server.as_ref().unwrap().authority_file()).unwrap();
    config.tls = config.tls.trust(klient::client::config::Trust::Authority(klient::client::config::Pem::Data(old)));
    let stuck = Client::from_config(&config).unwrap();
    maps(&stuck).list().await.unwrap();

    server.with(Server::replace_authority).await.unwrap();
    let error = maps(&stuck).list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
    // The file is checked every ten seconds.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while let Err(error) = maps(&trusting).list().await {
        assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
        assert!(tokio::time::Instant::now() < deadline, "{error}");
    }
}

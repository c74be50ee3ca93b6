//! The debug page: its data, who sees it, and its limits.

use std::{net::SocketAddr, time::Duration};

use k8s_openapi::api::{
    core::v1::ConfigMap,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use klient::{
    Api, Client, Controller, InformerFactory, Manager, Patch,
    controller::{Outcome, Request},
    election::{ElectionOptions, LeaderElector, LeaseLock},
    introspection::{KeySearch, KeyState, Snapshot, Stories, VERSION},
    manager::DebugPage,
    metrics::Registry,
};
use klient_apiserver::{ApiServer, User};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use crate::{informer::World, support::embedded};

/// A manager with a debug page, which runs until it is dropped.
struct Served {
    address: SocketAddr,
    task: JoinHandle<Result<(), klient::Error>>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn controller(client: &Client) -> Controller<ConfigMap> {
    let maps = InformerFactory::new(client.clone()).core_v1().config_maps();
    Controller::builder("maps", maps).registry(Registry::new()).reconcile(|request: Request<ConfigMap>| async move {
        match request.name() {
            "broken" => Err(klient::Error::from(klient::controller::Terminal::new("<script>alert('x')</script>"))),
            _ => Ok(Outcome::Done),
        }
    })
}

async fn serve(client: &Client, page: DebugPage) -> Served {
    let builder = Manager::builder().registry(Registry::new()).controller(controller(client));
    let manager = builder.serve(([127, 0, 0, 1], 0)).debug(page).build().await.unwrap();
    Served { address: manager.address().unwrap(), task: tokio::spawn(manager.run_until(std::future::pending())) }
}

/// Sends a GET request. Returns the status code, the head and the body.
async fn get(served: &Served, path: &str, headers: &[(&str, &str)]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let host = if headers.iter().any(|(name, _)| *name == "host") { "" } else { "host: localhost\r\n" };
    let extra: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("GET /debug/klient{path} HTTP/1.1\r\n{host}{extra}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
}

async fn data<T: serde::de::DeserializeOwned>(served: &Served, path: &str) -> T {
    let (code, _, body) = get(served, path, &[]).await;
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Fails a test that hangs. Sockets need real time, so that the limit is one of seconds.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("timed out")
}

/// Waits until the story of a key satisfies a condition.
async fn story(served: &Served, key: &str, holds: impl Fn(&KeyState) -> bool) -> Stories {
    soon(async {
        loop {
            let stories: Stories = data(served, &format!("/v1/why?key={key}")).await;
            if stories.stories.first().is_some_and(|story| holds(&story.state)) {
                return stories;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn page_shows_status_stories_and_keys_as_json() {
    let world = World::start().await;
    for name in ["a", "b", "broken"] {
        world.create(name).await;
    }
    let served = serve(&world.client, DebugPage::local()).await;
    let stories = story(&served, "default/broken", |state| matches!(state, KeyState::Failed { .. })).await;
    assert_eq!((stories.version, stories.stories[0].controller.as_str()), (VERSION, "maps"));
    assert!(stories.stories[0].has_history);
    for key in ["default%2Fa", "default/b"] {
        story(&served, key, |state| matches!(state, KeyState::Done { .. })).await;
    }
    story(&served, "default/nothing", |state| *state == KeyState::NotCached { covered: true }).await;

    let found: KeySearch = data(&served, "/v1/keys?search=default&limit=2").await;
    assert_eq!((found.keys.len(), found.is_truncated), (2, true));
    let snapshot: Snapshot = data(&served, "/v1/status").await;
    assert_eq!((snapshot.version, snapshot.leadership, snapshot.shards), (VERSION, None, None));
    let maps = &snapshot.controllers[0];
    assert_eq!((maps.name.as_str(), maps.failed, maps.history.as_ref().unwrap().keys), ("maps", 1, 3));
    assert_eq!(snapshot.informers.len(), 1, "{:?}", snapshot.informers);
    assert_eq!((snapshot.informers[0].state.as_str(), snapshot.informers[0].objects), ("synced", 3));

    let (code, head, page) = get(&served, "", &[]).await;
    assert_eq!(code, 200);
    assert!(page.contains("<title>klient</title>") && head.contains("content-security-policy: default-src 'none'"));
    assert!(!page.contains("broken"), "the page itself has no data");
    for (path, code) in [("/page.js", 200), ("/page.css", 200), ("/v1/nothing", 404), ("/v1/why", 400)] {
        assert_eq!(get(&served, path, &[]).await.0, code, "{path}");
    }
    assert_eq!(get(&served, "/v1/why?key=a/b/c", &[]).await.0, 400);
    assert_eq!(get(&served, &format!("/v1/why?key={}", "x".repeat(3000)), &[]).await.0, 414);
}

#[tokio::test]
async fn page_has_the_documented_json_names() {
    let world = World::start().await;
    world.create("a").await;
    let served = serve(&world.client, DebugPage::local()).await;
    story(&served, "default/a", |state| matches!(state, KeyState::Done { .. })).await;
    let value: Value = data(&served, "/v1/why?key=default/a&controller=maps").await;
    let story = &value["stories"][0];
    assert_eq!(story["state"]["state"], "done");
    assert!(story["state"]["endedAgo"].is_number());
    let turn = &story["turns"][0];
    assert_eq!((turn["outcome"].as_str(), turn["reasons"][0]["kind"].as_str()), (Some("succeeded"), Some("found")));
    for field in ["endedAgo", "took", "queuedFor", "waitedForOwnWrites", "seenVersion"] {
        assert!(turn[field].is_number(), "{field} in {turn}");
    }
    let other: Stories = data(&served, "/v1/why?key=default/a&controller=others").await;
    assert!(other.stories.is_empty());
}

#[tokio::test]
async fn event_stream_repeats_snapshots_and_is_limited() {
    let world = World::start().await;
    let served = serve(&world.client, DebugPage::local()).await;
    let mut streams = Vec::new();
    for number in 0..17 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(b"GET /debug/klient/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        let expected = if number < 16 { b"HTTP/1.1 200" } else { b"HTTP/1.1 503" };
        assert_eq!(&start, expected, "stream {number}");
        streams.push(stream);
    }
    let mut first = streams.swap_remove(0);
    let mut text = String::new();
    let mut buffer = vec![0; 64 << 10];
    soon(async {
        while text.matches("data: {").count() < 2 {
            let count = first.read(&mut buffer).await.unwrap();
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    })
    .await;
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    // A client that leaves makes room for another one.
    drop((first, streams));
    soon(async {
        while get_head(&served).await != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn get_head(served: &Served) -> u16 {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(b"GET /debug/klient/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    String::from_utf8_lossy(&start[9..]).parse().unwrap()
}

#[tokio::test]
async fn local_page_is_refused_to_foreign_hosts_and_proxies() {
    let world = World::start().await;
    let served = serve(&world.client, DebugPage::local()).await;
    for path in ["", "/page.js", "/v1/status", "/v1/events", "/v1/why?key=default/a", "/v1/keys?search=a"] {
        assert_eq!(get(&served, path, &[("host", "evil.example")]).await.0, 403, "{path}");
        assert_eq!(get(&served, path, &[("x-forwarded-for", "10.0.0.9")]).await.0, 403, "{path}");
    }
}

#[tokio::test]
async fn page_is_absent_unless_it_is_requested() {
    let world = World::start().await;
    let manager = Manager::builder().serve(([127, 0, 0, 1], 0)).controller(controller(&world.client));
    let manager = manager.build().await.unwrap();
    let served =
        Served { address: manager.address().unwrap(), task: tokio::spawn(manager.run_until(std::future::pending())) };
    assert_eq!(get(&served, "/v1/status", &[]).await.0, 404);
    let error = Manager::builder().debug(DebugPage::local()).build().await.unwrap_err();
    assert_eq!(error.to_string(), "cannot serve the debug page: call `serve` with an address");
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Starts a server on which `anna` may see the page, and `eve` may not.
async fn guarded() -> (ApiServer, Client) {
    let server = ApiServer::builder()
        .rbac()
        .token("anna-token", User::new("anna"))
        .token("eve-token", User::new("eve"))
        .start()
        .await
        .unwrap();
    let admin = Client::from_service(server.service_as(User::new("root").group("system:masters")));
    let role =
        json!({"metadata": {"name": "debug"}, "rules": [{"nonResourceURLs": ["/debug/klient"], "verbs": ["get"]}]});
    Api::<ClusterRole>::cluster(admin.clone()).create(&of(role)).await.unwrap();
    let binding = json!({"metadata": {"name": "debug"}, "subjects": [{"kind": "User", "name": "anna"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "debug"}});
    Api::<ClusterRoleBinding>::cluster(admin.clone()).create(&of(binding)).await.unwrap();
    (server, admin)
}

#[tokio::test]
async fn data_is_shown_to_authorized_users_only() {
    let (_server, client) = guarded().await;
    let served = serve(&client, DebugPage::authorized_by(client.clone())).await;
    for path in ["/v1/status", "/v1/events", "/v1/why?key=default/a", "/v1/keys?search=a", "/v1/nothing"] {
        let (code, head, body) = get(&served, path, &[]).await;
        assert_eq!(code, 401, "{path}");
        assert!(head.contains("www-authenticate: Bearer") && body.starts_with("a bearer token is required"), "{head}");
        assert_eq!(get(&served, path, &[("authorization", "Bearer wrong")]).await.0, 401, "{path}");
        let (code, _, body) = get(&served, path, &[("authorization", "Bearer eve-token")]).await;
        assert_eq!(code, 403, "{path}");
        assert!(!body.contains("eve"), "{body}");
        assert_eq!(get(&served, path, &[("authorization", "Basic anna-token")]).await.0, 401, "{path}");
    }
    let (code, _, body) = get(&served, "/v1/status", &[("authorization", "Bearer anna-token")]).await;
    assert_eq!(code, 200, "{body}");
    assert!(!body.contains("token"), "{body}");
    // The files have no data: a browser loads them to ask for a token.
    assert_eq!(get(&served, "", &[]).await.0, 200);
    assert_eq!(get(&served, "/page.js", &[("host", "shop.example")]).await.0, 200);
}

#[tokio::test]
async fn decisions_are_cached_and_reviews_can_fail() {
    let (server, client) = guarded().await;
    let served = serve(&client, DebugPage::authorized_by(client.clone())).await;
    let anna = [("authorization", "Bearer anna-token")];
    assert_eq!(get(&served, "/v1/keys", &anna).await.0, 200);
    server.inject(klient_apiserver::Fault::internal_error().on_path("/apis/authentication.k8s.io"));
    assert_eq!(get(&served, "/v1/keys", &anna).await.0, 200, "the decision is cached");
    let (code, _, body) = get(&served, "/v1/keys", &[("authorization", "Bearer eve-token")]).await;
    assert_eq!(code, 503);
    assert_eq!(body, "the API server cannot review the token: see this program's log\n");
}

#[tokio::test]
async fn invented_tokens_cause_few_reviews_at_a_time() {
    let (server, client) = guarded().await;
    let served = serve(&client, DebugPage::authorized_by(client.clone())).await;
    // Reviews are never answered, so that each of them occupies its place.
    server.inject(klient_apiserver::Fault::silence().on_path("/apis/authentication.k8s.io"));
    let mut waiting = Vec::new();
    for number in 0..8 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let token = format!("authorization: Bearer invented-{number}\r\n");
        let request = format!("GET /debug/klient/v1/keys HTTP/1.1\r\nhost: localhost\r\n{token}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    soon(async {
        while server
            .requests()
            .iter()
            .filter(|((_, path), _)| path.contains("tokenreviews"))
            .map(|(_, count)| count)
            .sum::<u64>()
            < 8
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(get(&served, "/v1/keys", &[("authorization", "Bearer one-more")]).await.0, 503);
}

#[tokio::test]
async fn standby_says_who_leads() {
    let world = World::start().await;
    world.create("a").await;
    let elector = |identity: &str| {
        let lock = LeaseLock::new(world.client.clone(), "default", "lock");
        LeaderElector::new(lock, identity, ElectionOptions::default().registry(Registry::new())).unwrap()
    };
    let mut managers = Vec::new();
    for identity in ["anna", "berta"] {
        let builder = Manager::builder().registry(Registry::new()).controller(controller(&world.client));
        let manager =
            builder.elected_by(elector(identity)).serve(([127, 0, 0, 1], 0)).debug(DebugPage::local()).build().await;
        let manager = manager.unwrap();
        let served = Served {
            address: manager.address().unwrap(),
            task: tokio::spawn(manager.run_until(std::future::pending())),
        };
        if identity == "anna" {
            story(&served, "default/a", |state| matches!(state, KeyState::Done { .. })).await;
        }
        managers.push(served);
    }
    let anna = KeyState::NotLeader { leader: Some("anna".to_owned()) };
    let stories = story(&managers[1], "default/a", |state| *state == anna).await;
    assert_eq!(stories.stories[0].summary, "this process does not lead: anna does, and reconciles the key");
    let snapshot: Snapshot = data(&managers[1], "/v1/status").await;
    assert_eq!(snapshot.leadership.unwrap().leader.as_deref(), Some("anna"));
}

#[tokio::test]
async fn story_names_the_field_that_two_managers_fight_over() {
    let world = World::start().await;
    world.create("a").await;
    let maps = InformerFactory::new(world.client.clone()).core_v1().config_maps();
    let api = world.maps.clone();
    let fighter =
        Controller::builder("fighter", maps).registry(Registry::new()).reconcile(move |request: Request<ConfigMap>| {
            let api = api.clone();
            async move {
                let quiet = Patch::merge(json!({"data": {"mode": "quiet"}}));
                api.patch(request.name(), quiet).manager("fighter").await?;
                Ok::<_, klient::Error>(Outcome::Done)
            }
        });
    let page = DebugPage::local().watching_with(embedded::client(&world.server));
    let manager =
        Manager::builder().serve(([127, 0, 0, 1], 0)).registry(Registry::new()).controller(fighter).debug(page);
    let manager = manager.build().await.unwrap();
    let served =
        Served { address: manager.address().unwrap(), task: tokio::spawn(manager.run_until(std::future::pending())) };
    let other = world.maps.clone();
    let rival = tokio::spawn(async move {
        loop {
            let patch = Patch::merge(json!({"data": {"mode": "loud"}}));
            let _ = other.patch("a", patch).manager("rival").await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let fights = soon(async {
        loop {
            let stories: Stories = data(&served, "/v1/why?key=default/a").await;
            if let Some(story) = stories.stories.into_iter().find(|story| !story.fights.is_empty()) {
                return story.fights;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    rival.abort();
    assert_eq!((fights[0].field.as_str(), fights[0].object.as_str()), (".data.mode", "default/a"));
    assert_eq!(fights[0].managers, ["fighter", "rival"]);
}

//! Managers on the embedded server: health over real sockets, everything else with a paused clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Controller, ErrorKind, InformerFactory, Manager,
    controller::{Outcome, Request},
    election::{ElectionOptions, LeaderElector, LeaseLock},
    metrics::Registry,
};
use klient_apiserver::Fault;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::informer::{World, within};

/// Returns a controller, and the requests of its reconciler.
fn recorded(world: &World, name: &str) -> (Controller<ConfigMap>, mpsc::UnboundedReceiver<Request<ConfigMap>>) {
    let (sender, calls) = mpsc::unbounded_channel();
    let factory = InformerFactory::new(world.client.clone());
    let controller = Controller::builder(name, factory.core_v1().config_maps()).registry(Registry::new()).reconcile(
        move |request: Request<ConfigMap>| {
            sender.send(request).unwrap();
            async { Ok::<_, klient::Error>(Outcome::Done) }
        },
    );
    (controller, calls)
}

fn elector(world: &World, identity: &str) -> LeaderElector<LeaseLock> {
    let lock = LeaseLock::new(world.client.clone(), "default", "lock");
    LeaderElector::new(lock, identity, ElectionOptions::default().registry(Registry::new())).unwrap()
}

fn until() -> (oneshot::Sender<()>, impl Future<Output = ()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    (stop, async { drop(stopped.await) })
}

/// Sends a GET request. Returns the status code and body.
async fn get(manager: std::net::SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(manager).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn manager_serves_health_of_each_part_and_metrics() {
    let world = World::start().await;
    let registry = Registry::new();
    registry.counter("shop_orders_total", "Orders.", &[]).add(3);
    let (controller, mut calls) = recorded(&world, "maps");
    let secrets = InformerFactory::new(world.client.clone()).core_v1().secrets();
    let sick = Arc::new(AtomicBool::new(false));
    let check = Arc::clone(&sick);
    let manager = Manager::builder()
        .serve(([127, 0, 0, 1], 0))
        .registry(registry)
        .informer(&secrets)
        .controller(controller)
        .max_stale(Duration::ZERO)
        .alive_if("disk", move || if check.load(Ordering::Relaxed) { Err("full".to_owned()) } else { Ok(()) })
        .build()
        .await
        .unwrap();
    let address = manager.address().unwrap();
    let (stop, stopped) = until();
    let task = tokio::spawn(manager.run_until(stopped));
    world.create("a").await;
    within(calls.recv()).await.unwrap();
    secrets.wait_for_sync().await.unwrap();
    assert_eq!(get(address, "/readyz").await, (200, "ok".to_owned()));
    let verbose = "[+]informer-secrets ok\n[+]controller-maps ok\nall checks passed\n";
    assert_eq!(get(address, "/readyz?verbose").await, (200, verbose.to_owned()));
    assert_eq!(get(address, "/healthz").await.0, 200);
    assert!(get(address, "/metrics").await.1.contains("shop_orders_total 3"));
    assert_eq!(get(address, "/").await.0, 404);

    sick.store(true, Ordering::Relaxed);
    assert_eq!(get(address, "/healthz").await, (503, "[-]disk failed: full\n".to_owned()));
    assert_eq!(get(address, "/healthz?exclude=disk").await.0, 200);
    assert_eq!(get(address, "/healthz/disk").await.0, 503);
    assert_eq!(get(address, "/healthz/disc").await, (404, "check \"disc\" not found\n".to_owned()));

    // A broken watch makes the process unready, and leaves it alive.
    world.server.inject(Fault::internal_error().on_path("/api/v1/secrets"));
    let mut states = secrets.states();
    world.server.end_watches();
    within(states.wait_for(|state| matches!(state, klient::informer::InformerState::Stale { .. }))).await.unwrap();
    let (code, body) = get(address, "/readyz").await;
    assert_eq!(code, 503);
    assert!(body.contains("[-]informer-secrets failed: cache of secrets is stale for "), "{body}");
    assert!(body.contains("[+]controller-maps ok"), "{body}");
    assert_eq!(get(address, "/healthz?exclude=disk").await.0, 200);
    drop(stop);
    task.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn build_fails_if_the_address_is_in_use() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let error = Manager::builder().serve(address).build().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!(error.to_string(), format!("cannot listen on {address} for health and metrics"));
}

#[tokio::test(start_paused = true)]
async fn build_rejects_duplicate_names_of_controllers() {
    let world = World::start().await;
    let twice = Manager::builder().controller(recorded(&world, "maps").0).controller(recorded(&world, "maps").0);
    let error = twice.build().await.unwrap_err();
    assert_eq!(error.to_string(), "two parts of the manager are named \"controller-maps\": use different names");
    let factory = InformerFactory::new(world.client.clone());
    let (all, some) = (factory.core_v1().pods(), factory.namespace("default").core_v1().pods());
    Manager::builder().informer(&all).informer(&some).build().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_reconciles() {
    let world = World::start().await;
    world.create("a").await;
    let mut managers = Vec::new();
    for identity in ["anna", "berta"] {
        let (controller, calls) = recorded(&world, identity);
        let informer = InformerFactory::new(world.client.clone()).core_v1().config_maps();
        let manager =
            Manager::builder().informer(&informer).elected_by(elector(&world, identity)).controller(controller);
        let (stop, stopped) = until();
        let task = tokio::spawn(manager.build().await.unwrap().run_until(stopped));
        if identity == "anna" {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        managers.push((stop, task, calls, informer));
    }
    let (stop_berta, berta, mut calls_of_berta, informer) = managers.pop().unwrap();
    let (stop_anna, anna, mut calls_of_anna, _) = managers.pop().unwrap();
    let call = within(calls_of_anna.recv()).await.unwrap();
    assert!(call.leadership().unwrap().is_valid());
    within(informer.wait_for_sync()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(calls_of_berta.try_recv().is_err(), "two at once");
    drop(stop_anna);
    anna.await.unwrap().unwrap();
    let released = Instant::now();
    let next = within(calls_of_berta.recv()).await.unwrap();
    assert!(released.elapsed() < Duration::from_secs(3), "lease was not released: {:?}", released.elapsed());
    let (old, new) = (call.leadership().unwrap(), next.leadership().unwrap());
    assert!(!old.is_valid() && new.token() > old.token());
    drop(stop_berta);
    berta.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn standby_is_ready_with_warm_caches() {
    let world = World::start().await;
    world.create("a").await;
    let mut managers = Vec::new();
    for identity in ["anna", "berta"] {
        let (controller, calls) = recorded(&world, identity);
        let manager = Manager::builder()
            .serve(([127, 0, 0, 1], 0))
            .elected_by(elector(&world, identity))
            .controller(controller.clone())
            .build()
            .await
            .unwrap();
        let address = manager.address().unwrap();
        let (stop, stopped) = until();
        let task = tokio::spawn(manager.run_until(stopped));
        tokio::time::sleep(Duration::from_secs(5)).await;
        managers.push((stop, task, calls, controller, address));
    }
    let (_stop, _task, mut calls, standby, address) = managers.pop().unwrap();
    within(async {
        while standby.lister().is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    assert!(calls.try_recv().is_err(), "a standby reconciles nothing");
    // Sockets need real time.
    tokio::time::resume();
    let leader = managers[0].4;
    assert_eq!(get(address, "/readyz").await, (200, "ok".to_owned()));
    let (_, verbose) = get(address, "/readyz?verbose").await;
    assert!(verbose.contains("[+]controller-berta ok\n[+]leader-election ok: standby, anna leads\n"), "{verbose}");
    let (_, verbose) = get(leader, "/readyz?verbose").await;
    assert!(verbose.contains("[+]leader-election ok: this process leads\n"), "{verbose}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manager_stops_although_a_handler_does_not_return() {
    let world = World::start().await;
    world.create("a").await;
    let informer = InformerFactory::new(world.client.clone()).core_v1().config_maps();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (entered, mut calls) = mpsc::unbounded_channel();
    let _registration = informer.add_handler(move |_: &klient::informer::Event<ConfigMap>| {
        entered.send(()).unwrap();
        let _ = released.recv();
    });
    let manager = Manager::builder().informer(&informer).drain_for(Duration::from_millis(50)).build().await.unwrap();
    let stopped = async { calls.recv().await.unwrap() };
    let error = within(manager.run_until(stopped)).await.unwrap_err();
    assert_eq!(error.to_string(), "informers did not stop within 50ms: a handler of theirs still runs");
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn leader_stops_reconciling_before_another_can_lead() {
    let world = World::start().await;
    world.create("a").await;
    let last_polled = Arc::new(std::sync::Mutex::new(Instant::now()));
    let polled = Arc::clone(&last_polled);
    let informer = InformerFactory::new(world.client.clone()).core_v1().config_maps();
    let controller =
        Controller::builder("maps", informer).registry(Registry::new()).reconcile(move |_: Request<ConfigMap>| {
            let polled = Arc::clone(&polled);
            async move {
                loop {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    *polled.lock().unwrap() = Instant::now();
                }
                #[expect(unreachable_code, reason = "it fixes the type of the future")]
                Ok::<_, klient::Error>(Outcome::Done)
            }
        });
    let manager = Manager::builder().elected_by(elector(&world, "anna")).controller(controller).build().await.unwrap();
    let task = tokio::spawn(manager.run_until(std::future::pending()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.server.inject(Fault::silence().on_path("/apis/coordination.k8s.io"));
    let cut_off = Instant::now();
    let error = within(task).await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "leadership of default/lock was lost");
    let acted_for = *last_polled.lock().unwrap() - cut_off;
    assert!(acted_for < Duration::from_secs(15), "another one can lead after 15 s: {acted_for:?}");
}

#[tokio::test(start_paused = true)]
async fn manager_stops_all_parts_if_a_task_fails() {
    let world = World::start().await;
    world.create("a").await;
    let ended = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&ended);
    let informer = InformerFactory::new(world.client.clone()).core_v1().config_maps();
    let controller =
        Controller::builder("maps", informer).registry(Registry::new()).reconcile(move |_: Request<ConfigMap>| {
            let noted = Arc::clone(&noted);
            async move {
                tokio::time::sleep(Duration::from_secs(20)).await;
                noted.fetch_add(1, Ordering::SeqCst);
                Ok::<_, klient::Error>(Outcome::Done)
            }
        });
    let flushed = Arc::new(AtomicBool::new(false));
    let (after_all, seen) = (Arc::clone(&flushed), Arc::clone(&ended));
    let manager = Manager::builder()
        .controller(controller)
        .task("sync", async |_| {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Err("the disk is full")
        })
        .task("events", async move |stop| {
            stop.requested().await;
            // Controllers may record events until they have stopped.
            after_all.store(seen.load(Ordering::SeqCst) == 1, Ordering::SeqCst);
            Ok::<_, klient::Error>(())
        })
        .build()
        .await
        .unwrap();
    let error = within(manager.run_until(std::future::pending())).await.unwrap_err();
    assert_eq!(error.to_string(), "sync failed");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the disk is full");
    assert!(flushed.load(Ordering::SeqCst), "tasks end after controllers");
}

#[tokio::test(start_paused = true)]
async fn manager_drops_a_task_that_does_not_stop() {
    let manager = Manager::builder()
        .drain_for(Duration::from_secs(7))
        .task("stubborn", async |_| std::future::pending::<Result<(), klient::Error>>().await)
        .build()
        .await
        .unwrap();
    let began = Instant::now();
    let error = manager.run_until(std::future::ready(())).await.unwrap_err();
    assert_eq!((error.kind(), began.elapsed().as_secs()), (ErrorKind::Timeout, 7));
    assert_eq!(error.to_string(), "1 tasks did not stop within 7s and were dropped");
}

#[tokio::test(start_paused = true)]
async fn liveness_fails_while_a_reconcile_is_stuck() {
    let world = World::start().await;
    world.create("a").await;
    let informer = InformerFactory::new(world.client.clone()).core_v1().config_maps();
    let controller = Controller::builder("maps", informer)
        .registry(Registry::new())
        .drain_for(Duration::ZERO)
        .reconcile(|_: Request<ConfigMap>| std::future::pending::<Result<Outcome, klient::Error>>());
    let manager = Manager::builder()
        .serve(([127, 0, 0, 1], 0))
        .controller(controller.clone())
        .max_reconcile(Duration::from_secs(60))
        .build()
        .await
        .unwrap();
    let address = manager.address().unwrap();
    let (stop, stopped) = until();
    let task = tokio::spawn(manager.run_until(stopped));
    within(async {
        while controller.status().queue.in_process == 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    // Sockets need real time.
    tokio::time::resume();
    let (code, body) = get(address, "/livez").await;
    assert_eq!(code, 503);
    assert!(body.starts_with("[-]controller-maps failed: a reconcile has been running for 10"), "{body}");
    drop(stop);
    assert_eq!(task.await.unwrap().unwrap_err().to_string(), "controller-maps failed");
}

#[tokio::test]
async fn manager_serves_routes_of_the_program() {
    let manager = Manager::builder()
        .serve(([127, 0, 0, 1], 0))
        .route("/version", |_| async { http::Response::new("1.2.3") })
        .route("/files/", async |request: http::Request<_>| {
            let path = request.uri().path().to_owned();
            http::Response::builder().status(http::StatusCode::ACCEPTED).body(path).unwrap()
        })
        .route("/files/one", |_| async { http::Response::new("longest") })
        .build()
        .await
        .unwrap();
    let address = manager.address().unwrap();
    let (stop, stopped) = until();
    let task = tokio::spawn(manager.run_until(stopped));
    assert_eq!(get(address, "/version").await, (200, "1.2.3".to_owned()));
    assert_eq!(get(address, "/files/a/b").await, (202, "/files/a/b".to_owned()));
    assert_eq!(get(address, "/files/one").await, (200, "longest".to_owned()));
    assert_eq!(get(address, "/versions").await.0, 404);
    assert_eq!(get(address, "/healthz").await.0, 200);
    drop(stop);
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn build_rejects_invalid_routes() {
    let error = |builder: klient::manager::ManagerBuilder| async { builder.build().await.unwrap_err().to_string() };
    let served = || Manager::builder().serve(([127, 0, 0, 1], 0));
    let page = async |_| http::Response::new("");
    for (builder, problem) in [
        (served().route("version", page), "invalid route \"version\": the path must start with a slash"),
        (served().route("/healthz/x", page), "invalid route \"/healthz/x\": the manager serves this path itself"),
        (served().route("/a", page).route("/a", page), "invalid route \"/a\": the path has two routes"),
        (Manager::builder().route("/a", page), "invalid route \"/a\": call `serve` with an address"),
    ] {
        assert_eq!(error(builder).await, problem);
    }
}

#[tokio::test(start_paused = true)]
async fn manager_reports_leader_changes() {
    let world = World::start().await;
    assert!(Manager::builder().build().await.unwrap().leader_changes().is_none());
    let manager = Manager::builder().elected_by(elector(&world, "anna")).build().await.unwrap();
    let mut leaders = manager.leader_changes().unwrap();
    assert_eq!(leaders.next().await, Some(None));
    let (stop, stopped) = until();
    let task = tokio::spawn(manager.run_until(stopped));
    assert_eq!(within(leaders.next()).await, Some(Some("anna".to_owned())));
    drop(stop);
    task.await.unwrap().unwrap();
    assert_eq!(leaders.next().await, Some(None));
    assert_eq!(leaders.next().await, None);
}

//! A manager with a debug page, and controllers that behave well or badly.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, InformerFactory, Patch,
    controller::{Outcome, Predicate, Request, Source, Terminal},
    manager::{DebugPage, ManagerBuilder},
    metrics::Registry,
};
use klient_apiserver::ApiServer;
use serde_json::json;
use tokio::{sync::Semaphore, task::JoinHandle};

/// A server, and the manager of a controller on it.
pub(crate) struct World {
    server: Option<ApiServer>,
    pub(crate) maps: Api<ConfigMap>,
    pub(crate) client: Client,
    pub(crate) registry: Registry,
    tasks: Vec<JoinHandle<()>>,
}

impl World {
    pub(crate) async fn start() -> Self {
        let server = ApiServer::start().await.unwrap();
        let mut world = Self::of(&Client::from_service(server.service()));
        world.server = Some(server);
        world
    }

    /// Returns a world on another server.
    pub(crate) fn of(client: &Client) -> Self {
        let registry = Registry::new();
        let client = client.to_builder().metrics(&registry).build();
        let maps = Api::namespaced(client.clone(), "default");
        Self { server: None, maps, client, registry, tasks: Vec::new() }
    }

    /// Returns the embedded server.
    pub(crate) fn server(&self) -> &ApiServer {
        self.server.as_ref().expect("this world has an embedded server")
    }

    pub(crate) async fn create(&self, name: &str) {
        let map = serde_json::from_value(json!({"metadata": {"name": name}, "data": {"n": "0"}})).unwrap();
        self.maps.create(&map).await.unwrap();
    }

    pub(crate) async fn set(&self, name: &str, value: &str) {
        self.maps.patch(name, Patch::merge(json!({"data": {"n": value}}))).manager("editor").await.unwrap();
    }

    /// Runs a manager with a debug page until the world is dropped.
    pub(crate) async fn run(&mut self, builder: ManagerBuilder, page: DebugPage) -> SocketAddr {
        let builder = builder.registry(self.registry.clone()).serve(([127, 0, 0, 1], 0)).debug(page);
        let manager = builder.build().await.unwrap();
        let address = manager.address().unwrap();
        self.tasks.push(tokio::spawn(async move { manager.run_until(std::future::pending()).await.unwrap() }));
        address
    }

    /// Runs a task until the world is dropped.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    /// Returns the hostile controller: what it does depends on the name of the object.
    pub(crate) fn hostile(&self) -> Controller<ConfigMap> {
        let source = Source::from(InformerFactory::new(self.client.clone()).core_v1().config_maps())
            .only(Predicate::new(|event| event.key().name() != "filtered").named("is not called filtered"));
        let (maps, never) = (self.maps.clone(), Arc::new(Semaphore::new(0)));
        Controller::builder("hostile", source)
            .registry(self.registry.clone())
            .workers(1)
            .reconcile(move |request: Request<ConfigMap>| reconcile(request, maps.clone(), Arc::clone(&never)))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn reconcile(
    request: Request<ConfigMap>,
    maps: Api<ConfigMap>,
    never: Arc<Semaphore>,
) -> Result<Outcome, klient::Error> {
    let name = request.name().to_owned();
    match name.as_str() {
        "failing" => Err(klient::Error::from(Terminal::new("<img src=x onerror=alert(1)> & no quota"))),
        "retried" => Err(klient::Error::new(klient::ErrorKind::Config, "no quota left")),
        "slow" => {
            // No permit is ever added.
            let _ = never.acquire().await;
            Ok(Outcome::Done)
        }
        "scheduled" => Ok(Outcome::RequeueAfter(Duration::from_secs(3600))),
        "looping" | "fought" => {
            let value = request.object()?.and_then(|map| map.data.clone()?.get("n").cloned()).unwrap_or_default();
            let next = if name == "fought" { "mine".to_owned() } else { format!("{}x", &value[..value.len().min(40)]) };
            maps.patch(&name, Patch::merge(json!({"data": {"n": next}}))).manager("hostile").await?;
            Ok(Outcome::Done)
        }
        _ => Ok(Outcome::Done),
    }
}

//! A server, a namespace for each test, and the sample controller running in it.

use std::{
    io::Write as _,
    path::PathBuf,
    sync::{LazyLock, Once},
    time::Duration,
};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Event, core::v1::Namespace};
use klient::{
    Api, Client, Controller, InformerFactory, Patch,
    client::config::{Config, KubeconfigFiles, Overrides},
    metrics::Registry,
    wait::{Until, wait_for},
    wire::ManagedFields,
};
use klient_apiserver::ApiServer;
use klient_cli::sample_controller::{Foo, FooSpec, Syncer, builder, events, install};
use klient_harness::{Programs, Server};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) foos: Api<Foo>,
    pub(crate) deployments: Api<Deployment>,
    /// The server, if it is the embedded one.
    pub(crate) embedded: Option<ApiServer>,
    pub(crate) controller: Controller<Foo>,
    pub(crate) registry: Registry,
    task: JoinHandle<()>,
}

impl World {
    /// Starts the controller on a new embedded server.
    pub(crate) async fn embedded() -> Self {
        let server = ApiServer::start().await.unwrap();
        Self::on_embedded(server).await
    }

    pub(crate) async fn on_embedded(server: ApiServer) -> Self {
        let client = client_of(&server);
        Self::start(client, Some(server)).await
    }

    /// Starts the controller on the real server, which all tests share. Returns `None` if there is none.
    pub(crate) async fn real() -> Option<Self> {
        let config =
            Config::load(&KubeconfigFiles::explicit(&real_kubeconfig()?), &Overrides::default().context("token"))
                .unwrap();
        let client = Client::builder_from_config(&config).unwrap().managed_fields(ManagedFields::Keep).build();
        Some(Self::start(client, None).await)
    }

    async fn start(client: Client, embedded: Option<ApiServer>) -> Self {
        install(&client).await.unwrap();
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"generateName": "sample-"}})).unwrap();
        let namespaces: Api<Namespace> = Api::cluster(client.clone());
        let namespace = namespaces.create(&namespace).await.unwrap().metadata.name.unwrap();
        let factory = InformerFactory::new(client.clone()).namespace(&namespace);
        let (foos, deployments) = (factory.namespaced::<Foo>(), factory.apps_v1().deployments());
        let (recorder, sink) = events(client.clone());
        let syncer = Syncer::new(client.clone(), deployments.lister(), recorder);
        let registry = Registry::new();
        let controller = builder(foos, deployments).registry(registry.clone()).reconcile(syncer);
        let running = controller.clone();
        let task = tokio::spawn(async move {
            let sending = sink.run();
            let running = running.run_until(std::future::pending());
            let _ = tokio::join!(sending, running);
        });
        let foos = Api::namespaced(client.clone(), &namespace);
        let deployments = Api::namespaced(client.clone(), &namespace);
        Self { client, namespace, foos, deployments, embedded, controller, registry, task }
    }

    pub(crate) async fn create(&self, name: &str, deployment: &str, replicas: Option<i32>) -> Foo {
        self.foos.create(&Foo::new(name, FooSpec::new(deployment, replicas))).await.unwrap()
    }

    pub(crate) async fn patch_foo(&self, name: &str, patch: Value) -> Foo {
        self.foos.patch(name, Patch::merge(patch)).await.unwrap()
    }

    pub(crate) async fn patch_deployment(&self, name: &str, patch: Value) -> Deployment {
        self.deployments.patch(name, Patch::merge(patch)).await.unwrap()
    }

    /// Waits until a condition holds for a Deployment.
    pub(crate) async fn deployment(
        &self,
        name: &str,
        holds: impl Fn(&Deployment) -> bool + Send + Sync + 'static,
    ) -> Deployment {
        wait_for(&self.deployments, name, &Until::is(holds), LIMIT).await.unwrap().unwrap()
    }

    /// Waits until a Foo was reconciled, which gives it a status.
    pub(crate) async fn synced(&self, name: &str) -> Foo {
        let until = Until::is(|foo: &Foo| foo.status.is_some());
        wait_for(&self.foos, name, &until, LIMIT).await.unwrap().unwrap()
    }

    /// Waits until a condition holds for the controller.
    pub(crate) async fn until(&self, holds: impl Fn(&klient::controller::ControllerStatus) -> bool) {
        let waiting = async {
            while !holds(&self.controller.status()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let status = || self.controller.status();
        tokio::time::timeout(LIMIT, waiting)
            .await
            .unwrap_or_else(|_| panic!("the condition did not become true: {:?}", status()));
    }

    /// Waits for a number of events about a Foo.
    pub(crate) async fn events(&self, foo: &str, reason: &str, count: i32) -> Event {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let looking = async {
            loop {
                let all = events.list().await.unwrap().items;
                let fits = |event: &Event| {
                    event.involved_object.name.as_deref() == Some(foo) && event.reason.as_deref() == Some(reason)
                };
                let of_all = |all: &[Event]| {
                    all.iter().filter(|event| fits(event)).map(|event| event.count.unwrap_or(1)).sum::<i32>()
                };
                if of_all(&all) >= count {
                    return all.into_iter().find(|event| fits(event)).unwrap();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LIMIT, looking).await.expect("the events were not recorded")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn client_of(server: &ApiServer) -> Client {
    Client::from_service(server.service())
}

/// Returns the kubeconfig of the real server, which the first call starts. Returns `None` and prints a note if it was never built.
pub(crate) fn real_kubeconfig() -> Option<PathBuf> {
    static SERVER: LazyLock<Result<Option<Server>, String>> = LazyLock::new(|| {
        let programs = Programs::for_tests().map_err(|error| format!("{error:#}"))?;
        programs.map(|programs| Server::start(&programs)).transpose().map_err(|error| format!("{error:#}"))
    });
    let server = SERVER.as_ref().unwrap().as_ref();
    if server.is_none() {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            std::io::stderr().write_all(b"no kube-apiserver: skipped (cargo xtask e2e builds it)\n").unwrap();
        });
    }
    server.map(Server::kubeconfig)
}

/// Defines each test twice: for the embedded server and for the real server.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod embedded_server {
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                super::$name(&crate::world::World::embedded().await).await;
            })*
        }
        mod real_server {
            $(#[tokio::test]
            async fn $name() {
                if let Some(world) = crate::world::World::real().await {
                    super::$name(&world).await;
                }
            })*
        }
    };
}
pub(crate) use on_both;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

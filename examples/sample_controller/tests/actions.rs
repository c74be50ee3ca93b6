//! Criterion 17: the writes of one reconcile.

use k8s_openapi::api::apps::v1::Deployment;
use klient::{Api, Controller, InformerFactory, metrics::Registry};
use klient_apiserver::ApiServer;
use klient_cli::sample_controller::{Foo, FooSpec, Syncer, events, install, new_deployment};

use crate::world::client_of;

/// Stores a Foo and the Deployment that `prepare` returns, reconciles the Foo once, and returns the writes and the outcome.
async fn actions(prepare: impl Fn(&Foo) -> Option<Deployment>) -> (Vec<String>, Result<(), String>) {
    let server = ApiServer::start().await.unwrap();
    let client = client_of(&server);
    install(&client).await.unwrap();
    let foos: Api<Foo> = Api::namespaced(client.clone(), "default");
    let foo = foos.create(&Foo::new("test", FooSpec::new("test-deployment", Some(1)))).await.unwrap();
    if let Some(deployment) = prepare(&foo) {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
        deployments.create(&deployment).await.unwrap();
    }
    let before = server.requests();
    let factory = InformerFactory::new(client.clone()).namespace("default");
    let deployments = factory.apps_v1().deployments();
    // The sink does not run, because events are not tested here.
    let (recorder, _sink) = events(client.clone());
    let syncer = std::sync::Arc::new(Syncer::new(client, deployments.lister(), recorder));
    let (sender, mut ended) = tokio::sync::mpsc::unbounded_channel();
    deployments.start();
    deployments.wait_for_sync().await.unwrap();
    let controller = Controller::builder("once", factory.namespaced::<Foo>()).registry(Registry::new()).reconcile(
        move |request: klient::controller::Request<Foo>| {
            let (syncer, sender) = (syncer.clone(), sender.clone());
            async move {
                let outcome = klient::controller::Reconciler::reconcile(&*syncer, request).await;
                sender.send(outcome.map(drop).map_err(|error| error.to_string())).unwrap();
                // Later requests are not reconciled.
                std::future::pending::<Result<klient::controller::Outcome, klient::Error>>().await
            }
        },
    );
    let outcome = tokio::select! {
        _ = controller.run_until(std::future::pending()) => panic!("the controller stopped"),
        outcome = ended.recv() => outcome.unwrap(),
    };
    let written = server.requests().into_iter().filter_map(|((method, path), count)| {
        let new = count - before.get(&(method.clone(), path.clone())).copied().unwrap_or_default();
        (method != "GET" && new > 0).then(|| format!("{method} {path} x{new}"))
    });
    (written.collect(), outcome)
}

const STATUS: &str = "PUT /apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos/test/status x1";

#[tokio::test(start_paused = true)]
async fn reconcile_creates_deployment() {
    let (written, outcome) = actions(|_| None).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(written, ["POST /apis/apps/v1/namespaces/default/deployments x1", STATUS]);
}

#[tokio::test(start_paused = true)]
async fn reconcile_of_synced_foo_writes_status_only() {
    let (written, outcome) = actions(|foo| Some(new_deployment(foo).unwrap())).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(written, [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn reconcile_updates_deployment() {
    let two = |foo: &Foo| {
        let mut deployment = new_deployment(foo).unwrap();
        deployment.spec.replicas = Some(2);
        Some(deployment)
    };
    let (written, outcome) = actions(two).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(written, ["PUT /apis/apps/v1/namespaces/default/deployments/test-deployment x1", STATUS]);
}

#[tokio::test(start_paused = true)]
async fn reconcile_refuses_foreign_deployment() {
    let foreign = |foo: &Foo| {
        let mut deployment = new_deployment(foo).unwrap();
        deployment.metadata.owner_references = None;
        Some(deployment)
    };
    let (written, outcome) = actions(foreign).await;
    assert_eq!(outcome, Err("Resource \"test-deployment\" already exists and is not managed by Foo".to_owned()));
    assert_eq!(written, [""; 0]);
}

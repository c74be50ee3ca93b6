//! Controllers on the embedded server, with a paused clock.

mod added;
mod create_or_update;
mod explain;
mod faults;
mod outcomes;
mod own_writes;
mod shutdown;
mod sources;
mod triggers;

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Controller, InformerFactory, ObjectKey,
    controller::{ControllerBuilder, Outcome, Request},
    metrics::Registry,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::informer::{World, within};

/// A running controller, and the requests of its reconciler.
pub(crate) struct Running {
    pub(crate) controller: Controller<ConfigMap>,
    pub(crate) calls: mpsc::UnboundedReceiver<Request<ConfigMap>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), klient::Error>>,
}

impl Running {
    /// Starts a controller that sends each request to `calls`, and then calls a function.
    pub(crate) fn start<R>(
        builder: ControllerBuilder<ConfigMap>,
        reconcile: impl Fn(&Request<ConfigMap>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<Outcome, klient::BoxError>> + Send + 'static,
    {
        let (sender, calls) = mpsc::unbounded_channel();
        let controller = builder.reconcile(move |request: Request<ConfigMap>| {
            let outcome = reconcile(&request);
            let _ = sender.send(request);
            outcome
        });
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn({
            let controller = controller.clone();
            async move { controller.run_until(async { drop(stopped.await) }).await }
        });
        Self { controller, calls, stop: Some(stop), task }
    }

    /// Waits for the next request.
    pub(crate) async fn call(&mut self) -> Request<ConfigMap> {
        within(self.calls.recv()).await.unwrap()
    }

    /// Waits for the next request. Returns its name and reasons.
    pub(crate) async fn next(&mut self) -> String {
        let call = self.call().await;
        format!("{}: {}", call.name(), call.reasons())
    }

    /// Waits for the next requests. Returns their names and reasons, in any order.
    pub(crate) async fn next_n(&mut self, count: usize) -> BTreeSet<String> {
        let mut requests = BTreeSet::new();
        for _ in 0..count {
            requests.insert(self.next().await);
        }
        requests
    }

    /// Checks that the reconciler is not called for some time.
    pub(crate) async fn quiet_for(&mut self, time: Duration) {
        if let Ok(call) = tokio::time::timeout(time, self.calls.recv()).await {
            panic!("unexpected: {call:?}");
        }
    }

    pub(crate) async fn stop(mut self) -> Result<(), klient::Error> {
        drop(self.stop.take());
        within(self.task).await.unwrap()
    }
}

/// Returns a builder of a controller for the config maps of a world, with its own metrics.
pub(crate) fn builder(world: &World) -> ControllerBuilder<ConfigMap> {
    Controller::builder("maps", factory(world).core_v1().config_maps()).registry(Registry::new())
}

pub(crate) fn factory(world: &World) -> InformerFactory {
    InformerFactory::new(world.client.clone()).namespace("default")
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

pub(crate) async fn done() -> Result<Outcome, klient::BoxError> {
    Ok(Outcome::Done)
}

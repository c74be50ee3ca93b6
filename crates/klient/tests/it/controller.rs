//! Controllers on the embedded server, with a clock that runs ahead.

mod faults;
mod outcomes;
mod own_writes;
mod shutdown;
mod triggers;

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    ObjectKey,
    controller::{Controller, ControllerBuilder, Outcome, Request},
    informer::InformerFactory,
    metrics::Registry,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::informer::{World, within};

/// A controller that runs, and what its reconciler was called with.
pub(crate) struct Running {
    pub(crate) controller: Controller<ConfigMap>,
    pub(crate) calls: mpsc::UnboundedReceiver<Request<ConfigMap>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), klient::Error>>,
}

impl Running {
    /// Tells of each call, and then does what a function says.
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

    /// The next call.
    pub(crate) async fn call(&mut self) -> Request<ConfigMap> {
        within(self.calls.recv()).await.unwrap()
    }

    /// The next call in short: key and reasons.
    pub(crate) async fn told(&mut self) -> String {
        let call = self.call().await;
        format!("{}: {}", call.name(), call.reasons())
    }

    /// The next calls, in any order.
    pub(crate) async fn told_n(&mut self, count: usize) -> BTreeSet<String> {
        let mut told = BTreeSet::new();
        for _ in 0..count {
            told.insert(self.told().await);
        }
        told
    }

    /// Nothing is called for as long as this.
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

/// A controller of the config maps of a world, with metrics of its own.
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

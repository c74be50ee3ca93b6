//! What is done about a `Foo`: its Deployment is made, kept at its size, and its status told.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use klient::{
    Api, BoxError, Client, Controller, Error, ErrorKind, Lister, ObjectKey, SharedInformer,
    controller::{ControllerBuilder, Outcome, Predicate, Reconciler, Request, Source, Terminal},
    events::{Event, EventApi, EventOptions, EventRecorder, EventSink},
    informer::Event as Change,
    owner::{is_controlled_by, set_controller_ref},
    workqueue::{ExponentialBackoff, MaxOf, TokenBucket},
};
use serde_json::json;

use crate::foo::{Foo, FooStatus};

/// What the controller is called, by events and as the manager of fields.
pub const CONTROLLER: &str = "sample-controller";

/// How often every `Foo` is looked at, whether it changed or not.
pub const RESYNC: Duration = Duration::from_secs(30);

/// What leads to a `Foo` being looked at, by how many workers, and how often after failures.
pub fn builder(foos: SharedInformer<Foo>, deployments: SharedInformer<Deployment>) -> ControllerBuilder<Foo> {
    // When a Foo is gone there is nothing to do: its Deployment goes with it.
    let foos = Source::new(foos).only(Predicate::new(|event| !matches!(event, Change::Deleted(_)))).resync(RESYNC);
    let deployments = Source::new(deployments).only(Predicate::version_changed());
    Controller::builder(CONTROLLER, foos)
        .owns(deployments)
        .workers(2)
        .rate_limiter(MaxOf::new().and(ExponentialBackoff::default()).and(TokenBucket::new(50.0, 300)))
}

/// Where events are recorded, and what sends them.
pub fn events(client: Client) -> (EventRecorder, EventSink) {
    EventRecorder::new(client, EventOptions::new(CONTROLLER).api(EventApi::Core))
}

/// Makes the world as each `Foo` says it should be.
#[derive(Debug)]
pub struct Syncer {
    client: Client,
    deployments: Lister<Deployment>,
    recorder: EventRecorder,
}

impl Syncer {
    /// One that reads Deployments from this cache.
    pub fn new(client: Client, deployments: Lister<Deployment>, recorder: EventRecorder) -> Self {
        Self { client, deployments, recorder }
    }

    async fn sync(&self, request: &Request<Foo>) -> Result<(), BoxError> {
        // One that is no Foo stays so until somebody changes it.
        let Some(foo) = request.object().map_err(Terminal::new)? else {
            tracing::info!(foo = %request.key(), "the Foo in the queue is gone");
            return Ok(());
        };
        let name = &foo.spec.deployment_name;
        if name.is_empty() {
            // Another try would not help; a change brings it back.
            tracing::warn!(foo = %request.key(), "the Foo names no Deployment");
            return Ok(());
        }
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), request.namespace());
        let deployment = match self.deployments.get(&ObjectKey::namespaced(request.namespace(), name)) {
            Some(deployment) => deployment.decode()?,
            None => api.create(&new_deployment(&foo)?).manager(CONTROLLER).await?.into(),
        };
        if !is_controlled_by(&deployment.metadata, foo.metadata.uid.as_deref().unwrap_or_default()) {
            let message = format!("Resource {name:?} already exists and is not managed by Foo");
            self.recorder.record(&*foo, Event::warning("ErrResourceExists", "Sync", message.clone()));
            return Err(message.into());
        }
        let deployment = match foo.spec.replicas {
            Some(replicas) if Some(replicas) != deployment.spec.replicas => {
                tracing::info!(foo = %request.key(), from = deployment.spec.replicas, to = replicas, "scales the Deployment");
                // Whole, and whatever its version: the Foo alone says how it looks.
                api.update(&new_deployment(&foo)?).manager(CONTROLLER).await?.into()
            }
            _ => deployment,
        };
        self.update_status(&foo, &deployment).await?;
        self.recorder.record(&*foo, Event::normal("Synced", "Sync", "Foo synced successfully"));
        Ok(())
    }

    async fn update_status(&self, foo: &Foo, deployment: &Deployment) -> Result<(), Error> {
        let available = deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default();
        let mut foo = foo.clone();
        foo.status = Some(FooStatus { available_replicas: available });
        let api: Api<Foo> = Api::namespaced(self.client.clone(), foo.metadata.namespace.as_deref().unwrap_or_default());
        api.update_status(&foo).manager(CONTROLLER).await?;
        Ok(())
    }
}

impl Reconciler<Foo> for Syncer {
    type Error = BoxError;

    async fn reconcile(&self, request: Request<Foo>) -> Result<Outcome, BoxError> {
        self.sync(&request).await?;
        tracing::info!(foo = %request.key(), "Successfully synced");
        Ok(Outcome::Done)
    }
}

/// The Deployment that a `Foo` wishes for.
///
/// # Errors
///
/// If the `Foo` was never stored: it has no UID then, and cannot own anything.
pub fn new_deployment(foo: &Foo) -> Result<Deployment, Error> {
    let labels = json!({"app": "nginx", "controller": foo.metadata.name});
    let mut deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": foo.spec.deployment_name, "namespace": foo.metadata.namespace},
        "spec": {
            "replicas": foo.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]},
            },
        },
    }))
    .map_err(|error| Error::new(ErrorKind::Invalid, "a Deployment cannot be made").with_source(error))?;
    set_controller_ref(&mut deployment, foo)
        .map_err(|error| Error::new(ErrorKind::Invalid, "the Foo cannot own a Deployment").with_source(error))?;
    Ok(deployment)
}

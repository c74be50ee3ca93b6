//! The reconciler of `Foo`: creates its Deployment, keeps the Deployment's size, and reports status.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use klient::{
    Api, BoxError, Client, Controller, Error, ErrorKind, Lister, ObjectKey, ResourceExt as _, SharedInformer,
    controller::{ControllerBuilder, Outcome, Predicate, Reconciler, Request, Source, Terminal},
    events::{Event, EventApi, EventOptions, EventRecorder, EventSink},
    informer::Event as Change,
    owner::{controller_owner_ref, is_controlled_by},
    workqueue::{ExponentialBackoff, MaxOf, TokenBucket},
};
use klient_apply::apps::v1::{DeploymentApply, DeploymentSpecApply};

use crate::sample_controller::foo::{Foo, FooStatus};

/// The controller's name, its event source and its field manager.
pub const CONTROLLER: &str = "sample-controller";

/// The period at which every `Foo` is reconciled even if it did not change.
pub const RESYNC: Duration = Duration::from_secs(30);

/// Returns the controller's sources, workers and rate limits, without a reconciler.
pub fn builder(foos: SharedInformer<Foo>, deployments: SharedInformer<Deployment>) -> ControllerBuilder<Foo> {
    // The garbage collector deletes the Deployment of a deleted Foo, so there is nothing to reconcile.
    let foos = Source::new(foos).only(Predicate::new(|event| !matches!(event, Change::Deleted(_)))).resync(RESYNC);
    let deployments = Source::new(deployments).only(Predicate::version_changed());
    Controller::builder(CONTROLLER, foos)
        .owns(deployments)
        .workers(2)
        .rate_limiter(MaxOf::new().and(ExponentialBackoff::default()).and(TokenBucket::new(50.0, 300)))
}

/// Returns a recorder of events, and the sink that sends them to the server.
pub fn events(client: Client) -> (EventRecorder, EventSink) {
    EventRecorder::new(client, EventOptions::new(CONTROLLER).api(EventApi::Core))
}

/// A reconciler that gives each `Foo` its Deployment.
#[derive(Debug)]
pub struct Syncer {
    client: Client,
    deployments: Lister<Deployment>,
    recorder: EventRecorder,
}

impl Syncer {
    /// Returns a reconciler that reads Deployments from `deployments`.
    pub fn new(client: Client, deployments: Lister<Deployment>, recorder: EventRecorder) -> Self {
        Self { client, deployments, recorder }
    }

    async fn sync(&self, request: &Request<Foo>) -> Result<(), BoxError> {
        // An object that cannot be decoded stays so until it changes, so retrying cannot help.
        let Some(foo) = request.object().map_err(Terminal::new)? else {
            tracing::info!(foo = %request.key(), "Foo no longer exists");
            return Ok(());
        };
        let name = &foo.spec.deployment_name;
        if name.is_empty() {
            // Retrying cannot help. A change of the Foo queues it again.
            tracing::warn!(foo = %request.key(), "Foo has no deploymentName, skipping");
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
                tracing::info!(foo = %request.key(), from = deployment.spec.replicas, to = replicas, "scaling Deployment");
                // A full update without a resource version: the Foo alone determines the Deployment.
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
        tracing::info!(foo = %request.key(), "Foo synced");
        Ok(Outcome::Done)
    }
}

/// Returns the Deployment that a `Foo` asks for.
///
/// # Errors
///
/// Returns an error if `foo` has no UID, because it was never stored. Such an object cannot own another.
pub fn new_deployment(foo: &Foo) -> Result<Deployment, Error> {
    let labels = [("app", "nginx"), ("controller", foo.name())];
    let owner = controller_owner_ref(foo).map_err(|error| {
        Error::new(ErrorKind::Invalid, "cannot set the Foo as owner of its Deployment").with_source(error)
    })?;
    let deployment = DeploymentApply::new(&foo.spec.deployment_name, foo.namespace().unwrap_or_default()).owner(&owner);
    let deployment = deployment.spec(|spec| {
        let spec = foo.spec.replicas.into_iter().fold(spec, DeploymentSpecApply::replicas);
        spec.selector(|selector| selector.match_labels(labels)).template(|template| {
            let pod = template.spec(|pod| pod.container("nginx", |nginx| nginx.image("nginx:latest")));
            pod.metadata(|metadata| metadata.labels(labels))
        })
    });
    // The controller creates and replaces whole objects, as Kubernetes' own does: it does not apply them.
    serde_json::from_value(deployment.to_value())
        .map_err(|error| Error::new(ErrorKind::Invalid, "cannot build the Deployment of a Foo").with_source(error))
}

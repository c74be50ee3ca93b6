//! A controller that copies each config map to a secret, fails at random, and notes the states that it has reconciled.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use klient::{
    Api, BoxError, Client, Controller, Error, ErrorKind, ObjectKey,
    controller::{ControllerStatus, Outcome, Request},
    metrics::Registry,
    owner::controller_owner_ref,
};
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};

use crate::{ExpectedPanic, rng::Rng, truth::Fresh};

/// A running controller.
pub(crate) struct Mirror {
    controller: Controller<ConfigMap>,
    reconciled: Reconciled,
    task: JoinHandle<Result<(), Error>>,
}

/// The state that the last successful reconcile of each key saw: a version, or none if the object was deleted.
type Reconciled = Arc<Mutex<BTreeMap<ObjectKey, Option<u64>>>>;

struct Context {
    client: Client,
    rng: Mutex<Rng>,
    reconciled: Reconciled,
    /// Whether reconciles fail, panic and take long at random.
    is_faulty: watch::Receiver<bool>,
}

impl Mirror {
    /// Starts a controller that runs until the signal.
    pub(crate) fn start(
        client: &Client,
        namespace: &str,
        registry: &Registry,
        mut rng: Rng,
        is_faulty: watch::Receiver<bool>,
        mut stop: watch::Receiver<bool>,
    ) -> Self {
        let reconciled = Reconciled::default();
        let workers = usize::try_from(rng.range(1, 4)).unwrap_or(1);
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let context =
            Context { client: client.clone(), rng: Mutex::new(rng), reconciled: reconciled.clone(), is_faulty };
        let controller = Controller::builder("mirror", maps)
            .owns(secrets)
            .workers(workers)
            .timeout(Duration::from_secs(120))
            .registry(registry.clone())
            .reconcile_with(Arc::new(context), reconcile);
        let running = controller.clone();
        let task = tokio::spawn(async move {
            let signal = async {
                let _ = stop.wait_for(|stop| *stop).await;
            };
            running.run_until(signal).await
        });
        Self { controller, reconciled, task }
    }

    /// Returns the controller's current status.
    pub(crate) fn status(&self) -> ControllerStatus {
        self.controller.status()
    }

    /// Returns the keys that were not reconciled after their last change, and the secrets that are wrong.
    pub(crate) async fn differences(&self, direct: &Client, namespace: &str, fresh: &Fresh) -> Vec<String> {
        let mut problems = Vec::new();
        {
            let reconciled = self.reconciled.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, (version, _)) in fresh {
                let last = reconciled.get(key);
                if last != Some(&Some(*version)) {
                    problems.push(format!("controller: {key} was reconciled at {last:?}, expected {version}"));
                }
            }
            for (key, last) in reconciled.iter() {
                if let Some(version) = last
                    && !fresh.contains_key(key)
                {
                    problems.push(format!("controller: {key} was deleted, and was last reconciled at {version}"));
                }
            }
        }
        match self.wrong_copies(direct, namespace, fresh).await {
            Ok(wrong) if wrong.is_empty() => {}
            Ok(wrong) => problems.push(format!("controller: the secrets of {wrong:?} are wrong")),
            Err(error) => problems.push(format!("controller: cannot list secrets: {error}")),
        }
        problems
    }

    /// Returns the keys whose secrets differ from their config maps.
    async fn wrong_copies(&self, direct: &Client, namespace: &str, fresh: &Fresh) -> Result<Vec<ObjectKey>, Error> {
        let secrets: Api<Secret> = Api::namespaced(direct.clone(), namespace);
        let list = secrets.list().await?;
        let copies: BTreeMap<ObjectKey, String> =
            list.iter().map(|secret| (ObjectKey::of(secret), copy(secret))).collect();
        let keys: BTreeSet<&ObjectKey> = copies.keys().chain(fresh.keys()).collect();
        let is_wrong = |key: &ObjectKey| copies.get(key) != fresh.get(key).map(|(_, state)| &state.value);
        Ok(keys.into_iter().filter(|key| is_wrong(key)).cloned().collect())
    }

    /// Requests the keys whose secrets are wrong. Returns their number.
    ///
    /// A secret that was created and deleted between two lists of the informer leaves no event, so that no controller can
    /// know. Controllers have a resync for that. Here it is the exception, so that it hides no lost change of a config map.
    pub(crate) async fn resync(&self, direct: &Client, namespace: &str, fresh: &Fresh) -> usize {
        let wrong = self.wrong_copies(direct, namespace, fresh).await.unwrap_or_default();
        wrong.into_iter().map(|key| self.controller.request(key)).count()
    }

    /// Waits for the end of a controller that was told to stop.
    pub(crate) async fn stop(self) -> Result<(), String> {
        match self.task.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("controller: {error}")),
            Err(error) => Err(format!("controller: {error}")),
        }
    }
}

async fn reconcile(request: Request<ConfigMap>, context: Arc<Context>) -> Result<Outcome, BoxError> {
    let (draw, pause, work) = {
        let mut rng = context.rng.lock().unwrap_or_else(PoisonError::into_inner);
        (rng.range(0, 100), rng.millis(1, 4000), rng.millis(5, 50))
    };
    // Work takes time. Otherwise a controller whose cache is old and a garbage collector, which delete and create
    // the same object in turn, would stop a paused clock.
    tokio::time::sleep(work).await;
    let draw = if *context.is_faulty.borrow() { draw } else { 100 };
    let object = request.cached();
    let version = object.as_ref().and_then(|object| object.resource_version().as_str().parse::<u64>().ok());
    match draw {
        0..10 => return Err(Error::new(ErrorKind::Invalid, "failed on purpose").into()),
        10..14 => std::panic::panic_any(ExpectedPanic),
        14..20 => tokio::time::sleep(pause).await,
        _ => {}
    }
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), request.namespace());
    match object.map(|object| object.decode()).transpose()? {
        Some(map) => mirror(&secrets, &map).await?,
        None => match secrets.delete(request.name()).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        },
    }
    context.reconciled.lock().unwrap_or_else(PoisonError::into_inner).insert(request.key().clone(), version);
    // A requeue on top of the changes.
    if draw < 30 { Ok(Outcome::RequeueAfter(pause)) } else { Ok(Outcome::Done) }
}

/// Writes the copy of a config map.
async fn mirror(secrets: &Api<Secret>, map: &ConfigMap) -> Result<(), BoxError> {
    let name = map.metadata.name.as_deref().unwrap_or_default();
    let value = map.data.as_ref().and_then(|data| data.get("n")).cloned().unwrap_or_default();
    let wanted: Secret = serde_json::from_value(json!({
        "metadata": {"name": name, "ownerReferences": [controller_owner_ref(map)?]},
        "stringData": {"copy": value},
    }))?;
    match secrets.get_opt(name).await? {
        None => drop(secrets.create(&wanted).await?),
        Some(found) if found.metadata.owner_references != wanted.metadata.owner_references => {
            // The copy of an earlier object of the same name.
            secrets.delete(name).uid(found.metadata.uid.unwrap_or_default()).await?;
            secrets.create(&wanted).await?;
        }
        Some(found) if copy(&found) != value => {
            let patch = klient::Patch::merge(json!({"stringData": {"copy": value}}));
            secrets.patch(name, patch).await?;
        }
        Some(_) => {}
    }
    Ok(())
}

fn copy(secret: &Secret) -> String {
    let bytes = secret.data.as_ref().and_then(|data| data.get("copy"));
    bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
}

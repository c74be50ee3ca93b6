//! Writers: clients that create, change and delete objects, and note what the server acknowledged.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use klient::{Api, Client, Error, ObjectKey, Patch, object::DynamicObject};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    observers::ONE_NAME,
    rng::Rng,
    truth::{Fresh, Truth, Watched, version_of},
};

/// A write that the server acknowledged.
#[derive(Clone, Debug)]
enum Ack {
    Put { version: u64 },
    Deleted { uid: String },
}

/// The acknowledged writes of all writers.
#[derive(Clone, Default)]
pub(crate) struct Acks {
    all: Arc<Mutex<Vec<(Watched, ObjectKey, Ack)>>>,
}

/// A client that writes at random.
pub(crate) struct Writer {
    pub(crate) id: u8,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) rng: Rng,
    pub(crate) acks: Acks,
    /// Whether objects may be written that their Rust type cannot represent.
    pub(crate) poison: watch::Receiver<bool>,
    pub(crate) pace: Pace,
}

/// The pauses between two writes of a writer, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) shortest: u64,
    pub(crate) longest: u64,
}

impl Writer {
    /// Writes until the signal. A write that has begun is finished.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut count = 0u64;
        loop {
            let pause = self.rng.millis(self.pace.shortest, self.pace.longest);
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(pause) => {}
            }
            count += 1;
            // A write that failed may have been executed. The timeline shows whether it was.
            let _ = self.write(count).await;
        }
    }

    async fn write(&mut self, count: u64) -> Result<(), Error> {
        let name = format!("m{}", self.rng.range(0, KEYS));
        match self.rng.range(0, 100) {
            0..65 => self.write_to(Watched::ConfigMaps, &name, count).await,
            65..92 => self.write_to(Watched::Widgets, &name, count).await,
            _ => self.vandalise(&name, count).await,
        }
    }

    async fn write_to(&mut self, watched: Watched, name: &str, count: u64) -> Result<(), Error> {
        let api = watched.api(&self.client, &self.namespace);
        let value = format!("{}-{count}", self.id);
        let color = if self.rng.percent(50) { "red" } else { "blue" };
        let content = match watched {
            Watched::ConfigMaps => json!({"data": {"n": value}}),
            Watched::Widgets if *self.poison.borrow() && self.rng.percent(40) => {
                json!({"spec": {"n": value, "size": "many"}})
            }
            Watched::Widgets => json!({"spec": {"n": value, "size": count}}),
        };
        match self.rng.range(0, 100) {
            0..45 => self.create(watched, &api, name, color, content).await,
            45..80 => {
                let mut patch = content;
                patch["metadata"] = json!({"labels": {"color": color}});
                let changed = api.patch(name, Patch::merge(patch)).await?;
                self.acks.put(watched, &changed);
                Ok(())
            }
            _ => self.delete(watched, &api, name).await,
        }
    }

    async fn create(
        &mut self,
        watched: Watched,
        api: &Api<DynamicObject>,
        name: &str,
        color: &str,
        content: serde_json::Value,
    ) -> Result<(), Error> {
        let mut object = json!({"metadata": {"name": name, "namespace": self.namespace, "labels": {"color": color}}});
        if let (Some(object), Some(content)) = (object.as_object_mut(), content.as_object()) {
            object.extend(content.clone());
        }
        if watched == Watched::ConfigMaps && self.rng.percent(50) {
            // In protobuf.
            let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
            let Ok(map) = serde_json::from_value(object) else { return Ok(()) };
            let created = maps.create(&map).await?;
            let version = created.metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
            let ack = Ack::Put { version: version.unwrap_or(0) };
            self.acks.lock().push((watched, ObjectKey::of(&created), ack));
            return Ok(());
        }
        let Ok(mut object) = serde_json::from_value::<DynamicObject>(object) else { return Ok(()) };
        object.fill_types(api.resource());
        let created = api.create(&object).await?;
        self.acks.put(watched, &created);
        Ok(())
    }

    async fn delete(&mut self, watched: Watched, api: &Api<DynamicObject>, name: &str) -> Result<(), Error> {
        let Some(found) = api.get_opt(name).await? else { return Ok(()) };
        let uid = found.metadata.uid.clone().unwrap_or_default();
        api.delete(name).uid(uid.clone()).await?;
        self.acks.lock().push((watched, ObjectKey::of(&found), Ack::Deleted { uid }));
        Ok(())
    }

    /// Changes or deletes an object of the controller, which has to restore it.
    async fn vandalise(&mut self, name: &str, count: u64) -> Result<(), Error> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        if self.rng.percent(50) {
            secrets.delete(name).await?;
        } else {
            let value = format!("vandalised-{}-{count}", self.id);
            secrets.patch(name, Patch::merge(json!({"stringData": {"copy": value}}))).await?;
        }
        Ok(())
    }
}

/// Writes an object that every informer selects. An informer that has seen it has seen all writes before it.
pub(crate) async fn write_last(client: &Client, namespace: &str, value: &str) -> Result<(), Error> {
    for watched in Watched::ALL {
        let api = watched.api(client, namespace);
        let content = match watched {
            Watched::ConfigMaps => json!({"metadata": {"labels": {"color": "red"}}, "data": {"n": value}}),
            Watched::Widgets => json!({"metadata": {"labels": {"color": "red"}}, "spec": {"n": value, "size": 1}}),
        };
        match api.patch(ONE_NAME, Patch::merge(content.clone())).await {
            Ok(_) => continue,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        let mut object = DynamicObject::new(ONE_NAME, api.resource()).within(namespace).data(content);
        object.metadata.labels = Some([("color".to_owned(), "red".to_owned())].into());
        object.data.as_object_mut().map(|data| data.remove("metadata"));
        api.create(&object).await?;
    }
    Ok(())
}

impl Acks {
    fn lock(&self) -> MutexGuard<'_, Vec<(Watched, ObjectKey, Ack)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, watched: Watched, object: &DynamicObject) {
        self.lock().push((watched, ObjectKey::of(object), Ack::Put { version: version_of(object) }));
    }

    /// Returns the number of acknowledged writes.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns the acknowledged writes that are lost.
    pub(crate) fn lost(&self, truth: &Truth, fresh: &BTreeMap<Watched, Fresh>) -> Vec<String> {
        let mut lost = Vec::new();
        for (watched, key, ack) in self.lock().iter() {
            let timeline = truth.of(*watched);
            match ack {
                Ack::Put { version } => {
                    let states = timeline.states.get(key);
                    let existed = states.is_some_and(|states| states.contains_key(version));
                    if !existed && !timeline.is_in_gap(*version) {
                        lost.push(format!("{watched:?} {key}: acknowledged version {version} never existed"));
                    }
                    let current = fresh[watched].get(key).map(|(version, _)| *version);
                    let was_deleted = states
                        .is_some_and(|states| states.range(version + 1..).any(|(_, state)| !state.exists))
                        || timeline.has_gap_after(*version);
                    if current.is_none_or(|current| current < *version) && !was_deleted {
                        lost.push(format!(
                            "{watched:?} {key}: acknowledged version {version} is lost, now {current:?}"
                        ));
                    }
                }
                Ack::Deleted { uid } => {
                    if fresh[watched].get(key).is_some_and(|(_, state)| state.uid == *uid) {
                        lost.push(format!("{watched:?} {key}: deletion of {uid} was acknowledged, and it exists"));
                    }
                }
            }
        }
        lost
    }
}

/// The number of names that writers use.
pub(crate) const KEYS: u64 = 8;

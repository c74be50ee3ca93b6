//! The true history of the server: every state of every object, from a watch without faults.
//!
//! Where that watch had to list again, states may be missing. Such ranges of versions are gaps, in which any state is possible.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Error, ObjectKey, WatchEvent,
    object::DynamicObject,
    resource::{ApiResource, NamespaceScope},
};
use klient_core::Target;

use crate::widget::Widget;

/// The resources that writers write and informers watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Watched {
    ConfigMaps,
    Widgets,
}

/// One state of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) uid: String,
    /// Whether the object exists. False for its deletion.
    pub(crate) exists: bool,
    pub(crate) is_red: bool,
    /// Whether the Rust type can represent the object.
    pub(crate) is_readable: bool,
    pub(crate) value: String,
}

/// The current objects of a resource, with their versions.
pub(crate) type Fresh = BTreeMap<ObjectKey, (u64, State)>;

/// The states of the objects of one resource, by key and version.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) states: BTreeMap<ObjectKey, BTreeMap<u64, State>>,
    /// Ranges of versions, without their first and with their last, of which states may be missing.
    pub(crate) gaps: Vec<(u64, u64)>,
    seen: u64,
}

/// The timelines of a world.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    config_maps: Arc<Mutex<Timeline>>,
    widgets: Arc<Mutex<Timeline>>,
}

impl Watched {
    pub(crate) const ALL: [Self; 2] = [Self::ConfigMaps, Self::Widgets];

    /// Returns the resource of a namespace.
    pub(crate) fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let resource = match self {
            Self::ConfigMaps => resource::<ConfigMap>(),
            Self::Widgets => resource::<Widget>(),
        };
        Api::dynamic(client.clone(), resource, Target::Namespace(namespace.to_owned()))
    }
}

fn resource<K: klient::Resource<Scope = NamespaceScope>>() -> ApiResource {
    ApiResource::of::<K>()
}

impl Timeline {
    /// Returns whether a version lies in a gap.
    pub(crate) fn is_in_gap(&self, version: u64) -> bool {
        self.gaps.iter().any(|(after, until)| (after + 1..=*until).contains(&version))
    }

    /// Returns whether any gap reaches beyond a version.
    pub(crate) fn has_gap_after(&self, version: u64) -> bool {
        self.gaps.iter().any(|(_, until)| *until > version)
    }

    fn put(&mut self, object: &DynamicObject, exists: bool) {
        let version = version_of(object);
        self.seen = self.seen.max(version);
        self.states.entry(ObjectKey::of(object)).or_default().insert(version, state(object, exists));
    }

    /// Takes over a list.
    fn replace(&mut self, objects: &[DynamicObject], at: u64) {
        if self.seen != 0 && at > self.seen {
            self.gaps.push((self.seen, at));
        }
        let listed: BTreeMap<ObjectKey, u64> =
            objects.iter().map(|object| (ObjectKey::of(object), version_of(object))).collect();
        for (key, states) in &mut self.states {
            let Some((_, last)) = states.last_key_value() else { continue };
            if last.exists && !listed.contains_key(key) {
                let deleted = State { exists: false, ..last.clone() };
                states.insert(at, deleted);
            }
        }
        for object in objects {
            self.put(object, true);
        }
        self.seen = self.seen.max(at);
    }

    /// Returns the objects that exist now.
    fn current(&self) -> BTreeMap<ObjectKey, u64> {
        let last = self.states.iter().filter_map(|(key, states)| Some((key, states.last_key_value()?)));
        last.filter(|(_, (_, state))| state.exists).map(|(key, (version, _))| (key.clone(), *version)).collect()
    }
}

impl Truth {
    /// Returns the timeline of a resource.
    pub(crate) fn of(&self, watched: Watched) -> MutexGuard<'_, Timeline> {
        self.slot(watched).lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, watched: Watched) -> &Arc<Mutex<Timeline>> {
        match watched {
            Watched::ConfigMaps => &self.config_maps,
            Watched::Widgets => &self.widgets,
        }
    }

    /// Follows a resource until the future is dropped.
    pub(crate) async fn follow(self, watched: Watched, api: Api<DynamicObject>) {
        let mut needs_list = true;
        loop {
            // A server that is down, or a resource that is not served, comes back.
            match self.follow_once(watched, &api, needs_list).await {
                Ok(()) => needs_list = false,
                Err(error) => needs_list |= error.is_gone() || error.is_not_found(),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn follow_once(&self, watched: Watched, api: &Api<DynamicObject>, needs_list: bool) -> Result<(), Error> {
        let after = if needs_list { self.list(watched, api).await? } else { self.of(watched).seen };
        let mut watch = api.watch().after(after.to_string()).await?;
        while let Some(event) = watch.next().await {
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => self.of(watched).put(&object, true),
                WatchEvent::Deleted(object) => self.of(watched).put(&object, false),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(Error::from(status)),
            }
        }
        Ok(())
    }

    async fn list(&self, watched: Watched, api: &Api<DynamicObject>) -> Result<u64, Error> {
        let list = api.list().await?;
        let at = list.resource_version().as_str().parse().unwrap_or(0);
        let objects: Vec<DynamicObject> = list.iter().cloned().collect();
        self.of(watched).replace(&objects, at);
        Ok(at)
    }

    /// Returns the current objects once the timeline has all of them.
    pub(crate) async fn settle(&self, watched: Watched, api: &Api<DynamicObject>) -> Result<Fresh> {
        let mut last = String::new();
        for _ in 0..300 {
            match api.list().await {
                Ok(list) => {
                    let fresh: Fresh = list
                        .iter()
                        .map(|object| (ObjectKey::of(object), (version_of(object), state(object, true))))
                        .collect();
                    let versions = fresh.iter().map(|(key, (version, _))| (key.clone(), *version)).collect();
                    let known = self.of(watched).current();
                    if known == versions {
                        return Ok(fresh);
                    }
                    last = format!("the list has {versions:?}, the timeline has {known:?}");
                }
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(anyhow::anyhow!(last)).with_context(|| format!("timeline of {watched:?} is not complete"))
    }
}

/// Returns the version of an object as a number.
pub(crate) fn version_of(object: &DynamicObject) -> u64 {
    object.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

fn state(object: &DynamicObject, exists: bool) -> State {
    let labels = object.metadata.labels.as_ref();
    let field = |path: &str| object.data.pointer(path);
    let value = field("/data/n").or_else(|| field("/spec/n")).and_then(|value| value.as_str()).unwrap_or_default();
    State {
        uid: object.metadata.uid.clone().unwrap_or_default(),
        exists,
        is_red: labels.and_then(|labels| labels.get("color")).is_some_and(|color| color == "red"),
        is_readable: field("/spec/size").is_none_or(serde_json::Value::is_i64),
        value: value.to_owned(),
    }
}

//! Fights: fields that two field managers write in turn.
//!
//! Caches have no managed fields, so that an object is watched for a while when the story of a key is shown whose turns write that
//! object again and again. Each change of a field's owner from one manager to another counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use klient_core::{DynamicObject, GroupResource, ObjectKey, WatchEvent, fields::FieldSet};
use klient_proto::ManagedFields;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Error,
    client::{
        Api, Client,
        discovery::{CachedDiscovery, DiscoveryClient, RestMapper},
    },
    introspection::Fight,
    request::Target,
};

/// An object.
type Object = (GroupResource, ObjectKey);

/// The objects that are watched for fights.
pub(super) struct Fights {
    client: Client,
    mapper: Arc<RestMapper>,
    watched: Arc<Mutex<BTreeMap<Object, Arc<Mutex<Owners>>>>>,
    /// The watches. They end with this value.
    tasks: Mutex<JoinSet<()>>,
}

/// The owners of an object's fields, and how often they changed.
struct Owners {
    last: BTreeMap<String, BTreeSet<String>>,
    changes: BTreeMap<(String, BTreeSet<String>), u32>,
    /// The watch ends if the story was not shown for some time.
    shown: Instant,
}

impl Fights {
    pub(super) fn new(client: &Client) -> Self {
        let client = client.to_builder().managed_fields(ManagedFields::Keep).build();
        let mapper = RestMapper::new(CachedDiscovery::in_memory(DiscoveryClient::new(client.clone())));
        Self { client, mapper: Arc::new(mapper), watched: Arc::default(), tasks: Mutex::default() }
    }

    /// Returns the fights over these objects, and watches the objects from now on.
    pub(super) fn over(&self, objects: &[Object]) -> Vec<Fight> {
        let mut fights = Vec::new();
        for object in objects.iter().take(MAX_PER_KEY) {
            let known = lock(&self.watched).get(object).cloned();
            match known {
                Some(owners) => {
                    let mut owners = lock(&owners);
                    owners.shown = Instant::now();
                    fights.extend(owners.fights(object));
                }
                None => self.watch(object),
            }
        }
        fights.sort_by_key(|fight| std::cmp::Reverse(fight.changes));
        fights.truncate(MAX_FIGHTS);
        fights
    }

    fn watch(&self, object: &Object) {
        let mut watched = lock(&self.watched);
        if watched.len() >= MAX_WATCHED {
            return;
        }
        let owners = Arc::new(Mutex::new(Owners::new()));
        watched.insert(object.clone(), Arc::clone(&owners));
        let (client, mapper, object) = (self.client.clone(), Arc::clone(&self.mapper), object.clone());
        let watched = Arc::clone(&self.watched);
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            if let Err(error) = follow(client, &mapper, &object, &owners).await {
                tracing::debug!(resource = %object.0, key = %object.1, %error, "cannot watch object for fights");
            }
            lock(&watched).remove(&object);
        });
    }
}

/// Watches an object until its story is not shown any more.
async fn follow(client: Client, mapper: &RestMapper, object: &Object, owners: &Mutex<Owners>) -> Result<(), Error> {
    let (resource, key) = object;
    let resource = mapper.resolve(&resource.to_string()).await?.resource;
    let target = key.namespace().map_or(Target::Cluster, |namespace| Target::Namespace(namespace.to_owned()));
    let api: Api<DynamicObject> = Api::dynamic(client, resource, target);
    while lock(owners).shown.elapsed() < SHOWN_FOR {
        let mut watch = api.watch().fields(format!("metadata.name={}", key.name())).timeout(WATCH_FOR).await?;
        while let Ok(Some(event)) = tokio::time::timeout(SHOWN_FOR, watch.next()).await {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event? {
                lock(owners).see(&object);
            }
            if lock(owners).shown.elapsed() >= SHOWN_FOR {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl Owners {
    fn new() -> Self {
        Self { last: BTreeMap::new(), changes: BTreeMap::new(), shown: Instant::now() }
    }

    /// Compares the owners of all fields with those of the state before.
    fn see(&mut self, object: &DynamicObject) {
        let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for entry in object.metadata.managed_fields.iter().flatten() {
            let Some(fields) = entry.fields_v1.as_ref() else { continue };
            let Ok(set) = FieldSet::from_value(&fields.0) else { continue };
            for path in set.leaves().paths().into_iter().take(MAX_FIELDS) {
                let text = path.iter().map(ToString::to_string).collect::<String>();
                owners.entry(text).or_default().insert(entry.manager.clone().unwrap_or_default());
            }
        }
        for (field, managers) in &owners {
            let Some(before) = self.last.get(field).filter(|before| before.is_disjoint(managers)) else { continue };
            if self.changes.len() < MAX_FIELDS {
                let both = before.union(managers).cloned().collect();
                *self.changes.entry((field.clone(), both)).or_default() += 1;
            }
        }
        // A field that is absent for a moment keeps its last owner, so that removing and adding it counts.
        owners.into_iter().for_each(|(field, managers)| drop(self.last.insert(field, managers)));
    }

    fn fights(&self, (resource, key): &Object) -> Vec<Fight> {
        let repeated = self.changes.iter().filter(|(_, changes)| **changes >= REPEATED);
        let fight = |((field, managers), changes): (&(String, BTreeSet<String>), &u32)| Fight {
            resource: resource.to_string(),
            object: key.to_string(),
            field: field.clone(),
            managers: managers.iter().cloned().collect(),
            changes: *changes,
        };
        repeated.map(fight).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of objects that are watched at the same time, and of those for one key.
const MAX_WATCHED: usize = 8;
const MAX_PER_KEY: usize = 3;
/// The number of fields of a manager that are compared.
const MAX_FIELDS: usize = 1000;
/// The number of fights in a story.
const MAX_FIGHTS: usize = 20;
/// The number of changes of a field's owner from which on they are a fight.
const REPEATED: u32 = 3;
/// How long an object is watched after its story was last shown.
const SHOWN_FOR: Duration = Duration::from_secs(60);
const WATCH_FOR: Duration = Duration::from_secs(120);

//! The jobs of the garbage collector.

use std::{sync::Arc, time::Duration};

use klient_core::Verb;
use serde_json::{Value, json};

use super::{Job, ObjectId};
use crate::{
    admission::Origin,
    builtin::definitions,
    metadata,
    registry::Resource,
    server::Core,
    store::{CommitError, Expected, Stored, Write},
    verbs::{DeleteOptions, Target},
};

pub(super) async fn perform(core: &Arc<Core>, job: Job) {
    match &job {
        Job::Dependent(id) => dependent(core, &job, id).await,
        Job::Owner(id) => owner(core, &job, id).await,
        Job::Namespace(name) => namespace(core, &job, name).await,
        Job::Definition(name) => definition(core, &job, name).await,
    }
}

/// Deletes an object whose owners are all deleted, or removes its references to deleted owners.
async fn dependent(core: &Arc<Core>, job: &Job, id: &ObjectId) {
    let Some((resource, stored)) = find(core, id) else { return };
    let object = stored.value();
    let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    if owners.is_empty() {
        return;
    }
    let namespace = stored.raw().namespace().unwrap_or_default().into_owned();
    let (kept, gone): (Vec<Value>, Vec<Value>) =
        owners.into_iter().partition(|owner| is_present(core, owner, &namespace));
    if gone.is_empty() {
        return;
    }
    if kept.is_empty() {
        // A cluster-scoped object cannot have a namespaced owner, so that its reference cannot be checked.
        let cluster_scoped = !resource.namespaced;
        let owners_are_namespaced = gone.iter().any(|owner| is_namespaced_kind(core, owner));
        if cluster_scoped && owners_are_namespaced {
            return;
        }
        let uid = stored.raw().uid().unwrap_or_default().into_owned();
        // The object is deleted already, or protected. Either way there is nothing left to do.
        let _ = core
            .delete_object(&target(&resource, &stored), &DeleteOptions::background().of_uid(&uid), Origin::Server)
            .await;
        return;
    }
    let mut new = object;
    metadata::of(&mut new).insert("ownerReferences".to_owned(), json!(kept));
    put(core, job, &resource, &stored, new).await;
}

/// Returns whether an owner exists, with the same UID and in the dependent's namespace.
fn is_present(core: &Core, owner: &Value, namespace: &str) -> bool {
    let uid = owner["uid"].as_str().unwrap_or_default();
    // The change that created the owner may be committed but not recorded yet.
    let place = core.collector.place_of(uid).or_else(|| named_place(core, owner, namespace));
    let Some((table, key)) = place else { return false };
    let Some(stored) = core.store.get(&table, &key) else { return false };
    let same = stored.raw().uid().as_deref() == Some(uid);
    let reachable = stored.raw().namespace().is_none_or(|owner| owner == namespace);
    same && reachable
}

/// Returns where an owner is stored, by the kind and name in its reference.
fn named_place(core: &Core, owner: &Value, namespace: &str) -> Option<ObjectId> {
    let resource = kind_of(core, owner)?;
    let namespace = if resource.namespaced { namespace } else { "" };
    let key = resource.key(namespace, owner["name"].as_str()?);
    Some((Arc::clone(&resource.table), key))
}

fn is_namespaced_kind(core: &Core, owner: &Value) -> bool {
    kind_of(core, owner).is_some_and(|resource| resource.namespaced)
}

fn kind_of(core: &Core, owner: &Value) -> Option<Arc<Resource>> {
    let version = owner["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = owner["kind"].as_str().unwrap_or_default();
    core.registry.groups().of_kind(group, version, kind)
}

/// Continues the deletion of an owner that waits for the collector.
async fn owner(core: &Arc<Core>, job: &Job, id: &ObjectId) {
    let Some((resource, stored)) = find(core, id) else { return };
    let object = stored.value();
    if !metadata::is_deleting(&object) {
        return;
    }
    let uid = metadata::text(&object, "uid").to_owned();
    let has = |name: &str| metadata::finalizers(&object).any(|finalizer| finalizer == name);
    if has("orphan") {
        let mut is_orphaned = true;
        for dependent in core.collector.dependents(&uid) {
            let Some((resource, stored)) = find(core, &dependent) else { continue };
            let mut new = stored.value();
            if let Some(owners) = new["metadata"]["ownerReferences"].as_array_mut() {
                owners.retain(|owner| owner["uid"] != uid);
                if owners.is_empty() {
                    metadata::of(&mut new).remove("ownerReferences");
                }
            }
            is_orphaned &= put(core, job, &resource, &stored, new).await;
        }
        // Once the owner is deleted, dependents that still refer to it would be deleted, too.
        if is_orphaned {
            without_finalizer(core, job, &resource, &stored, "orphan").await;
        }
    } else if has("foregroundDeletion") {
        let mut waits = false;
        for dependent in core.collector.dependents(&uid) {
            let Some((resource, stored)) = find(core, &dependent) else { continue };
            let object = stored.value();
            let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
            waits |= owners.iter().any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true);
            let owned_by_others = owners.iter().any(|owner| {
                let other = owner["uid"].as_str().unwrap_or_default();
                other != uid && is_present(core, owner, &stored.raw().namespace().unwrap_or_default())
            });
            if owned_by_others {
                let mut new = object.clone();
                if let Some(owners) = new["metadata"]["ownerReferences"].as_array_mut() {
                    owners.retain(|owner| owner["uid"] != uid);
                }
                put(core, job, &resource, &stored, new).await;
            } else if !metadata::is_deleting(&object) {
                let options = DeleteOptions::foreground().of_uid(metadata::text(&object, "uid"));
                let _ = core.delete_object(&target(&resource, &stored), &options, Origin::Server).await;
            }
        }
        let blocked = waits
            && core.collector.dependents(&uid).iter().any(|dependent| {
                find(core, dependent).is_some_and(|(_, stored)| {
                    let object = stored.value();
                    let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
                    owners.iter().any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
                })
            });
        if !blocked {
            without_finalizer(core, job, &resource, &stored, "foregroundDeletion").await;
        }
    }
}

/// Deletes the objects of a terminating namespace, and then the namespace.
async fn namespace(core: &Arc<Core>, job: &Job, name: &str) {
    let Some(stored) = core.store.get("namespaces", name) else { return };
    if stored.raw().deletion_timestamp().is_none() {
        return;
    }
    let prefix = format!("{name}/");
    let mut remaining = 0;
    for resource in core.registry.groups().preferred() {
        if !resource.namespaced || !resource.has_verb(Verb::Delete) {
            continue;
        }
        for stored in core.store.list(&resource.table, &prefix).objects {
            if stored.raw().deletion_timestamp().is_none() {
                let _ =
                    core.delete_object(&target(&resource, &stored), &DeleteOptions::background(), Origin::Server).await;
            }
        }
        remaining += core.store.list(&resource.table, &prefix).objects.len();
    }
    if remaining > 0 {
        // The deletion of the last object queues this job again.
        return;
    }
    let Some(namespaces) = core.registry.find("", "v1", "namespaces") else { return };
    let Some(stored) = core.store.get("namespaces", name) else { return };
    let mut new = stored.value();
    let finalizers = new["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    let kept: Vec<Value> = finalizers.iter().filter(|name| **name != "kubernetes").cloned().collect();
    if !finalizers.is_empty() && kept.len() == finalizers.len() {
        // The namespace waits for the owners of the others.
        return;
    }
    if !kept.is_empty() {
        new["spec"]["finalizers"] = json!(kept);
    } else if let Value::Object(spec) = &mut new["spec"] {
        spec.remove("finalizers");
    }
    put(core, job, &namespaces, &stored, new).await;
}

/// Deletes the objects of a custom kind whose definition is being deleted, and then the definition.
async fn definition(core: &Arc<Core>, job: &Job, name: &str) {
    let table = definitions::TABLE;
    let Some(stored) = core.store.get(table, name) else { return };
    let definition = stored.value();
    let is_kept = metadata::finalizers(&definition).any(|finalizer| finalizer == definitions::FINALIZER);
    let Some(kind) = core.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") else { return };
    if !metadata::is_deleting(&definition) || !is_kept {
        return;
    }
    let begun = definitions::emptied(core, &definition, false);
    if begun != definition {
        put(core, job, &kind, &stored, begun).await;
    }
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
    // Objects can be left of versions that are no longer served.
    let mut all = definition.clone();
    for version in all["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["served"] = json!(true);
    }
    let resources = crate::custom::resources(&all);
    let Some(resource) = resources.first() else { return };
    for stored in core.store.list(&crate::registry::table_name(group, plural), "").objects {
        if stored.raw().deletion_timestamp().is_none() {
            let _ = core.delete_object(&target(resource, &stored), &DeleteOptions::background(), Origin::Server).await;
        }
    }
    if core.store.count(&resource.table) > 0 {
        return;
    }
    if let Some(stored) = core.store.get(table, name) {
        let mut done = definitions::emptied(core, &stored.value(), true);
        remove_finalizer(&mut done, definitions::FINALIZER);
        put(core, job, &kind, &stored, done).await;
    }
}

async fn without_finalizer(core: &Arc<Core>, job: &Job, resource: &Arc<Resource>, stored: &Arc<Stored>, name: &str) {
    let mut new = stored.value();
    remove_finalizer(&mut new, name);
    put(core, job, resource, stored, new).await;
}

fn remove_finalizer(object: &mut Value, name: &str) {
    let kept: Vec<String> =
        metadata::finalizers(object).filter(|finalizer| *finalizer != name).map(str::to_owned).collect();
    if kept.is_empty() {
        metadata::of(object).remove("finalizers");
    } else {
        metadata::of(object).insert("finalizers".to_owned(), json!(kept));
    }
}

/// Writes an object if it did not change meanwhile, or deletes it if nothing keeps it. Returns whether it was written. Otherwise the job is
/// queued again.
async fn put(core: &Arc<Core>, job: &Job, resource: &Arc<Resource>, stored: &Arc<Stored>, new: Value) -> bool {
    let key = resource.key(&stored.raw().namespace().unwrap_or_default(), &stored.raw().name());
    let done = metadata::is_deleting(&new)
        && metadata::finalizers(&new).next().is_none()
        && new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && (resource.hooks.is_removable)(&new);
    let write = if done { Write::Delete(new) } else { Write::Put(new) };
    match core.store.commit(&resource.table, &key, Expected::Revision(stored.revision), write).await {
        // Boxed, because a change can cause another change.
        Ok(committed) => {
            Box::pin(core.after_change(resource, &committed)).await;
            return true;
        }
        // Another write came first. The job sees its state.
        Err(CommitError::Changed(_)) => core.collector.push(job.clone()),
        Err(CommitError::Invalid(reason)) => {
            tracing::error!(table = &*resource.table, key, reason, "collector cannot write object, giving up");
        }
        Err(CommitError::Disk(reason)) => {
            tracing::error!(table = &*resource.table, key, reason, "collector cannot write to disk, retrying");
            tokio::time::sleep(DISK_PAUSE).await;
            core.collector.push(job.clone());
        }
    }
    false
}

fn find(core: &Core, id: &ObjectId) -> Option<(Arc<Resource>, Arc<Stored>)> {
    let stored = core.store.get(&id.0, &id.1)?;
    let resource = core.registry.groups().preferred().into_iter().find(|resource| resource.table == id.0)?;
    Some((resource, stored))
}

fn target(resource: &Arc<Resource>, stored: &Stored) -> Target {
    Target {
        resource: Arc::clone(resource),
        namespace: stored.raw().namespace().unwrap_or_default().into_owned(),
        name: Some(stored.raw().name().into_owned()),
        subresource: None,
    }
}

/// The pause before a write is retried that the disk refused.
const DISK_PAUSE: Duration = Duration::from_secs(1);

//! Mappings from an event to the keys to reconcile. Step 6 of an object's way.

use std::{any::TypeId, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use klient_core::{ClusterScope, GroupKind, GroupVersionKind, ObjectKey, Resource, Scope, is_owner_of_kind};

use super::source::Keys;
use crate::informer::{CachedObject, Event};

/// A function from an event to keys.
pub(super) type Mapping<K> = Arc<dyn Fn(&Event<K>, &mut Keys<'_>) + Send + Sync>;

/// The owners of an object to reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// The controlling owner.
    Controller,
    /// All owners.
    All,
}

/// The group, kind and scope of owners, to match owner references.
#[derive(Clone, Debug)]
pub(super) struct OwnerKind {
    pub(super) kind: GroupKind,
    pub(super) scope: Scope,
}

impl OwnerKind {
    /// Returns the kind of a type. For dynamic types, [`owner_kind`](super::ControllerBuilder::owner_kind) sets it.
    pub(super) fn of<K: Resource>() -> Self {
        let cluster = TypeId::of::<K::Scope>() == TypeId::of::<ClusterScope>();
        let scope = if cluster { Scope::Cluster } else { Scope::Namespaced };
        Self { kind: GroupVersionKind::of::<K>().group_kind(), scope }
    }

    fn key(&self, owner: &OwnerReference, namespace: Option<&str>) -> Option<ObjectKey> {
        if !is_owner_of_kind(owner, &self.kind) {
            return None;
        }
        Some(match (self.scope, namespace) {
            (Scope::Namespaced, Some(namespace)) => ObjectKey::namespaced(namespace, &owner.name),
            // A namespaced owner owns no cluster-scoped objects.
            (Scope::Namespaced, None) => return None,
            (Scope::Cluster, _) => ObjectKey::cluster(&owner.name),
        })
    }
}

/// Maps an event to the key of its object.
pub(super) fn itself<K: Resource>() -> Mapping<K> {
    Arc::new(|event, keys| keys.add(event.key().clone()))
}

/// Maps an event to the owners of its object, before and after the change.
pub(super) fn owners<O: Resource>(owner: OwnerKind, which: Owners) -> Mapping<O> {
    Arc::new(move |event, keys| {
        let mut add_owners = |object: &CachedObject<O>, handled: Option<&CachedObject<O>>| {
            let handled = handled.map(CachedObject::owner_references).unwrap_or_default();
            for reference in object.owner_references() {
                let counts = which == Owners::All || reference.controller == Some(true);
                if !counts || handled.contains(&reference) {
                    continue;
                }
                if let Some(key) = owner.key(&reference, object.key().namespace()) {
                    keys.add(key);
                }
            }
        };
        match event {
            Event::Updated { old, new } => {
                add_owners(new, None);
                if !old.is_same_state(new) {
                    // The owners that the object had before, and has no more.
                    add_owners(old, Some(new));
                }
            }
            other => add_owners(other.object(), None),
        }
    })
}

//! From a change to the keys that have to be reconciled. Step 6 of an object's way.

use std::{any::TypeId, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use klient_core::{ClusterScope, GroupKind, GroupVersionKind, ObjectKey, Resource, Scope, is_owner_of_kind};

use super::source::{Keys, Mapping};
use crate::informer::{CachedObject, Event};

/// Which owners an object belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// The one that controls it.
    Controller,
    /// All of them.
    All,
}

/// A kind of owners: what references must say to mean it, and where its objects live.
#[derive(Clone, Debug)]
pub(super) struct OwnerKind {
    pub(super) kind: GroupKind,
    pub(super) scope: Scope,
}

impl OwnerKind {
    /// The kind of a type; for types known at run time it has to be told.
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
            // An owner in a namespace owns nothing outside of it.
            (Scope::Namespaced, None) => return None,
            (Scope::Cluster, _) => ObjectKey::cluster(&owner.name),
        })
    }
}

/// The object itself.
pub(super) fn itself<K: Resource>() -> Mapping<K> {
    Arc::new(|event, keys| keys.add(event.key().clone()))
}

/// The owners of an object, before and after the change.
pub(super) fn owners<O: Resource>(owner: OwnerKind, which: Owners) -> Mapping<O> {
    Arc::new(move |event, keys| {
        let mut each = |object: &CachedObject<O>, known: Option<&CachedObject<O>>| {
            let before = known.map(CachedObject::owner_references).unwrap_or_default();
            for reference in object.owner_references() {
                let counts = which == Owners::All || reference.controller == Some(true);
                if !counts || before.contains(&reference) {
                    continue;
                }
                if let Some(key) = owner.key(&reference, object.key().namespace()) {
                    keys.add(key);
                }
            }
        };
        match event {
            Event::Updated { old, new } => {
                each(new, None);
                if !old.is_same_state(new) {
                    // Whoever lost it.
                    each(old, Some(new));
                }
            }
            other => each(other.object(), None),
        }
    })
}

/// What a function makes of the event.
pub(super) fn mapped<O: Resource>(map: impl Fn(&Event<O>, &mut Keys<'_>) + Send + Sync + 'static) -> Mapping<O> {
    Arc::new(map)
}

//! Shard keys: the part of an object by which replicas share objects.

use std::{fmt, sync::Arc};

use klient_core::{ObjectKey, Resource};

use super::{ranges::selector, slot::Slot};
use crate::informer::{CachedObject, narrow::SlotSet};

/// The part of an object that decides to which replica the object belongs. Objects with the same shard key belong to the same
/// replica.
///
/// The key of the object itself and its namespace never change, so that two replicas never act on one object at once.
/// A label or an owner can change: replicas see the change at different moments, and for that long both may act on the object.
/// Choose labels that do not change. An object without the label is shared by its name.
/// A UID never changes either, but an object that is deleted and created again has another one.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use klient::shard::ShardKey;
///
/// let by_tenant: ShardKey<ConfigMap> = ShardKey::label("shop.example.com/tenant");
/// assert_eq!(by_tenant.to_string(), "label shop.example.com/tenant");
/// ```
pub struct ShardKey<K: Resource> {
    part: Part<K>,
}

enum Part<K: Resource> {
    Object,
    Namespace,
    Uid,
    Computed(Arc<str>, Compute<K>),
}

type Compute<K> = Arc<dyn Fn(&CachedObject<K>) -> Option<String> + Send + Sync>;

impl<K: Resource> ShardKey<K> {
    /// Shares objects by namespace and name. Owned objects follow their owner, whose key is the one that is reconciled.
    pub fn object() -> Self {
        Self { part: Part::Object }
    }

    /// Shares namespaces: all objects of a namespace belong to one replica.
    pub fn namespace() -> Self {
        Self { part: Part::Namespace }
    }

    /// Shares objects by UID. API servers can select objects by it, so that a [narrowed
    /// cache](crate::controller::ControllerBuilder::cache_own_shard) receives only its own part.
    ///
    /// An object that is created again under the same name may belong to another replica.
    pub fn uid() -> Self {
        Self { part: Part::Uid }
    }

    /// Shares objects by the value of a label.
    pub fn label(key: impl Into<String>) -> Self {
        let key = key.into();
        let name = format!("label {key}");
        Self::by(name, move |object: &CachedObject<K>| object.label(&key).map(std::borrow::Cow::into_owned))
    }

    /// Shares objects by the UID of their controlling owner: all objects of one owner belong to one replica.
    pub fn owner() -> Self {
        Self::by("owner", |object: &CachedObject<K>| {
            let owners = object.owner_references();
            owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid)
        })
    }

    /// Shares objects by the text that a function returns, such as a part of the name. The function must return the same text in all
    /// replicas; its name tells replicas that use another one.
    pub fn by(
        name: impl Into<Arc<str>>,
        compute: impl Fn(&CachedObject<K>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { part: Part::Computed(name.into(), Arc::new(compute)) }
    }

    /// Returns the text by which API servers select the objects of some slots, if they can.
    pub(crate) fn selector(&self, slots: &SlotSet) -> Option<String> {
        match &self.part {
            Part::Uid => selector(slots),
            _ => None,
        }
    }

    /// Returns the slot of a key, if the key alone decides.
    pub(crate) fn slot_of_key(&self, key: &ObjectKey) -> Option<Slot> {
        match &self.part {
            Part::Object => Some(Slot::of(key)),
            Part::Namespace => Some(Slot::of_text(key.namespace().unwrap_or(key.name()))),
            Part::Uid | Part::Computed(..) => None,
        }
    }

    /// Returns the slot of an object.
    pub(crate) fn slot_of(&self, object: &CachedObject<K>) -> Slot {
        match &self.part {
            Part::Computed(_, compute) => {
                compute(object).map_or_else(|| Slot::of(object.key()), |text| Slot::of_text(&text))
            }
            Part::Uid => object.uid().map_or_else(|| Slot::of(object.key()), |uid| Slot::of_uid(&uid)),
            _ => self.slot_of_key(object.key()).unwrap_or_else(|| Slot::of(object.key())),
        }
    }
}

impl<K: Resource> fmt::Display for ShardKey<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.part {
            Part::Object => "object",
            Part::Namespace => "namespace",
            Part::Uid => "uid",
            Part::Computed(name, _) => name,
        })
    }
}

impl<K: Resource> fmt::Debug for ShardKey<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardKey({self})")
    }
}

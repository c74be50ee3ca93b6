//! The owners of fields after a create, update or patch.

use std::sync::{Arc, LazyLock};

use klient_core::fields::{Comparison, Duplicates, FieldSet, ManagedSet, PathElement, Typed, Updater};
use serde_json::Value;

use super::{
    Writer,
    cap::cap,
    entries::{Identity, Managed, is_reset},
    schema::{self, SchemaOf},
    versions::Versions,
    zero_object,
};
use crate::{
    metadata,
    registry::{Groups, Resource},
};

/// Returns the entries of an object after a write that is not an apply.
///
/// `live` is the stored object, or nothing for a create; both objects are in the version of the request. An object that does not
/// fit its schema has no entries, as on the real server. `new` is left without its own entries.
pub(crate) fn update(
    groups: &Groups,
    resource: &Resource,
    live: Option<&mut Value>,
    new: &mut Value,
    writer: &Writer,
) -> Option<Value> {
    let entries = &super::take_entries(new);
    let Some(live) = live else {
        return update_from(groups, resource, None, new, [entries, &Value::Null], writer);
    };
    // The entries of the stored object take no part in the comparison.
    let live_entries = super::take_entries(live);
    let updated = update_from(groups, resource, Some(live), new, [entries, &live_entries], writer);
    if !live_entries.is_null() {
        super::set_entries(live, Some(live_entries));
    }
    updated
}

/// Returns the entries of an object, given those of the request and those that are stored. Both objects have none.
fn update_from(
    groups: &Groups,
    resource: &Resource,
    live: Option<&mut Value>,
    new: &mut Value,
    [entries, live_entries]: [&Value; 2],
    writer: &Writer,
) -> Option<Value> {
    let managed = if !writer.subresource.is_empty() {
        Managed::decode(live_entries).unwrap_or_default()
    } else if is_reset(entries) {
        Managed::default()
    } else {
        // A client that does not know entries leaves them out. They stay.
        match Managed::decode(entries) {
            Ok(managed) if !managed.sets.is_empty() => managed,
            _ => Managed::decode(live_entries).unwrap_or_default(),
        }
    };
    // The owners of fields that were written before are not known.
    if managed.sets.is_empty() && live.as_ref().is_some_and(|live| !metadata::text(live, "uid").is_empty()) {
        return None;
    }
    let schema = schema::of(resource)?;
    let mut live = live;
    // The objects are lent to the comparison, because copies cost more than that.
    let typed = |object: &mut Value| Typed::unchecked(&schema.schema, schema.root, std::mem::take(object));
    let typed_live = match &mut live {
        Some(live) => typed(live),
        None => zero(resource, &schema),
    };
    let typed_new = typed(new);
    // Built-in objects have the right shape, because they were decoded by it.
    let fits = |object: &Typed| !resource.is_custom() || object.validate(Duplicates::Allowed).is_ok();
    let is_comparable = fits(&typed_live) && fits(&typed_new);
    let managed =
        is_comparable.then(|| update_managed(groups, resource, &typed_live, &typed_new, managed, writer)).flatten();
    *new = typed_new.into_value();
    if let Some(live) = live {
        *live = typed_live.into_value();
    }
    managed?.encode()
}

/// Returns the empty object that a new object is compared with.
pub(super) fn zero(resource: &Resource, schema: &SchemaOf) -> Typed {
    Typed::unchecked(&schema.schema, schema.root, Arc::clone(zero_object(resource)))
}

/// Returns the managers after a write that is not an apply.
pub(super) fn update_managed(
    groups: &Groups,
    resource: &Resource,
    live: &Typed,
    new: &Typed,
    managed: Managed,
    writer: &Writer,
) -> Option<Managed> {
    let version = resource.api_version();
    let versions = Versions { groups, resource, conversions: &writer.conversions };
    let ignored = versions.ignored(&writer.subresource, &managed.sets);
    let identifier = Identity::update(&writer.manager, &version, &writer.subresource).identifier();
    if is_of_one_version(resource, &managed, &identifier) {
        let changes = live.compare(new).ok()?;
        let changes = match ignored.get(&version) {
            Some(ignored) => changes.without(ignored),
            None => changes,
        };
        return Some(change_owners(managed, &changes, identifier, &version, writer));
    }
    let updater = Updater { converter: &versions, ignored: &ignored };
    let Managed { sets, times } = managed;
    let sets = updater.update(live, new, &version, sets, CURRENT).ok()?;
    let mut managed = Managed { sets, times };
    if let Some(current) = managed.sets.remove(CURRENT) {
        let set = current.set.difference(&STRIPPED);
        if !set.is_empty() {
            let set = match managed.sets.remove(&identifier) {
                Some(before) => set.union(&before.set),
                None => set,
            };
            managed.sets.insert(identifier.clone(), ManagedSet { set, ..current });
            managed.times.insert(identifier, writer.time.clone());
        }
    }
    cap(&mut managed);
    Some(managed)
}

/// Returns whether nothing has to be converted and the schema cannot have changed, so that the change of the objects is that of all managers.
fn is_of_one_version(resource: &Resource, managed: &Managed, identifier: &str) -> bool {
    let is_stripped = |own: &ManagedSet| own.set.is_disjoint(&STRIPPED);
    !resource.is_custom()
        && managed.sets.values().all(|owned| owned.version == resource.api_version())
        && managed.sets.get(identifier).is_none_or(is_stripped)
}

/// Returns the managers after a change, by changing only the sets that it affects: mostly none. It gives what [`Updater::update`] gives.
fn change_owners(
    mut managed: Managed,
    changes: &Comparison,
    identifier: String,
    version: &str,
    writer: &Writer,
) -> Managed {
    let Comparison { removed, modified, added } = changes;
    let written =
        if added.is_empty() { modified.difference(&STRIPPED) } else { modified.union(added).difference(&STRIPPED) };
    for (other, owned) in &mut managed.sets {
        let lost: &[&FieldSet] = if *other == identifier { &[removed] } else { &[removed, modified, added] };
        for lost in lost {
            if !owned.set.is_disjoint(lost) {
                owned.set = owned.set.difference(lost);
            }
        }
    }
    if !written.is_empty() {
        let new = || ManagedSet { set: FieldSet::new(), version: version.to_owned(), applied: false };
        let own = managed.sets.entry(identifier.clone()).or_insert_with(new);
        if own.set.is_empty() {
            own.set = written;
        } else if !written.is_subset(&own.set) {
            own.set = own.set.union(&written);
        }
        managed.times.insert(identifier, writer.time.clone());
    }
    managed.sets.retain(|_, owned| !owned.set.is_empty());
    cap(&mut managed);
    managed
}

/// Returns an object without its entries.
pub(super) fn without_entries(object: &Value) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    // Entries are larger than most objects, so they are not copied first.
    let part = |name: &String, value: &Value| match value {
        Value::Object(metadata) if name == "metadata" => {
            let others = metadata.iter().filter(|(name, _)| *name != "managedFields");
            others.map(|(name, value)| (name.clone(), value.clone())).collect()
        }
        value => value.clone(),
    };
    fields.iter().map(|(name, value)| (name.clone(), part(name, value))).collect()
}

/// Fields that no manager owns.
pub(super) static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    let paths = [
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ];
    paths.iter().map(|path| path.split('.').map(PathElement::field).collect::<Vec<_>>()).collect()
});

/// The manager of a write while its changes are computed.
pub(super) const CURRENT: &str = "current-operation";

//! The owners of fields after a create, update or patch.

use std::sync::LazyLock;

use klient_core::fields::{Duplicates, FieldSet, ManagedSet, PathElement, Typed, Updater};
use serde_json::Value;

use super::{
    Writer,
    cap::cap,
    entries::{Identity, Managed, is_reset},
    schema,
    versions::Versions,
};
use crate::{
    metadata,
    registry::{Groups, Resource},
};

/// Returns the entries of an object after a write that is not an apply.
///
/// `live` is the stored object, or an empty one for a create; both objects are in the version of the request. An object that does not
/// fit its schema has no entries, as on the real server.
pub(crate) fn update(
    groups: &Groups,
    resource: &Resource,
    live: &Value,
    new: &Value,
    writer: &Writer,
) -> Option<Value> {
    let live_entries = &live["metadata"]["managedFields"];
    let entries = &new["metadata"]["managedFields"];
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
    if managed.sets.is_empty() && !metadata::text(live, "uid").is_empty() {
        return None;
    }
    update_managed(groups, resource, live, new, managed, writer)?.encode()
}

/// Returns the managers after a write that is not an apply.
pub(super) fn update_managed(
    groups: &Groups,
    resource: &Resource,
    live: &Value,
    new: &Value,
    managed: Managed,
    writer: &Writer,
) -> Option<Managed> {
    let schema = schema::of(resource)?;
    let typed = |object: &Value| {
        let object = without_entries(object);
        Typed::new(&schema.schema, schema.root, object, Duplicates::Allowed).ok()
    };
    let (live, new) = (typed(live)?, typed(new)?);
    let version = resource.api_version();
    let versions = Versions { groups, resource };
    let ignored = versions.ignored(&writer.subresource, &managed.sets);
    let updater = Updater { converter: &versions, ignored: &ignored };
    let Managed { sets, times } = managed;
    let sets = updater.update(&live, &new, &version, sets, CURRENT).ok()?;
    let mut managed = Managed { sets, times };
    if let Some(current) = managed.sets.remove(CURRENT) {
        let set = current.set.difference(&STRIPPED);
        if !set.is_empty() {
            let identifier = Identity::update(&writer.manager, &version, &writer.subresource).identifier();
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

/// Returns an object without its entries.
pub(super) fn without_entries(object: &Value) -> Value {
    let mut object = object.clone();
    super::take_entries(&mut object);
    object
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

//! Entries of an object as its subresource `scale` shows them, and back.

use std::collections::HashMap;

use klient_core::fields::{FieldSet, ManagedSet, PathElement};
use serde_json::Value;

use super::entries::Managed;
use crate::registry::{Groups, Resource, Schema};

/// The path of an object's replicas, by version. A version without a scale has none.
pub(crate) struct Replicas {
    version: String,
    paths: HashMap<String, Option<Vec<PathElement>>>,
}

impl Replicas {
    /// Returns the paths of a kind, in all of its versions.
    pub(crate) fn of(groups: &Groups, resource: &Resource) -> Self {
        let split = |path: &str| path.trim_start_matches('.').split('.').map(PathElement::field).collect();
        let versions = groups.versions.iter().flat_map(|version| &version.resources);
        let same = versions.filter(|other| other.table == resource.table && other.kind == resource.kind);
        let path = |resource: &Resource| match &resource.schema {
            Schema::BuiltIn(_) => Some(split(".spec.replicas")),
            Schema::Custom(custom) => custom.scale.as_ref().map(|scale| split(&scale.spec)),
        };
        let paths = same.map(|resource| (resource.api_version(), path(resource))).collect();
        Self { version: resource.api_version(), paths }
    }

    fn path(&self, version: &str) -> Option<&[PathElement]> {
        self.paths.get(version)?.as_deref()
    }

    /// Returns the entries of the scale: those of the object that own its replicas.
    pub(crate) fn to_scale(&self, entries: &Value) -> Option<Value> {
        let parent = Managed::decode(entries).ok()?;
        let mut scale = Managed::default();
        for (identifier, managed) in parent.sets {
            if self.path(&managed.version).is_some_and(|path| managed.set.contains(path)) {
                if let Some(time) = parent.times.get(&identifier) {
                    scale.times.insert(identifier.clone(), time.clone());
                }
                let managed = ManagedSet { set: in_scale(), version: SCALE.to_owned(), applied: managed.applied };
                scale.sets.insert(identifier, managed);
            }
        }
        scale.encode()
    }

    /// Returns the entries of the object, given those of its scale after a write.
    pub(crate) fn to_parent(&self, entries: &Value, scale_entries: &Value) -> Option<Value> {
        let parent = Managed::decode(entries).ok()?;
        let mut scale = Managed::decode(scale_entries).ok()?.sets;
        let mut out = Managed::default();
        let mut keep = |identifier: &str, managed: ManagedSet| {
            if let Some(time) = parent.times.get(identifier) {
                out.times.insert(identifier.to_owned(), time.clone());
            }
            out.sets.insert(identifier.to_owned(), managed);
        };
        for (identifier, managed) in &parent.sets {
            let Some(path) = self.paths.get(&managed.version) else { continue };
            match path.as_deref().filter(|path| managed.set.contains(path)) {
                // Another manager has taken the replicas.
                Some(path) if scale.remove(identifier).is_none() => {
                    let path: FieldSet = [path.to_vec()].into_iter().collect();
                    let set = managed.set.difference(&path);
                    if !set.is_empty() {
                        keep(identifier, ManagedSet { set, ..managed.clone() });
                    }
                }
                _ => keep(identifier, managed.clone()),
            }
        }
        let replicas: Vec<PathElement> = ["spec", "replicas"].map(PathElement::field).to_vec();
        let path = self.path(&self.version).unwrap_or_default();
        for (identifier, managed) in scale.into_iter().filter(|(_, managed)| managed.set.contains(&replicas)) {
            let set: FieldSet = [path.to_vec()].into_iter().collect();
            keep(&identifier, ManagedSet { set, version: self.version.clone(), applied: managed.applied });
        }
        out.encode()
    }
}

fn in_scale() -> FieldSet {
    [["spec", "replicas"].map(PathElement::field).to_vec()].into_iter().collect()
}

const SCALE: &str = "autoscaling/v1";

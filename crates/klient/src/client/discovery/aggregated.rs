//! The aggregated format of discovery, with all groups in one `APIGroupDiscoveryList`.
//!
//! Versions `v2` and `v2beta1` have the same structure. It is read from servers and the disk cache, and written only to
//! the latter. Invalid parts are skipped.

use std::sync::Arc;

use klient_core::{ApiResource, GroupVersion, GroupVersionKind, Scope};
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    apis::{ApiGroup, ApiGroupVersion, DiscoveryFailure},
    served::{ServedResource, ServedSubresource},
};

/// The kind of the document.
pub(super) const KIND: &str = "APIGroupDiscoveryList";

#[derive(Deserialize, Serialize)]
pub(super) struct GroupList {
    #[serde(default, deserialize_with = "null_is_default")]
    items: Vec<Group>,
}

#[derive(Deserialize, Serialize)]
struct Group {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: Named,
    #[serde(default, deserialize_with = "null_is_default")]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize, Serialize)]
struct Named {
    #[serde(default, deserialize_with = "null_is_default")]
    name: String,
}

#[derive(Deserialize, Serialize)]
struct Version {
    #[serde(default, deserialize_with = "null_is_default")]
    version: String,
    #[serde(default, deserialize_with = "null_is_default")]
    resources: Vec<Resource>,
    #[serde(default, deserialize_with = "null_is_default")]
    freshness: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(default, deserialize_with = "null_is_default")]
    resource: String,
    response_kind: Option<Kind>,
    #[serde(default, deserialize_with = "null_is_default")]
    scope: String,
    #[serde(default, deserialize_with = "null_is_default")]
    singular_resource: String,
    #[serde(default, deserialize_with = "null_is_default")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    short_names: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    categories: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Subresource {
    #[serde(default, deserialize_with = "null_is_default")]
    subresource: String,
    response_kind: Option<Kind>,
    #[serde(default, deserialize_with = "null_is_default")]
    verbs: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Kind {
    #[serde(default, deserialize_with = "null_is_default")]
    group: String,
    #[serde(default, deserialize_with = "null_is_default")]
    version: String,
    #[serde(default, deserialize_with = "null_is_default")]
    kind: String,
}

impl GroupList {
    /// Creates the document of these groups and failures.
    pub(super) fn new(groups: &[Arc<ApiGroup>], failures: &[DiscoveryFailure]) -> Self {
        let mut items: Vec<Group> = groups
            .iter()
            .map(|group| Group {
                metadata: Named { name: group.name.clone() },
                versions: group.versions.iter().map(Version::new).collect(),
            })
            .collect();
        for failure in failures {
            let (name, version) = (failure.group_version.group.as_ref(), failure.group_version.version.to_string());
            let stale = Version { version, resources: Vec::new(), freshness: STALE.to_owned() };
            match items.iter_mut().find(|group| group.metadata.name == name) {
                Some(group) => group.versions.push(stale),
                None => items.push(Group { metadata: Named { name: name.to_owned() }, versions: vec![stale] }),
            }
        }
        Self { items }
    }

    /// Returns the groups and failures of the document.
    pub(super) fn read(self) -> (Vec<Arc<ApiGroup>>, Vec<DiscoveryFailure>) {
        let mut groups = Vec::with_capacity(self.items.len());
        let mut failures = Vec::new();
        for group in self.items {
            let name = group.metadata.name;
            let mut versions = Vec::with_capacity(group.versions.len());
            for version in group.versions.into_iter().filter(|version| !version.version.is_empty()) {
                let group_version = GroupVersion::new(name.clone(), version.version);
                if version.freshness == STALE {
                    failures.push(DiscoveryFailure::stale(group_version));
                    continue;
                }
                let resources = version.resources.into_iter().filter_map(|resource| resource.read(&group_version));
                versions.push(ApiGroupVersion { resources: resources.collect(), group_version });
            }
            if !versions.is_empty() {
                groups.push(Arc::new(ApiGroup { name, versions }));
            }
        }
        (groups, failures)
    }
}

impl Version {
    fn new(version: &ApiGroupVersion) -> Self {
        Self {
            version: version.group_version.version.to_string(),
            resources: version.resources.iter().map(Resource::new).collect(),
            freshness: "Current".to_owned(),
        }
    }
}

impl Resource {
    fn new(served: &ServedResource) -> Self {
        Self {
            resource: served.resource.plural.to_string(),
            response_kind: served.has_objects().then(|| Kind::new(&served.response_kind)),
            scope: if served.resource.is_namespaced() { NAMESPACED } else { "Cluster" }.to_owned(),
            singular_resource: served.singular.clone(),
            verbs: served.verbs.clone(),
            short_names: served.short_names.clone(),
            categories: served.categories.clone(),
            subresources: served.subresources.iter().map(Subresource::new).collect(),
        }
    }

    fn read(self, group_version: &GroupVersion) -> Option<ServedResource> {
        if self.resource.is_empty() {
            return None;
        }
        let response_kind = kind(self.response_kind, group_version);
        let subresources: Vec<_> =
            self.subresources.into_iter().filter_map(|subresource| subresource.read(group_version)).collect();
        if response_kind.kind.is_empty() && subresources.is_empty() {
            return None;
        }
        let scope = if self.scope == NAMESPACED { Scope::Namespaced } else { Scope::Cluster };
        let gvk = group_version.clone().with_kind(response_kind.kind.clone());
        Some(ServedResource {
            singular: singular(self.singular_resource, &gvk),
            resource: ApiResource::new(gvk, self.resource, scope),
            response_kind,
            short_names: self.short_names,
            categories: self.categories,
            verbs: self.verbs,
            subresources,
        })
    }
}

impl Subresource {
    fn new(served: &ServedSubresource) -> Self {
        Self {
            subresource: served.name.clone(),
            response_kind: Some(Kind::new(&served.response_kind)),
            verbs: served.verbs.clone(),
        }
    }

    fn read(self, group_version: &GroupVersion) -> Option<ServedSubresource> {
        let response_kind = kind(self.response_kind, group_version);
        let served = !self.subresource.is_empty();
        served.then_some(ServedSubresource { name: self.subresource, response_kind, verbs: self.verbs })
    }
}

impl Kind {
    fn new(kind: &GroupVersionKind) -> Self {
        Self { group: kind.group.to_string(), version: kind.version.to_string(), kind: kind.kind.to_string() }
    }
}

/// Returns a kind. Without a version, it has the version of its resource.
fn kind(kind: Option<Kind>, group_version: &GroupVersion) -> GroupVersionKind {
    match kind {
        Some(kind) if !kind.version.is_empty() => GroupVersionKind::new(kind.group, kind.version, kind.kind),
        kind => group_version.clone().with_kind(kind.map(|kind| kind.kind).unwrap_or_default()),
    }
}

/// Returns the singular name. Old servers do not send it; for all their kinds, it is the kind in lower case.
pub(super) fn singular(said: String, gvk: &GroupVersionKind) -> String {
    if said.is_empty() { gvk.kind.to_lowercase() } else { said }
}

/// Deserializes `null` as the default, because Go encodes an empty list as `null`.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

const STALE: &str = "Stale";
const NAMESPACED: &str = "Namespaced";

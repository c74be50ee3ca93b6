//! The unaggregated format of discovery: a list of versions or groups, then one `APIResourceList` per group version.

use std::collections::HashMap;

use klient_core::{ApiResource, GroupVersion, GroupVersionKind, Scope};
use serde::Deserialize;

use super::{
    aggregated::{null_is_default, singular},
    apis::ApiGroupVersion,
    served::{ServedResource, ServedSubresource},
};

/// `/api`: the versions of the core group.
#[derive(Deserialize)]
pub(super) struct Versions {
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) versions: Vec<String>,
}

/// `/apis`: all other groups.
#[derive(Deserialize)]
pub(super) struct GroupList {
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    #[serde(default, deserialize_with = "null_is_default")]
    name: String,
    #[serde(default, deserialize_with = "null_is_default")]
    versions: Vec<Version>,
    #[serde(default, deserialize_with = "null_is_default")]
    preferred_version: Version,
}

#[derive(Clone, Default, Deserialize, PartialEq)]
struct Version {
    #[serde(default, deserialize_with = "null_is_default")]
    version: String,
}

/// `/api/v1` and `/apis/apps/v1`: the resources of a group version, subresources among them as `pods/log`.
#[derive(Deserialize)]
pub(super) struct ResourceList {
    #[serde(default, deserialize_with = "null_is_default")]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(default, deserialize_with = "null_is_default")]
    name: String,
    #[serde(default, deserialize_with = "null_is_default")]
    singular_name: String,
    #[serde(default, deserialize_with = "null_is_default")]
    namespaced: bool,
    #[serde(default, deserialize_with = "null_is_default")]
    group: String,
    #[serde(default, deserialize_with = "null_is_default")]
    version: String,
    #[serde(default, deserialize_with = "null_is_default")]
    kind: String,
    #[serde(default, deserialize_with = "null_is_default")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    short_names: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    categories: Vec<String>,
}

/// Returns the path of the resource list of a group version.
pub(super) fn path(version: &GroupVersion) -> String {
    if version.group.is_empty() { format!("/api/{version}") } else { format!("/apis/{version}") }
}

impl Versions {
    /// Returns the group versions, the preferred one first.
    pub(super) fn group_versions(self) -> Vec<GroupVersion> {
        self.versions.into_iter().filter(|name| !name.is_empty()).map(|name| GroupVersion::new("", name)).collect()
    }
}

impl Group {
    /// Returns the group versions, the preferred one first.
    pub(super) fn group_versions(self) -> Vec<GroupVersion> {
        let mut versions = self.versions;
        if let Some(position) = versions.iter().position(|version| *version == self.preferred_version) {
            versions[..=position].rotate_right(1);
        }
        let versions = versions.into_iter().map(|version| version.version).filter(|name| !name.is_empty());
        versions.map(|name| GroupVersion::new(self.name.clone(), name)).collect()
    }
}

impl ResourceList {
    /// Returns the resources, each with its subresources.
    pub(super) fn read(self, group_version: GroupVersion) -> ApiGroupVersion {
        let (under, resources): (Vec<Resource>, Vec<Resource>) =
            self.resources.into_iter().filter(|resource| !resource.name.is_empty()).partition(|r| r.name.contains('/'));
        let mut served: Vec<ServedResource> =
            resources.into_iter().map(|resource| resource.read(&group_version)).collect();
        let mut places: HashMap<String, usize> =
            served.iter().enumerate().map(|(place, served)| (served.resource.plural.to_string(), place)).collect();
        for resource in under {
            let Some((parent, name)) = resource.name.split_once('/') else { continue };
            let place = *places.entry(parent.to_owned()).or_insert_with(|| {
                served.push(parent_of(&resource, parent, &group_version));
                served.len() - 1
            });
            served[place].subresources.push(ServedSubresource {
                name: name.to_owned(),
                response_kind: resource.response_kind(&group_version),
                verbs: resource.verbs,
            });
        }
        ApiGroupVersion { group_version, resources: served }
    }
}

impl Resource {
    fn read(self, group_version: &GroupVersion) -> ServedResource {
        let response_kind = self.response_kind(group_version);
        let gvk = group_version.clone().with_kind(self.kind);
        ServedResource {
            response_kind,
            singular: singular(self.singular_name, &gvk),
            resource: ApiResource::new(gvk, self.name, scope(self.namespaced)),
            short_names: self.short_names,
            categories: self.categories,
            verbs: self.verbs,
            subresources: Vec::new(),
        }
    }

    fn response_kind(&self, group_version: &GroupVersion) -> GroupVersionKind {
        if self.version.is_empty() {
            return group_version.clone().with_kind(self.kind.clone());
        }
        GroupVersionKind::new(self.group.clone(), self.version.clone(), self.kind.clone())
    }
}

/// Creates the resource of a subresource that is served without its parent.
fn parent_of(subresource: &Resource, plural: &str, group_version: &GroupVersion) -> ServedResource {
    let gvk = group_version.clone().with_kind("");
    ServedResource {
        resource: ApiResource::new(gvk.clone(), plural.to_owned(), scope(subresource.namespaced)),
        response_kind: gvk,
        singular: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        subresources: Vec::new(),
    }
}

fn scope(namespaced: bool) -> Scope {
    if namespaced { Scope::Namespaced } else { Scope::Cluster }
}

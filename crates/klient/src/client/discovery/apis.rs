//! All that a server offers, in its own order of preference, and what could not be learnt.

use std::{fmt, sync::Arc};

use klient_core::{GroupVersion, GroupVersionResource};

use super::served::ServedResource;
use crate::{Error, ErrorKind};

/// What a server offers: groups, their versions and resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerApis {
    /// The groups, in the server's order of priority; the core group is the first.
    pub groups: Vec<Arc<ApiGroup>>,
    /// The group versions of which nothing could be learnt: most often an aggregated server is down.
    pub failures: Vec<DiscoveryFailure>,
}

/// A group of APIs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiGroup {
    /// The name; empty for the core group.
    pub name: String,
    /// The versions, the preferred one first. There is at least one.
    pub versions: Vec<ApiGroupVersion>,
}

/// A version of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiGroupVersion {
    /// The group and the version.
    pub group_version: GroupVersion,
    /// What it offers.
    pub resources: Vec<ServedResource>,
}

/// A group version of which nothing could be learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryFailure {
    /// The group and the version.
    pub group_version: GroupVersion,
    /// What sort of failure it is; [`ErrorKind::Unavailable`] if the server itself could not learn it.
    pub kind: ErrorKind,
    /// Why.
    pub message: String,
}

impl ServerApis {
    /// The group of that name; the core group's is empty.
    pub fn group(&self, name: &str) -> Option<&ApiGroup> {
        self.groups.iter().find(|group| group.name == name).map(AsRef::as_ref)
    }

    /// That version of a group.
    pub fn version(&self, version: &GroupVersion) -> Option<&ApiGroupVersion> {
        self.group(&version.group)?.version(&version.version)
    }

    /// A resource of one version.
    pub fn resource(&self, resource: &GroupVersionResource) -> Option<&ServedResource> {
        self.version(&resource.group_version())?.resource(&resource.resource)
    }

    /// All versions of all groups.
    pub fn group_versions(&self) -> impl Iterator<Item = &GroupVersion> {
        self.versions().map(|version| &version.group_version)
    }

    /// Every resource in every version.
    pub fn resources(&self) -> impl Iterator<Item = &ServedResource> {
        self.versions().flat_map(|version| &version.resources)
    }

    /// Every resource once: in the preferred version of its group, or the first that has it.
    #[doc(alias = "ServerPreferredResources")]
    pub fn preferred_resources(&self) -> impl Iterator<Item = &ServedResource> {
        self.groups.iter().flat_map(|group| group.preferred_resources())
    }

    /// The preferred resources whose objects live in namespaces.
    #[doc(alias = "ServerPreferredNamespacedResources")]
    pub fn namespaced_preferred_resources(&self) -> impl Iterator<Item = &ServedResource> {
        self.preferred_resources().filter(|served| served.resource.is_namespaced())
    }

    /// Nothing, if all could be learnt.
    ///
    /// # Errors
    ///
    /// Names the group versions that could not.
    #[doc(alias = "ErrGroupDiscoveryFailed")]
    pub fn check_complete(&self) -> Result<(), Error> {
        let Some(first) = self.failures.first() else { return Ok(()) };
        let failures: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        Err(Error::new(first.kind, format!("the server's APIs are not all known: {}", failures.join("; "))))
    }

    fn versions(&self) -> impl Iterator<Item = &ApiGroupVersion> {
        self.groups.iter().flat_map(|group| &group.versions)
    }
}

impl ApiGroup {
    /// The version that the server prefers.
    pub fn preferred_version(&self) -> Option<&ApiGroupVersion> {
        self.versions.first()
    }

    /// The version of that name.
    pub fn version(&self, name: &str) -> Option<&ApiGroupVersion> {
        self.versions.iter().find(|version| version.group_version.version == name)
    }

    fn preferred_resources(&self) -> impl Iterator<Item = &ServedResource> {
        self.versions.iter().enumerate().flat_map(move |(position, version)| {
            let better = &self.versions[..position];
            let is_new = move |served: &&ServedResource| {
                better.iter().all(|version| version.resource(&served.resource.plural).is_none())
            };
            version.resources.iter().filter(is_new)
        })
    }
}

impl ApiGroupVersion {
    /// The resource of that plural.
    pub fn resource(&self, plural: &str) -> Option<&ServedResource> {
        self.resources.iter().find(|served| served.resource.plural == plural)
    }
}

impl DiscoveryFailure {
    pub(super) fn new(group_version: GroupVersion, error: &Error) -> Self {
        Self { group_version, kind: error.kind(), message: error.to_string() }
    }

    /// What a server says of an aggregated server that it cannot reach.
    pub(super) fn stale(group_version: GroupVersion) -> Self {
        let message = "the server could not bring its list of resources up to date".to_owned();
        Self { group_version, kind: ErrorKind::Unavailable, message }
    }
}

impl fmt::Display for DiscoveryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group_version, self.message)
    }
}

//! The groups, versions and resources of a server in its order of preference, and the group versions that failed.

use std::{fmt, sync::Arc};

use klient_core::{GroupVersion, GroupVersionResource};

use super::served::ServedResource;
use crate::{Error, ErrorKind};

/// The groups, versions and resources of a server.
#[doc(alias = "ServerGroupsAndResources")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerApis {
    /// The groups, in the server's order of priority; the core group is the first.
    pub groups: Vec<Arc<ApiGroup>>,
    /// The group versions that could not be read, most often because an aggregated server is down.
    pub failures: Vec<DiscoveryFailure>,
}

/// An API group.
#[doc(alias = "APIGroup")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiGroup {
    /// The name, which is empty for the core group.
    pub name: String,
    /// The versions, the preferred one first. There is at least one.
    pub versions: Vec<ApiGroupVersion>,
}

/// A version of a group.
#[doc(alias = "APIResourceList")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiGroupVersion {
    /// The group and the version.
    pub group_version: GroupVersion,
    /// The resources.
    pub resources: Vec<ServedResource>,
}

/// A group version that could not be read.
#[doc(alias = "ErrGroupDiscoveryFailed")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryFailure {
    /// The group and the version.
    pub group_version: GroupVersion,
    /// The kind of failure; [`ErrorKind::Unavailable`] if the server itself could not read it.
    pub kind: ErrorKind,
    /// The reason.
    pub message: String,
}

impl ServerApis {
    /// Returns the group of that name. The core group's name is empty.
    pub fn group(&self, name: &str) -> Option<&ApiGroup> {
        self.groups.iter().find(|group| group.name == name).map(AsRef::as_ref)
    }

    /// Returns a version of a group.
    pub fn version(&self, version: &GroupVersion) -> Option<&ApiGroupVersion> {
        self.group(&version.group)?.version(&version.version)
    }

    /// Returns a resource of one version.
    pub fn resource(&self, resource: &GroupVersionResource) -> Option<&ServedResource> {
        self.version(&resource.group_version())?.resource(&resource.resource)
    }

    /// Iterates over all versions of all groups.
    pub fn group_versions(&self) -> impl Iterator<Item = &GroupVersion> {
        self.versions().map(|version| &version.group_version)
    }

    /// Iterates over every resource in every version.
    pub fn resources(&self) -> impl Iterator<Item = &ServedResource> {
        self.versions().flat_map(|version| &version.resources)
    }

    /// Iterates over every resource once: in the preferred version of its group, or in the first version that has it.
    #[doc(alias = "ServerPreferredResources")]
    pub fn preferred_resources(&self) -> impl Iterator<Item = &ServedResource> {
        self.groups.iter().flat_map(|group| group.preferred_resources())
    }

    /// Iterates over the preferred resources that are namespaced.
    #[doc(alias = "ServerPreferredNamespacedResources")]
    pub fn namespaced_preferred_resources(&self) -> impl Iterator<Item = &ServedResource> {
        self.preferred_resources().filter(|served| served.resource.is_namespaced())
    }

    /// Checks that all group versions could be read.
    ///
    /// # Errors
    ///
    /// Returns an error that names the failed group versions.
    #[doc(alias = "ErrGroupDiscoveryFailed")]
    pub fn check_complete(&self) -> Result<(), Error> {
        let Some(first) = self.failures.first() else { return Ok(()) };
        let failures: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        Err(Error::new(first.kind, format!("discovery incomplete: {}", failures.join("; "))))
    }

    fn versions(&self) -> impl Iterator<Item = &ApiGroupVersion> {
        self.groups.iter().flat_map(|group| &group.versions)
    }
}

impl ApiGroup {
    /// Returns the version that the server prefers.
    pub fn preferred_version(&self) -> Option<&ApiGroupVersion> {
        self.versions.first()
    }

    /// Returns the version of that name.
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
    /// Returns the resource with that plural name.
    pub fn resource(&self, plural: &str) -> Option<&ServedResource> {
        self.resources.iter().find(|served| served.resource.plural == plural)
    }
}

impl DiscoveryFailure {
    pub(super) fn new(group_version: GroupVersion, error: &Error) -> Self {
        Self { group_version, kind: error.kind(), message: error.to_string() }
    }

    /// Creates the failure of an aggregated server that the server could not reach.
    pub(super) fn stale(group_version: GroupVersion) -> Self {
        let message = "the server has a stale list of resources".to_owned();
        Self { group_version, kind: ErrorKind::Unavailable, message }
    }
}

impl fmt::Display for DiscoveryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group_version, self.message)
    }
}

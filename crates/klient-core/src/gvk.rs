//! Names of kinds and resources: group, version, kind or plural, and types without one of these parts.
//!
//! The core group is the empty string. Fields are `Cow<'static, str>`, so that names from the constants of a type are
//! created and cloned without allocation. Nothing here checks that a name exists on a server.
//! In client-go: `runtime/schema`.

use std::{any::Any, borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{DynamicObject, Resource};

type Name = Cow<'static, str>;

/// An API group and one of its versions: `apps/v1`, or `v1` for the core group.
///
/// ```
/// use klient_core::GroupVersion;
///
/// let apps: GroupVersion = "apps/v1".parse()?;
/// assert_eq!((&*apps.group, &*apps.version), ("apps", "v1"));
/// assert_eq!(apps.to_string(), "apps/v1");
/// assert_eq!(GroupVersion::new("", "v1").to_string(), "v1");
/// # Ok::<(), klient_core::ParseGroupVersionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersion {
    /// The group; empty for the core group.
    pub group: Name,
    /// The version, such as `v1` or `v1beta1`.
    pub version: Name,
}

/// A kind in one version of its group, as in an object's type fields.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient_core::GroupVersionKind;
///
/// let gvk = GroupVersionKind::of::<Deployment>();
/// assert_eq!(gvk, GroupVersionKind::new("apps", "v1", "Deployment"));
/// assert_eq!(gvk.group_version().to_string(), "apps/v1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// The group; empty for the core group.
    pub group: Name,
    /// The version.
    pub version: Name,
    /// The kind, in camel case: `Deployment`.
    pub kind: Name,
}

/// A resource in one version of its group, as in a request path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersionResource {
    /// The group; empty for the core group.
    pub group: Name,
    /// The version.
    pub version: Name,
    /// The plural in lower case: `deployments`.
    pub resource: Name,
}

/// A kind without a version, as used to match owners and in validation errors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupKind {
    /// The group; empty for the core group.
    pub group: Name,
    /// The kind, in camel case.
    pub kind: Name,
}

/// A resource without a version, printed as `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupResource {
    /// The group; empty for the core group.
    pub group: Name,
    /// The plural in lower case.
    pub resource: Name,
}

impl GroupVersion {
    /// Creates the name of a group version. The core group is empty.
    pub fn new(group: impl Into<Name>, version: impl Into<Name>) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// Returns the kind of that name in this version.
    pub fn with_kind(self, kind: impl Into<Name>) -> GroupVersionKind {
        GroupVersionKind { group: self.group, version: self.version, kind: kind.into() }
    }

    /// Returns the resource of that plural in this version.
    pub fn with_resource(self, resource: impl Into<Name>) -> GroupVersionResource {
        GroupVersionResource { group: self.group, version: self.version, resource: resource.into() }
    }
}

impl GroupVersionKind {
    /// Creates the name of a kind. The core group is empty.
    pub fn new(group: impl Into<Name>, version: impl Into<Name>, kind: impl Into<Name>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Returns the kind of a type. All parts are empty for [`DynamicObject`]; see [`of_object`](Self::of_object).
    pub fn of<K: k8s_openapi::Resource>() -> Self {
        Self::new(K::GROUP, K::VERSION, K::KIND)
    }

    /// Returns the kind of one object: its type's, or that in the type fields of a [`DynamicObject`].
    ///
    /// Returns `None` if the type does not know its kind and the object has no valid type fields.
    #[doc(alias = "GVKForObject")]
    pub fn of_object<K: Resource>(object: &K) -> Option<Self> {
        if !K::KIND.is_empty() {
            return Some(Self::of::<K>());
        }
        let dynamic = (object as &dyn Any).downcast_ref::<DynamicObject>()?;
        dynamic.types.as_ref()?.gvk().ok().filter(|gvk| !gvk.kind.is_empty() && !gvk.version.is_empty())
    }

    /// Returns the group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// Returns the kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// Returns the `apiVersion` of objects of this kind.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version).into_owned()
    }
}

impl GroupVersionResource {
    /// Creates the name of a resource from its plural. The core group is empty.
    pub fn new(group: impl Into<Name>, version: impl Into<Name>, resource: impl Into<Name>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// Returns the group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// Returns the resource without its version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

impl GroupKind {
    /// Creates the name of a kind. The core group is empty.
    pub fn new(group: impl Into<Name>, kind: impl Into<Name>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// Returns this kind in one version.
    pub fn with_version(self, version: impl Into<Name>) -> GroupVersionKind {
        GroupVersionKind { group: self.group, version: version.into(), kind: self.kind }
    }
}

impl GroupResource {
    /// Creates the name of a resource from its plural. The core group is empty.
    pub fn new(group: impl Into<Name>, resource: impl Into<Name>) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }

    /// Returns this resource in one version.
    pub fn with_version(self, version: impl Into<Name>) -> GroupVersionResource {
        GroupVersionResource { group: self.group, version: version.into(), resource: self.resource }
    }

    /// Returns whether the name is empty, as in an error that is not about a resource.
    pub fn is_empty(&self) -> bool {
        self.group.is_empty() && self.resource.is_empty()
    }
}

impl FromStr for GroupVersion {
    type Err = ParseGroupVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (group, version) = text.split_once('/').unwrap_or(("", text));
        let why = if text.is_empty() {
            "expected `version` or `group/version`"
        } else if version.contains('/') {
            "more than one `/`"
        } else if version.is_empty() {
            "the version is empty"
        } else if group.is_empty() && text.contains('/') {
            "the group before `/` is empty"
        } else {
            return Ok(Self::new(group.to_owned(), version.to_owned()));
        };
        Err(ParseGroupVersionError { text: text.to_owned(), why })
    }
}

/// Parses the format of [`Display`](fmt::Display): `apps/v1, Kind=Deployment`.
impl FromStr for GroupVersionKind {
    type Err = ParseGroupVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (version, kind) = split_qualified(text, ", Kind=", "expected `group/version, Kind=Kind`")?;
        Ok(version.with_kind(kind))
    }
}

/// Parses the format of [`Display`](fmt::Display): `apps/v1, Resource=deployments`.
impl FromStr for GroupVersionResource {
    type Err = ParseGroupVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (version, resource) = split_qualified(text, ", Resource=", "expected `group/version, Resource=resources`")?;
        Ok(version.with_resource(resource))
    }
}

fn split_qualified(
    text: &str,
    separator: &str,
    why: &'static str,
) -> Result<(GroupVersion, String), ParseGroupVersionError> {
    match text.split_once(separator) {
        // The core group is printed as an empty group: `/v1, Kind=Pod`.
        Some((version, name)) if !name.is_empty() => {
            Ok((version.strip_prefix('/').unwrap_or(version).parse()?, name.to_owned()))
        }
        _ => Err(ParseGroupVersionError { text: text.to_owned(), why }),
    }
}

impl FromStr for GroupResource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.into())
    }
}

impl FromStr for GroupKind {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.into())
    }
}

/// Parses `deployments.apps` or `pods`. Every text is valid.
impl From<&str> for GroupResource {
    fn from(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self::new(group.to_owned(), resource.to_owned())
    }
}

/// Parses `Deployment.apps` or `Pod`. Every text is valid.
impl From<&str> for GroupKind {
    fn from(text: &str) -> Self {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        Self::new(group.to_owned(), kind.to_owned())
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&api_version(&self.group, &self.version))
    }
}

/// Prints `apps/v1, Kind=Deployment`, as Kubernetes' own messages do.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// Prints `apps/v1, Resource=deployments`, as Kubernetes' own messages do.
impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, &self.kind, &self.group)
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, &self.resource, &self.group)
    }
}

impl From<GroupVersionKind> for GroupKind {
    fn from(gvk: GroupVersionKind) -> Self {
        Self { group: gvk.group, kind: gvk.kind }
    }
}

impl From<GroupVersionKind> for GroupVersion {
    fn from(gvk: GroupVersionKind) -> Self {
        Self { group: gvk.group, version: gvk.version }
    }
}

impl From<GroupVersionResource> for GroupResource {
    fn from(gvr: GroupVersionResource) -> Self {
        Self { group: gvr.group, resource: gvr.resource }
    }
}

impl From<GroupVersionResource> for GroupVersion {
    fn from(gvr: GroupVersionResource) -> Self {
        Self { group: gvr.group, version: gvr.version }
    }
}

/// Returns `group/version`, or the version alone for the core group.
pub(crate) fn api_version<'a>(group: &str, version: &'a str) -> Cow<'a, str> {
    if group.is_empty() { Cow::Borrowed(version) } else { Cow::Owned(format!("{group}/{version}")) }
}

fn write_qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

/// An error of parsing an API version, or a kind or resource with one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseGroupVersionError {
    text: String,
    why: &'static str,
}

impl fmt::Display for ParseGroupVersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "API version {:?}: {}", self.text, self.why)
    }
}

impl std::error::Error for ParseGroupVersionError {}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kinds_and_resources_parse_what_they_print() {
        for kind in [GroupVersionKind::new("apps", "v1", "Deployment"), GroupVersionKind::new("", "v1", "Pod")] {
            assert_eq!(kind.to_string().parse(), Ok(kind.clone()));
            let json = serde_json::to_value(&kind).unwrap();
            assert_eq!(json["group"], *kind.group);
            assert_eq!(serde_json::from_value::<GroupVersionKind>(json).unwrap(), kind);
        }
        let deployments = GroupVersionResource::new("apps", "v1", "deployments");
        assert_eq!(deployments.to_string().parse(), Ok(deployments));
        for text in ["", "apps/v1", "apps/v1, Kind=", "a/b/c, Kind=X", ", Kind=X"] {
            assert!(text.parse::<GroupVersionKind>().is_err(), "{text}");
        }
        assert_eq!("Deployment.apps".parse(), Ok(GroupKind::new("apps", "Deployment")));
    }
    use crate::TypeMeta;

    #[test]
    fn group_version_prints_as_parsed() {
        for text in ["v1", "apps/v1", "networking.k8s.io/v1beta1"] {
            assert_eq!(text.parse::<GroupVersion>().unwrap().to_string(), text);
        }
        for text in ["pods", "deployments.apps", "ingresses.networking.k8s.io"] {
            assert_eq!(GroupResource::from(text).to_string(), text);
            assert_eq!(GroupKind::from(text).to_string(), text);
        }
    }

    #[test]
    fn group_version_parse_error_has_the_reason() {
        for (text, why) in [
            ("", "expected `version` or `group/version`"),
            ("/", "the version is empty"),
            ("apps/", "the version is empty"),
            ("/v1", "the group before `/` is empty"),
            ("a/b/c", "more than one `/`"),
        ] {
            let error = text.parse::<GroupVersion>().unwrap_err();
            assert_eq!(error.to_string(), format!("API version {text:?}: {why}"));
        }
    }

    #[test]
    fn kinds_print_as_in_kubernetes() {
        assert_eq!(GroupVersionKind::of::<Deployment>().to_string(), "apps/v1, Kind=Deployment");
        assert_eq!(GroupVersionKind::of::<Pod>().to_string(), "/v1, Kind=Pod");
        assert_eq!(GroupVersionResource::new("apps", "v1", "deployments").to_string(), "apps/v1, Resource=deployments");
        assert_eq!(GroupVersionKind::of::<Deployment>().group_kind().to_string(), "Deployment.apps");
        assert_eq!(GroupVersionKind::of::<Pod>().api_version(), "v1");
    }

    #[test]
    fn kind_of_a_dynamic_object_is_read_from_its_type_fields() {
        let mut object = DynamicObject::default();
        assert_eq!(GroupVersionKind::of_object(&object), None);
        object.types = Some(TypeMeta::new("example.com/v1", "Widget"));
        assert_eq!(GroupVersionKind::of_object(&object), Some(GroupVersionKind::new("example.com", "v1", "Widget")));
        object.types = Some(TypeMeta::new("not/a/version", "Widget"));
        assert_eq!(GroupVersionKind::of_object(&object), None);
        assert_eq!(GroupVersionKind::of_object(&Pod::default()), Some(GroupVersionKind::new("", "v1", "Pod")));
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_round_trips(text in ".{0,20}") {
            if let Ok(parsed) = text.parse::<GroupVersion>() {
                prop_assert_eq!(parsed.to_string(), text);
            }
        }
    }
}

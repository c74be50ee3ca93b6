//! Definitions of several versions, merged into one.

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Merges definitions of one version each into one definition, in which the version `stored` is the stored one.
///
/// The names, labels and annotations are those of the stored version's definition. It comes first, then the others from
/// the last to the first. [`Versions`](crate::custom::Versions) adds the conversion between the versions.
///
/// # Errors
///
/// Returns an error if there is no definition, if one has not exactly one version, if no version is called `stored`, or if
/// group, kind, plural or scope differ.
pub fn merge_crds(
    mut definitions: Vec<CustomResourceDefinition>,
    stored: &str,
) -> Result<CustomResourceDefinition, MergeError> {
    if definitions.is_empty() {
        return Err(MergeError::MissingCrds);
    }
    for definition in &definitions {
        match definition.spec.versions.len() {
            0 => return Err(MergeError::MissingVersions),
            1 => {}
            _ => return Err(MergeError::MultiVersionCrd),
        }
    }
    let name = |definition: &CustomResourceDefinition| definition.spec.versions[0].name.clone();
    let root = definitions.iter().position(|definition| name(definition) == stored);
    let mut root = definitions.remove(root.ok_or_else(|| MergeError::MissingRootVersion(stored.to_owned()))?);
    root.spec.versions[0].storage = true;
    while let Some(mut other) = definitions.pop() {
        let (a, b) = (&root.spec, &other.spec);
        let pairs = [
            ("group", &a.group, &b.group),
            ("kind", &a.names.kind, &b.names.kind),
            ("plural", &a.names.plural, &b.names.plural),
            ("scope", &a.scope, &b.scope),
        ];
        if let Some((property, ..)) = pairs.iter().find(|(_, a, b)| a != b) {
            return Err(MergeError::PropertyMismatch((*property).to_owned()));
        }
        if root.spec.versions.iter().any(|version| version.name == name(&other)) {
            return Err(MergeError::DuplicateVersion(name(&other)));
        }
        for mut version in other.spec.versions.drain(..) {
            version.storage = false;
            root.spec.versions.push(version);
        }
    }
    Ok(root)
}

/// An error of [`merge_crds`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// There is no definition.
    MissingCrds,
    /// No definition has the version that is to be stored.
    MissingRootVersion(String),
    /// A definition has no version.
    MissingVersions,
    /// A definition has several versions.
    MultiVersionCrd,
    /// Two definitions have the same version.
    DuplicateVersion(String),
    /// The definitions differ in a property that all versions share.
    PropertyMismatch(String),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingCrds => f.write_str("no definitions to merge"),
            Self::MissingRootVersion(version) => {
                write!(f, "no definition has version {version}, which is to be stored")
            }
            Self::MissingVersions => f.write_str("a definition to merge has no version"),
            Self::MultiVersionCrd => f.write_str("a definition to merge has several versions: merge one version each"),
            Self::DuplicateVersion(version) => write!(f, "two definitions have version {version}"),
            Self::PropertyMismatch(property) => write!(f, "the definitions to merge differ in {property}"),
        }
    }
}

impl std::error::Error for MergeError {}

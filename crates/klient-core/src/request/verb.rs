//! What a request does, in the words of Kubernetes' authorization and metrics.

use std::fmt;

/// What a request does to a resource.
///
/// HTTP methods do not tell reads of one object from reads of many, nor either from a watch; retries, timeouts and
/// metrics depend on it, so that each request carries its verb as an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many.
    List,
    /// Follows changes.
    Watch,
    /// Makes one.
    Create,
    /// Replaces one.
    Update,
    /// Changes a part of one, or applies.
    Patch,
    /// Deletes one.
    Delete,
    /// Deletes many.
    DeleteCollection,
}

impl Verb {
    /// The name in roles and metrics, such as `deletecollection`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether the request changes nothing, so that it may be sent again.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! The verb of a request, in the terms of Kubernetes' authorization and metrics.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The verb of a request.
///
/// HTTP methods do not distinguish reads of one object, reads of many and watches. Retries, timeouts and metrics depend
/// on the difference, so that each request has its verb as an extension. Serialized verbs are their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many objects.
    List,
    /// Watches changes.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object, or applies.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes many objects.
    DeleteCollection,
}

impl Verb {
    /// Returns the name in roles and metrics, such as `deletecollection`.
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

    /// Returns whether the request changes nothing, so that it may be retried.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_serialize_as_their_names() {
        for verb in ALL {
            let json = serde_json::to_value(verb).unwrap();
            assert_eq!(json, verb.as_str());
            assert_eq!(serde_json::from_value::<Verb>(json).unwrap(), verb);
        }
    }

    const ALL: [Verb; 8] = [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::DeleteCollection,
    ];
}

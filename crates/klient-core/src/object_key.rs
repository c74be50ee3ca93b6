//! The key of an object within its kind: namespace and name.
//!
//! A key is one shared allocation and cheap to clone, because keys are passed through queues, stores and indices.
//! In client-go: the `ns/name` strings of `cache.MetaNamespaceKeyFunc`.

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The name of an object within its kind: `ns/name`, or `name` for cluster-scoped kinds.
///
/// ```
/// use klient_core::ObjectKey;
///
/// let key = ObjectKey::namespaced("default", "web");
/// assert_eq!(key.to_string(), "default/web");
/// assert_eq!("default/web".parse(), Ok(key.clone()));
/// assert_eq!((key.namespace(), key.name()), (Some("default"), "web"));
/// ```
#[doc(alias = "MetaNamespaceKeyFunc")]
#[doc(alias = "NamespacedName")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    // `namespace/name`, or `name` alone. The pointer is one word and the length another, so that a key is passed in
    // registers.
    text: ArcStr,
    // The length of the namespace, or 0 if there is none, because a namespace is never empty.
    namespace_len: usize,
}

impl ObjectKey {
    /// Creates the key of an object in a namespace. An empty namespace gives the key of a cluster-scoped object.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        let filled = ArcStr::init_with(namespace.len() + 1 + name.len(), |bytes| {
            let (start, rest) = bytes.split_at_mut(namespace.len());
            start.copy_from_slice(namespace.as_bytes());
            rest[0] = b'/';
            rest[1..].copy_from_slice(name.as_bytes());
        });
        // The concatenation of strings is a string.
        Self { text: filled.unwrap_or_default(), namespace_len: namespace.len() }
    }

    /// Creates the key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self { text: name.into(), namespace_len: 0 }
    }

    /// Returns the key of an object. A missing name is empty.
    pub fn of<K: crate::Resource>(object: &K) -> Self {
        let metadata = object.metadata();
        Self::namespaced(
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
        )
    }

    /// Returns the namespace, if the object is namespaced.
    pub fn namespace(&self) -> Option<&str> {
        self.text.get(..self.namespace_len).filter(|namespace| !namespace.is_empty())
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        match self.namespace_len {
            0 => &self.text,
            len => self.text.get(len + 1..).unwrap_or_default(),
        }
    }

    /// Returns the `ns/name` text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Hash for ObjectKey {
    // Only the text is hashed, because it nearly identifies the key and hashing is frequent.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.text.as_bytes());
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl<K: crate::Resource> From<&K> for ObjectKey {
    fn from(object: &K) -> Self {
        Self::of(object)
    }
}

/// Serializes as text: `namespace/name` or `name`.
impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl FromStr for ObjectKey {
    type Err = ParseObjectKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || namespace == Some("") {
            return Err(ParseObjectKeyError { text: text.to_owned() });
        }
        Ok(namespace.map_or_else(|| Self::cluster(name), |namespace| Self::namespaced(namespace, name)))
    }
}

/// An error of parsing an object key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseObjectKeyError {
    text: String,
}

impl fmt::Display for ParseObjectKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object key {:?}: expected `name` or `namespace/name`", self.text)
    }
}

impl std::error::Error for ParseObjectKeyError {}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use super::*;

    #[test]
    fn key_serializes_as_its_text() {
        let key = ObjectKey::namespaced("default", "web");
        assert_eq!(serde_json::to_string(&key).unwrap(), "\"default/web\"");
        assert_eq!(serde_json::from_str::<ObjectKey>("\"default/web\"").unwrap(), key);
        assert!(serde_json::from_str::<ObjectKey>("\"a/b/c\"").unwrap_err().to_string().contains("a/b/c"));
    }

    #[test]
    fn key_prints_and_parses_both_forms() {
        for (text, namespace, name) in [("web", None, "web"), ("default/web", Some("default"), "web")] {
            let key: ObjectKey = text.parse().unwrap();
            assert_eq!((key.namespace(), key.name()), (namespace, name));
            assert_eq!(key.to_string(), text);
        }
    }

    #[test]
    fn invalid_key_is_rejected() {
        for text in ["", "/", "/web", "default/", "a/b/c"] {
            let error = text.parse::<ObjectKey>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn equal_keys_have_equal_hashes() {
        let hash = |key: &ObjectKey| BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let key = ObjectKey::namespaced("default", "web");
        assert_eq!(hash(&key), hash(&"default/web".parse().unwrap()));
        assert_ne!(hash(&key), hash(&ObjectKey::namespaced("default", "db")));
    }

    #[test]
    fn cluster_scoped_key_differs_from_a_namespaced_one() {
        assert_ne!(ObjectKey::cluster("a/b"), ObjectKey::namespaced("a", "b"));
        assert_eq!(ObjectKey::namespaced("", "node-1"), ObjectKey::cluster("node-1"));
    }
}

//! The key of an object within its kind: namespace and name.
//!
//! One shared allocation, cheap to clone, because keys are copied through queues, stores and indices.
//! In client-go: the `ns/name` strings of `cache.MetaNamespaceKeyFunc`.

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Names an object within its kind: `ns/name`, or `name` for cluster-scoped kinds.
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
    // `namespace/name`, or `name` alone. One word, and the length another: keys are handed on all the time, and two words
    // travel in registers.
    text: ArcStr,
    // Length of the namespace; 0 when there is none, since a namespace is never empty.
    namespace_len: usize,
}

impl ObjectKey {
    /// Key of an object in a namespace. An empty namespace gives the key of a cluster-scoped object.
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
        // Texts put together are a text.
        Self { text: filled.unwrap_or_default(), namespace_len: namespace.len() }
    }

    /// Key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self { text: name.into(), namespace_len: 0 }
    }

    /// Key of the object that this metadata belongs to; an absent name is empty.
    pub fn of<K: crate::Resource>(object: &K) -> Self {
        let metadata = object.metadata();
        Self::namespaced(
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
        )
    }

    /// The namespace, if the object lives in one.
    pub fn namespace(&self) -> Option<&str> {
        self.text.get(..self.namespace_len).filter(|namespace| !namespace.is_empty())
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self.namespace_len {
            0 => &self.text,
            len => self.text.get(len + 1..).unwrap_or_default(),
        }
    }

    /// The `ns/name` form.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Hash for ObjectKey {
    // The text says nearly everything, and this is done for every step that a key takes.
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

/// Serializes as the text that it prints: `namespace/name` or `name`.
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

/// A text that is neither `name` nor `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseObjectKeyError {
    text: String,
}

impl fmt::Display for ParseObjectKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object key {:?} is neither `name` nor `namespace/name`", self.text)
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
    fn prints_and_parses_both_forms() {
        for (text, namespace, name) in [("web", None, "web"), ("default/web", Some("default"), "web")] {
            let key: ObjectKey = text.parse().unwrap();
            assert_eq!((key.namespace(), key.name()), (namespace, name));
            assert_eq!(key.to_string(), text);
        }
    }

    #[test]
    fn rejects_what_is_not_a_key() {
        for text in ["", "/", "/web", "default/", "a/b/c"] {
            let error = text.parse::<ObjectKey>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn equal_keys_have_equal_hashes_however_they_were_made() {
        let hash = |key: &ObjectKey| BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let key = ObjectKey::namespaced("default", "web");
        assert_eq!(hash(&key), hash(&"default/web".parse().unwrap()));
        assert_ne!(hash(&key), hash(&ObjectKey::namespaced("default", "db")));
    }

    #[test]
    fn tells_a_cluster_scoped_key_from_a_namespaced_one() {
        assert_ne!(ObjectKey::cluster("a/b"), ObjectKey::namespaced("a", "b"));
        assert_eq!(ObjectKey::namespaced("", "node-1"), ObjectKey::cluster("node-1"));
    }
}

//! Cached objects: a key, and the object in wire form or decoded.

use std::{any::Any, borrow::Cow, cmp::Ordering, collections::BTreeMap, fmt, num::NonZeroU64, sync::Arc};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
    jiff::Timestamp,
};
use klient_core::{DynamicObject, FieldPath, LabelSelector, ObjectKey, Resource, ResourceVersion, TypeMeta};
use klient_proto::{Codec, ManagedFields, RawObject, raw::Encoding};
use serde::{Serialize, Serializer, ser::Error as _};

use super::{
    index::{IndexFunc, IndexValues},
    store::Keyed,
};
use crate::{Error, ErrorKind};

/// One state of an object in a cache. Clones share the object, so that cloning is cheap.
///
/// By default this is the object in wire form. Key, labels and the rest of the metadata are read from the bytes, and
/// [`decode`](Self::decode) creates a new typed object with each call. A cache of
/// [decoded](super::ObjectFormat::Decoded) objects returns the same typed object each time.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use klient::{informer::CachedObject, wire::{ManagedFields, RawObject}};
///
/// let text = br#"{"metadata":{"name":"node-1","labels":{"zone":"a"}},"spec":{"podCIDR":"10.0.0.0/24"}}"#;
/// let node = CachedObject::<Node>::from_wire(RawObject::from_json(text, ManagedFields::Drop)?);
/// assert_eq!(node.key().name(), "node-1");
/// assert_eq!(node.label("zone").as_deref(), Some("a"));
/// assert_eq!(node.decode()?.spec.as_ref().unwrap().pod_cidr.as_deref(), Some("10.0.0.0/24"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CachedObject<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    key: ObjectKey,
    /// `metadata.resourceVersion`, if it is a number that fits, so that two states can be compared without reading their bytes.
    version: Option<NonZeroU64>,
    data: ObjectData<K>,
    /// Kind and version, for kinds known only at run time: the items of a list do not contain them.
    types: Option<Arc<TypeMeta>>,
}

enum ObjectData<K> {
    Wire(RawObject),
    Decoded(Arc<K>),
}

impl<K: Resource> CachedObject<K> {
    /// Creates a cached object from wire form.
    pub fn from_wire(object: RawObject) -> Self {
        Self::with_types(object, None)
    }

    /// Creates a cached object from a typed object.
    pub fn from_object(object: K) -> Self {
        let version = object.metadata().resource_version.as_deref().and_then(number);
        Self::new(ObjectKey::of(&object), version, ObjectData::Decoded(Arc::new(object)), None)
    }

    pub(super) fn with_types(object: RawObject, types: Option<Arc<TypeMeta>>) -> Self {
        let identity = object.identity();
        let key = ObjectKey::namespaced(&identity.namespace, &identity.name);
        Self::new(key, number(&identity.resource_version), ObjectData::Wire(object), types)
    }

    fn new(key: ObjectKey, version: Option<NonZeroU64>, data: ObjectData<K>, types: Option<Arc<TypeMeta>>) -> Self {
        Self { inner: Arc::new(Inner { key, version, data, types }) }
    }

    /// Decodes the object once. Returns it in wire form if it cannot be decoded.
    pub(super) fn into_decoded(self) -> Self {
        match (&self.inner.data, self.decode()) {
            (ObjectData::Wire(_), Ok(object)) => {
                Self::new(self.inner.key.clone(), self.inner.version, ObjectData::Decoded(object), None)
            }
            _ => self,
        }
    }

    /// Returns kind and version of an object of a kind that is known only at run time.
    pub(crate) fn types(&self) -> Option<&TypeMeta> {
        self.inner.types.as_deref()
    }

    /// Returns namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.inner.key
    }

    /// Returns the typed object, which is decoded now unless the cache stores objects decoded.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a valid `K`. The error names the object and the field.
    pub fn decode(&self) -> Result<Arc<K>, Error> {
        let raw = match &self.inner.data {
            ObjectData::Decoded(object) => return Ok(Arc::clone(object)),
            ObjectData::Wire(raw) => raw,
        };
        let decoded = raw.decode::<K>();
        let mut object = decoded
            .map_err(|error| Error::from(error).context(format!("failed to decode {} {}", K::KIND, self.key())))?;
        if let Some(types) = &self.inner.types
            && let Some(object) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>()
        {
            object.types.get_or_insert_with(|| (**types).clone());
        }
        Ok(Arc::new(object))
    }

    /// Returns a reference to the typed object, if the cache stores objects decoded.
    pub fn decoded(&self) -> Option<&K> {
        match &self.inner.data {
            ObjectData::Wire(_) => None,
            ObjectData::Decoded(object) => Some(object),
        }
    }

    /// Returns the wire form, if the cache stores objects in wire form.
    pub fn wire(&self) -> Option<&RawObject> {
        match &self.inner.data {
            ObjectData::Wire(raw) => Some(raw),
            ObjectData::Decoded(_) => None,
        }
    }

    /// Returns the size of the wire form in bytes, or 0 if the cache stores objects decoded.
    pub fn wire_len(&self) -> usize {
        self.wire().map_or(0, |raw| raw.bytes().len())
    }

    /// Returns `metadata.resourceVersion`.
    pub fn resource_version(&self) -> ResourceVersion {
        let version = self.metadata(RawObject::resource_version, |metadata| metadata.resource_version.as_deref());
        version.as_deref().unwrap_or_default().into()
    }

    /// Returns `metadata.resourceVersion` if it is a number.
    pub(crate) fn version_number(&self) -> Option<u64> {
        self.inner.version.map(std::num::NonZeroU64::get)
    }

    /// Returns `metadata.uid`.
    pub fn uid(&self) -> Option<Cow<'_, str>> {
        self.metadata(RawObject::uid, |metadata| metadata.uid.as_deref())
    }

    /// Returns `metadata.generation`.
    pub fn generation(&self) -> Option<i64> {
        match &self.inner.data {
            ObjectData::Wire(raw) => raw.generation(),
            ObjectData::Decoded(object) => object.metadata().generation,
        }
    }

    /// Returns `metadata.creationTimestamp`.
    pub fn creation_timestamp(&self) -> Option<Timestamp> {
        match &self.inner.data {
            ObjectData::Wire(raw) => raw.creation_timestamp(),
            ObjectData::Decoded(object) => object.metadata().creation_timestamp.as_ref().map(|time| time.0),
        }
    }

    /// Returns `metadata.deletionTimestamp`, the time at which the deletion was requested.
    pub fn deletion_timestamp(&self) -> Option<Timestamp> {
        match &self.inner.data {
            ObjectData::Wire(raw) => raw.deletion_timestamp(),
            ObjectData::Decoded(object) => object.metadata().deletion_timestamp.as_ref().map(|time| time.0),
        }
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        self.metadata(|raw| raw.label(key), |metadata| metadata.labels.as_ref()?.get(key).map(String::as_str))
    }

    /// Returns the value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<Cow<'_, str>> {
        self.metadata(|raw| raw.annotation(key), |metadata| metadata.annotations.as_ref()?.get(key).map(String::as_str))
    }

    /// Returns all labels.
    pub fn labels(&self) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
        match &self.inner.data {
            ObjectData::Wire(raw) => raw.labels().collect(),
            ObjectData::Decoded(object) => entries(&object.metadata().labels),
        }
    }

    /// Returns all annotations.
    pub fn annotations(&self) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
        match &self.inner.data {
            ObjectData::Wire(raw) => raw.annotations().collect(),
            ObjectData::Decoded(object) => entries(&object.metadata().annotations),
        }
    }

    /// Returns whether the labels match a selector.
    pub fn matches(&self, selector: &LabelSelector) -> bool {
        selector.matches(|key| self.label(key))
    }

    /// Returns `metadata.ownerReferences`.
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        match &self.inner.data {
            ObjectData::Wire(raw) => raw.owner_references().collect(),
            ObjectData::Decoded(object) => object.metadata().owner_references.clone().unwrap_or_default(),
        }
    }

    /// Returns whether `metadata.finalizers` contains a finalizer.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        match &self.inner.data {
            ObjectData::Wire(raw) => raw.finalizers().any(|other| other == finalizer),
            ObjectData::Decoded(object) => {
                object.metadata().finalizers.iter().flatten().any(|other| other == finalizer)
            }
        }
    }

    /// Returns whether both are the same state of the same object, judged by UID and resource version.
    pub fn is_same_state(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
            || self.inner.version == other.inner.version && self.version_and_uid() == other.version_and_uid()
    }

    /// Returns whether a newer list has this object unchanged. Bytes decide where equal versions are not evidence enough: where
    /// there is no version, and where the versions of a server went back.
    pub(super) fn is_unchanged_in(&self, listed: &Self) -> bool {
        if Arc::ptr_eq(&self.inner, &listed.inner) {
            return true;
        }
        let same_bytes = || match (self.wire(), listed.wire()) {
            (Some(old), Some(new)) => old.bytes() == new.bytes(),
            _ => self.version_and_uid().0.is_empty(),
        };
        self.is_same_state(listed) && same_bytes()
    }

    /// Returns whether both are the same state of the same object, and have a version to tell by.
    pub(super) fn is_known_as(&self, known: &Self) -> bool {
        self.is_same_state(known) && (self.inner.version.is_some() || !self.version_and_uid().0.is_empty())
    }

    /// Returns whether this state is older than the other. Versions that are not numbers cannot be compared and count as older.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        if let (Some(this), Some(other)) = (self.inner.version, other.inner.version) {
            return this < other;
        }
        let order = ResourceVersion::compare_texts(&self.version_and_uid().0, &other.version_and_uid().0);
        // The server's order is trusted where versions cannot be compared.
        order.is_none_or(Ordering::is_lt)
    }

    /// Returns whether this state is known to be newer than the other. Versions that are not numbers cannot be compared.
    pub(super) fn is_newer_than(&self, other: &Self) -> bool {
        if let (Some(this), Some(other)) = (self.inner.version, other.inner.version) {
            return this > other;
        }
        let order = ResourceVersion::compare_texts(&self.version_and_uid().0, &other.version_and_uid().0);
        order.is_some_and(Ordering::is_gt)
    }

    fn version_and_uid(&self) -> (Cow<'_, str>, Cow<'_, str>) {
        match &self.inner.data {
            ObjectData::Wire(raw) => {
                let identity = raw.identity();
                (identity.resource_version, identity.uid)
            }
            ObjectData::Decoded(object) => {
                let metadata = object.metadata();
                (text(&metadata.resource_version), text(&metadata.uid))
            }
        }
    }

    fn metadata<'a>(
        &'a self,
        wire: impl FnOnce(&'a RawObject) -> Option<Cow<'a, str>>,
        typed: impl FnOnce(&'a ObjectMeta) -> Option<&'a str>,
    ) -> Option<Cow<'a, str>> {
        match &self.inner.data {
            ObjectData::Wire(raw) => wire(raw),
            ObjectData::Decoded(object) => typed(object.metadata()).map(Cow::Borrowed),
        }
    }
}

impl<K: Resource> Keyed for CachedObject<K> {
    fn key(&self) -> &ObjectKey {
        &self.inner.key
    }
}

impl<K> Clone for CachedObject<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

/// Writes the object as JSON, with `apiVersion` and `kind`. One in wire form is not decoded to a typed object.
impl<K: Resource> Serialize for CachedObject<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = match &self.inner.data {
            ObjectData::Decoded(object) => return object.serialize(serializer),
            ObjectData::Wire(raw) => raw,
        };
        let value = match &self.inner.types {
            Some(types) => raw.to_value_of(Codec::of::<K>(), &types.api_version, &types.kind),
            None => raw.to_value::<K>(),
        };
        value.map_err(S::Error::custom)?.serialize(serializer)
    }
}

// Never prints contents: they may be a Secret's.
impl<K: Resource> fmt::Debug for CachedObject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedObject")
            .field("key", self.key())
            .field("resource_version", &self.resource_version().as_str())
            .finish()
    }
}

impl<K: Resource> IndexFunc<CachedObject<K>> {
    /// Creates an index by the value of a label.
    pub fn label(key: impl Into<String>) -> Self {
        let key = key.into();
        Self::new(move |object: &CachedObject<K>, found| {
            if let Some(value) = object.label(&key) {
                found.add(&value);
            }
        })
    }

    /// Creates an index by the UIDs of owners.
    pub fn owner() -> Self {
        Self::new(|object: &CachedObject<K>, found| {
            for owner in object.owner_references() {
                found.add(&owner.uid);
            }
        })
    }

    /// Creates an index by the text, number or boolean at a path, such as `spec.nodeName`. The rest of the object is not decoded.
    pub fn field(path: FieldPath) -> Self {
        Self::new(move |object: &CachedObject<K>, found| match &object.inner.data {
            ObjectData::Wire(raw) => {
                if let Ok(Some(text)) = raw.text_at::<K>(&path) {
                    found.add(&text);
                }
            }
            ObjectData::Decoded(typed) => add_typed_field(&**typed, &path, found),
        })
    }

    /// Creates an index from a function of the typed object, which is decoded once when it is stored.
    ///
    /// An object that cannot be decoded is not in the index.
    pub fn typed(compute: impl Fn(&K, &mut IndexValues) + Send + Sync + 'static) -> Self {
        Self::new(move |object: &CachedObject<K>, found| {
            if let Ok(object) = object.decode() {
                compute(&object, found);
            }
        })
        .costly()
    }
}

fn text(field: &Option<String>) -> Cow<'_, str> {
    field.as_deref().unwrap_or_default().into()
}

fn entries(map: &Option<BTreeMap<String, String>>) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
    map.iter().flatten().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

/// Returns a version as a number, if [`ResourceVersion::compare`] accepts it as one and it fits.
fn number(version: &str) -> Option<NonZeroU64> {
    let is_number = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
    if is_number { version.parse().ok() } else { None }
}

fn add_typed_field<K: Resource>(object: &K, path: &FieldPath, found: &mut IndexValues) {
    let Ok(text) = serde_json::to_vec(object) else { return };
    let Ok(raw) = RawObject::from_json(&text, ManagedFields::Drop) else { return };
    if let Ok(Some(value)) = raw.text_at::<K>(path) {
        found.add(&value);
    }
}

/// Encodes a typed object in the encoding in which it arrived.
pub(super) fn encode<K: Resource>(object: &K, encoding: Encoding) -> Result<RawObject, Error> {
    let encoded = match encoding {
        Encoding::Protobuf => {
            let message = klient_proto::encode(object)?;
            RawObject::from_protobuf(&message, ManagedFields::Keep)
        }
        _ => {
            let text = serde_json::to_vec(object).map_err(|error| {
                Error::new(ErrorKind::Decode, format!("failed to encode {}", ObjectKey::of(object))).with_source(error)
            })?;
            RawObject::from_json(&text, ManagedFields::Keep)
        }
    };
    Ok(encoded?)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn at(version: &str) -> CachedObject<ConfigMap> {
        let mut map = ConfigMap::default();
        map.metadata.resource_version = Some(version.to_owned());
        CachedObject::from_object(map)
    }

    #[test]
    fn cached_object_reads_labels_in_place() {
        let mut map = ConfigMap::default();
        map.metadata.name = Some("web".to_owned());
        map.metadata.labels = Some(BTreeMap::from([("app".to_owned(), "web".to_owned())]));
        let raw = RawObject::from_json(&serde_json::to_vec(&map).unwrap(), ManagedFields::Drop).unwrap();
        let (typed, wire) = (CachedObject::from_object(map.clone()), CachedObject::<ConfigMap>::from_wire(raw));
        assert_eq!((typed.decoded(), typed.wire().is_none()), (Some(&map), true));
        assert_eq!((wire.decoded(), wire.wire().is_some()), (None, true));
        for object in [typed, wire] {
            assert!(matches!(object.label("app"), Some(Cow::Borrowed("web"))));
            assert_eq!(object.label("tier"), None);
        }
    }

    #[test]
    fn cached_objects_compare_as_their_versions() {
        let large = ["18446744073709551615", "18446744073709551616", "99999999999999999999999"];
        let versions = ["", "0", "1", "01", "+1", "9", "10", "abc"].into_iter().chain(large);
        for a in versions.clone() {
            for b in versions.clone() {
                let older = ResourceVersion::compare_texts(a, b).is_none_or(Ordering::is_lt);
                assert_eq!(at(a).is_older_than(&at(b)), older, "{a:?} and {b:?}");
                let newer = ResourceVersion::compare_texts(a, b).is_some_and(Ordering::is_gt);
                assert_eq!(at(a).is_newer_than(&at(b)), newer, "{a:?} and {b:?}");
                assert_eq!(at(a).is_same_state(&at(b)), a == b, "{a:?} and {b:?}");
                assert_eq!(at(a).is_known_as(&at(b)), a == b && !a.is_empty(), "{a:?} and {b:?}");
            }
        }
    }
}

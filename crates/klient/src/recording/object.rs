//! Objects of any kind as a recording stores them, without the contents of secrets.

use std::collections::BTreeSet;

use klient_core::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::informer::CachedObject;

/// A cached object of any kind.
pub(crate) trait RecordedObject: Send + Sync {
    fn key(&self) -> &ObjectKey;

    /// Returns the object as JSON, or its name and the error if it cannot be read.
    fn to_json(&self) -> Value;

    /// Returns the size in bytes that holding the object costs at most.
    fn size(&self) -> usize;
}

impl<K: Resource> RecordedObject for CachedObject<K> {
    fn key(&self) -> &ObjectKey {
        CachedObject::key(self)
    }

    fn to_json(&self) -> Value {
        let types = self.types();
        let (api_version, kind) = types.map_or((K::API_VERSION, K::KIND), |types| (&types.api_version, &types.kind));
        let read = match self.wire() {
            Some(raw) => raw.to_value_of(klient_proto::Codec::of::<K>(), api_version, kind).map_err(|e| e.to_string()),
            None => serde_json::to_value(self.decoded()).map_err(|error| error.to_string()),
        };
        read.unwrap_or_else(|error| {
            let metadata = json!({"name": self.key().name(), "namespace": self.key().namespace()});
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "klientError": error})
        })
    }

    fn size(&self) -> usize {
        self.wire_len() + PER_OBJECT
    }
}

/// The resources whose contents are left out of recordings.
#[derive(Clone, Debug)]
pub(crate) struct Redaction {
    resources: BTreeSet<String>,
}

impl Default for Redaction {
    fn default() -> Self {
        Self { resources: BTreeSet::from(["secrets".to_owned()]) }
    }
}

impl Redaction {
    pub(super) fn none() -> Self {
        Self { resources: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, resource: String) {
        self.resources.insert(resource);
    }

    /// Returns whether the contents of a resource, such as `deployments.apps`, are left out.
    pub(super) fn covers(&self, resource: &str) -> bool {
        self.resources.contains(resource)
    }

    /// Returns whether the bodies of requests to a path are left out: those of covered resources, and those that issue credentials.
    #[cfg(feature = "client")]
    pub(crate) fn covers_path(&self, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        let mut parts = path.trim_matches('/').split('/');
        let group = match parts.next() {
            Some("apis") => parts.next().unwrap_or_default(),
            _ => "",
        };
        // The version.
        parts.next();
        let parts: Vec<&str> = parts.collect();
        let parts = match parts[..] {
            ["namespaces", _, ref inside @ ..] if !inside.is_empty() => inside,
            ref whole => whole,
        };
        let resource = parts.first().copied().unwrap_or_default();
        let is_credential = parts.last() == Some(&"token")
            || matches!(resource, "tokenreviews" | "selfsubjectreviews" | "certificatesigningrequests");
        let name = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        is_credential && !self.resources.is_empty() || self.covers(&name)
    }
}

/// Leaves the metadata and the type of an object. The annotation in which kubectl stores the whole object is removed as well.
pub(crate) fn without_contents(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "type"));
    }
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    object
}

/// The memory that an object takes besides its bytes.
const PER_OBJECT: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_a_secret_are_left_out() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"password": "cGFzc3dvcmQ="}, "stringData": {"a": "b"},
            "metadata": {"name": "db", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "password", "a": "b"}},
        });
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "db", "annotations": {"a": "b"}},
        });
        assert_eq!(without_contents(secret), expected);
    }

    #[cfg(feature = "client")]
    #[test]
    fn paths_of_secrets_and_tokens_are_covered() {
        let mut redaction = Redaction::default();
        redaction.add("vaults.example.com".to_owned());
        for covered in [
            "/api/v1/namespaces/shop/secrets/db?fieldManager=a",
            "/api/v1/secrets",
            "/api/v1/namespaces/shop/serviceaccounts/web/token",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            "/apis/example.com/v1/namespaces/shop/vaults/a/status",
        ] {
            assert!(redaction.covers_path(covered), "{covered}");
        }
        for open in ["/api/v1/namespaces/secrets", "/apis/apps/v1/namespaces/shop/deployments/secrets", "/version"] {
            assert!(!redaction.covers_path(open), "{open}");
        }
        assert!(!Redaction::none().covers_path("/api/v1/namespaces/shop/secrets/db"));
    }
}

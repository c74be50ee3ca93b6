//! The objects that the controller manager of a cluster creates in each namespace: a service account and a config map.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::{
    managed::Writer,
    metadata,
    server::Core,
    store::{Expected, Write},
    verbs::{self, Target},
};

/// The contents of new namespaces.
#[derive(Default)]
pub(crate) struct Contents {
    /// The certificate of the authority by which clients verify the server, as PEM.
    authority: Mutex<String>,
}

impl Contents {
    /// Replaces the certificate in the config maps of all namespaces.
    pub(crate) async fn publish(&self, core: &Core, authority: &str) {
        authority.clone_into(&mut self.authority.lock().unwrap_or_else(PoisonError::into_inner));
        let table: Arc<str> = Arc::from("configmaps");
        for namespace in core.store.list("namespaces", "").objects {
            let key = format!("{}/{CONFIG_MAP}", namespace.raw().name());
            let Some(stored) = core.store.get(&table, &key) else { continue };
            let mut object = stored.value();
            object["data"]["ca.crt"] = json!(authority);
            // A config map that is changed meanwhile belongs to another writer.
            let _ = core.store.commit(&table, &key, Expected::Revision(stored.revision), Write::Put(object)).await;
        }
    }

    fn authority(&self) -> String {
        self.authority.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Creates the objects of a new namespace.
pub(super) async fn create(core: &Arc<Core>, namespace: &str) {
    let Some(contents) = &core.namespace_contents else { return };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP},
        "data": {"ca.crt": contents.authority()}});
    map["metadata"]["annotations"] = json!({"kubernetes.io/description": DESCRIPTION});
    for (plural, object) in [("serviceaccounts", account), ("configmaps", map)] {
        put(core, namespace, plural, object).await;
    }
}

async fn put(core: &Arc<Core>, namespace: &str, plural: &str, object: Value) {
    let Some(resource) = core.registry.find("", "v1", plural) else { return };
    let name = Some(metadata::text(&object, "name").to_owned());
    let target = Target { resource, namespace: namespace.to_owned(), name, subresource: None };
    let writer = Writer { manager: "kube-controller-manager".to_owned(), ..Writer::server("", core.clock.now()) };
    // An object that exists already stays as it is.
    let _ = verbs::create_object(core, &target, object, &writer).await;
}

const CONFIG_MAP: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

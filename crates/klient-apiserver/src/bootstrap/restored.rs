//! Objects of the API server itself that exist again after a delete, and those that follow from definitions of custom kinds.
//!
//! The real server writes them some seconds later, in loops. Here, the change itself causes the write. Servers that started without
//! the objects of [`super::objects`] have none of this.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{OBJECTS, put};
use crate::{
    metadata,
    server::Core,
    store::{Change, ChangeKind, Expected, Write},
    verbs::{self, Target},
};

/// Creates a deleted object again, if it is one of those that every API server has.
pub(crate) async fn after_change(core: &Arc<Core>, change: &Change) {
    if change.kind != ChangeKind::Deleted || !core.has_own_objects {
        return;
    }
    let deleted = change.object.value();
    let identity = |object: &Value| {
        let text = |field| metadata::text(object, field).to_owned();
        (object["apiVersion"].clone(), object["kind"].clone(), text("namespace"), text("name"))
    };
    if let Some(object) = OBJECTS.iter().find(|object| identity(object) == identity(&deleted)) {
        put(core, object.clone()).await;
    }
}

/// Creates a deleted `APIService` again, if the version of a custom group that it is for is served.
pub(crate) async fn after_api_service(core: &Arc<Core>, change: &Change) {
    if change.kind == ChangeKind::Deleted {
        let deleted = change.object.value();
        let text = |name: &str| deleted["spec"][name].as_str().unwrap_or_default();
        api_service(core, text("group"), text("version")).await;
    }
}

/// Creates or deletes the `APIService` of each version of a custom kind, whose definition changed.
pub(crate) async fn api_services(core: &Arc<Core>, change: &Change) {
    for stored in change.previous.iter().chain([&change.object]) {
        let definition = stored.value();
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            api_service(core, group, version["name"].as_str().unwrap_or_default()).await;
        }
    }
}

/// Creates the `APIService` of a version of a custom group if the version is served, and deletes it otherwise.
pub(crate) async fn api_service(core: &Arc<Core>, group: &str, version: &str) {
    let groups = core.registry.groups();
    let Some(resource) = groups.find("apiregistration.k8s.io", "v1", "apiservices") else { return };
    if !core.has_own_objects {
        return;
    }
    let name = format!("{version}.{group}");
    let found = core.store.get(&resource.table, &name);
    let is_served = groups.is_custom(group, version);
    match found {
        Some(stored) if !is_served => {
            let object = stored.value();
            if object["metadata"]["labels"][LABEL] == "true" {
                // An object that was changed meanwhile belongs to the client that changed it.
                let expected = Expected::Revision(stored.revision);
                let _ = core.store.commit(&resource.table, &name, expected, Write::Delete(object)).await;
            }
        }
        None if is_served => {
            let object = json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": name, "labels": {LABEL: "true"}},
                "spec": {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100},
            });
            let target = Target { resource, namespace: String::new(), name: Some(name), subresource: None };
            // A client can have created it meanwhile.
            let _ = verbs::create_object(core, &target, object, &super::writer(core)).await;
        }
        _ => {}
    }
}

/// Returns the status of a new `APIService`. A server that has no other servers behind it cannot reach those of services.
pub(crate) fn api_service_status(object: &Value, now: &str) -> Value {
    if object["spec"]["service"].is_object() {
        return json!({});
    }
    json!({"conditions": [{
        "type": "Available", "status": "True", "lastTransitionTime": now,
        "reason": "Local", "message": "Local APIServices are always available",
    }]})
}

/// The label of what the server itself manages.
const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

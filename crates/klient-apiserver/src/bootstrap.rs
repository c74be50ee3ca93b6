//! The objects that every API server has from the start, such as the service `default/kubernetes`.
//!
//! `objects.json` was recorded from the real server: `cargo xtask registry` writes it. One line per object.

pub(crate) mod restored;

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    access, builtin,
    managed::Writer,
    metadata,
    server::Core,
    store::{Expected, Write},
    verbs::{self, Target},
};

/// Creates the namespaces that every cluster has.
pub(crate) async fn namespaces(core: &Arc<Core>) {
    let Some(resource) = core.registry.find("", "v1", "namespaces") else { return };
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let target = Target {
            resource: Arc::clone(&resource),
            namespace: String::new(),
            name: Some(name.to_owned()),
            subresource: None,
        };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        // A namespace that exists already stays as it is.
        let _ = verbs::create_object(core, &target, object, &writer(core)).await;
    }
}

/// Creates the objects of the API server itself that do not exist yet.
pub(crate) async fn objects(core: &Arc<Core>) {
    let mut writes = JoinSet::new();
    for object in OBJECTS.iter().cloned() {
        if core.store.is_durable() {
            // The writer of a folder commits concurrent writes together.
            let core = Arc::clone(core);
            writes.spawn(async move { put(&core, object).await });
        } else {
            put(core, object).await;
        }
    }
    writes.join_all().await;
    for version in &core.registry.groups().versions {
        if core.registry.groups().is_custom(&version.group, &version.version) {
            restored::api_service(core, &version.group, &version.version).await;
        }
    }
}

/// Creates the roles and bindings that every API server has and that do not exist yet, if the server uses them.
pub(crate) async fn roles(core: &Arc<Core>) {
    let Some(rbac) = &core.access.rbac else { return };
    for object in access::rbac::bootstrap::objects() {
        put(core, object).await;
    }
    rbac.load(&core.store);
    rbac.aggregate(core).await;
}

/// Stores an object, if there is none with its name. It was written by a real server and needs no validation.
async fn put(core: &Core, mut object: Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let groups = core.registry.groups();
    let Some(resource) = groups.of_kind(group, version, &text(&object["kind"])) else { return };
    let key = resource.key(metadata::text(&object, "namespace"), metadata::text(&object, "name"));
    if core.store.get(&resource.table, &key).is_some() {
        return;
    }
    let now = metadata::time(core.clock.now());
    set_times(&mut object, &now);
    let fields = metadata::of(&mut object);
    fields.insert("uid".to_owned(), json!(core.new_uid()));
    fields.insert("creationTimestamp".to_owned(), json!(now));
    builtin::nulls(&resource, &mut object);
    // Another process cannot have created it: the folder is locked.
    let _ = core.store.commit(&resource.table, &key, Expected::Absent, Write::Put(object)).await;
}

/// Returns the server as the writer of its own objects.
fn writer(core: &Core) -> Writer {
    Writer::server("", core.clock.now())
}

/// Sets the times of conditions and managed fields, which are empty in the file.
fn set_times(object: &mut Value, now: &str) {
    for (pointer, name) in [("/status/conditions", "lastTransitionTime"), ("/metadata/managedFields", "time")] {
        for entry in object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(time) = entry.get_mut(name) {
                *time = json!(now);
            }
        }
    }
}

/// The recorded objects.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("bootstrap/objects.json")).expect("the file is generated and tested")
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;

    #[tokio::test]
    async fn server_has_the_objects_of_a_real_one() {
        let server = ApiServer::builder().start().await.unwrap();
        let core = server.core();
        for object in OBJECTS.iter() {
            let api_version = object["apiVersion"].as_str().unwrap();
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
            let kind = object["kind"].as_str().unwrap();
            let resource = core.registry.groups().of_kind(group, version, kind).unwrap();
            let key = resource.key(metadata::text(object, "namespace"), metadata::text(object, "name"));
            assert!(core.store.get(&resource.table, &key).is_some(), "{kind} {key}");
        }
        assert!(core.store.get("services", "default/kubernetes").is_some());
    }
}

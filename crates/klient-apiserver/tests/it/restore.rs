//! Objects that are stored as another server wrote them.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use klient::{Api, Client, WatchEvent};
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

fn pod(version: &str, phase: &str) -> Value {
    // No server would accept it: it has no containers, and a status of its own.
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web", "namespace": "elsewhere", "uid": "8a1", "resourceVersion": version, "creationTimestamp": "2020-01-01T00:00:00Z",
            "finalizers": ["klient.invalid/never"],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {}}}],
        },
        "status": {"phase": phase},
    })
}

#[tokio::test]
async fn restored_object_keeps_identity_status_and_managers() {
    let server = ApiServer::builder().revision(100).start().await.unwrap();
    let client = Client::from_service(server.service());
    let pods: Api<Pod> = Api::namespaced(client, "elsewhere");
    let mut watch = pods.watch().await.unwrap();
    server.restore(pod("5000", "Pending")).await.unwrap();
    server.restore(pod("5007", "Running")).await.unwrap();
    let Some(Ok(WatchEvent::Added(added))) = watch.next().await else { panic!("not added") };
    assert_eq!(added.metadata.resource_version.as_deref(), Some("5000"));
    let Some(Ok(WatchEvent::Modified(changed))) = watch.next().await else { panic!("not changed") };
    assert_eq!(changed.metadata.resource_version.as_deref(), Some("5007"));
    let found = pods.get("web").await.unwrap();
    assert_eq!((found.metadata.uid.as_deref(), found.status.unwrap().phase.as_deref()), (Some("8a1"), Some("Running")));
    assert_eq!(found.metadata.creation_timestamp.unwrap().0.to_string(), "2020-01-01T00:00:00Z");
    // Versions never go back.
    server.restore(pod("17", "Failed")).await.unwrap();
    assert_eq!(pods.get("web").await.unwrap().metadata.resource_version.as_deref(), Some("5008"));
    // Finalizers do not hold it.
    assert!(server.erase(&pod("6000", "Failed")).await.unwrap());
    assert!(!server.erase(&pod("6000", "Failed")).await.unwrap());
    assert!(pods.get_opt("web").await.unwrap().is_none());
    let Some(Ok(WatchEvent::Modified(_))) = watch.next().await else { panic!("not changed") };
    let Some(Ok(WatchEvent::Deleted(deleted))) = watch.next().await else { panic!("not deleted") };
    assert_eq!(deleted.metadata.resource_version.as_deref(), Some("6000"));
}

#[tokio::test]
async fn restore_names_what_it_cannot_store() {
    let server = ApiServer::start().await.unwrap();
    let shop = json!({"apiVersion": "klient.invalid/v1", "kind": "Shop", "metadata": {"name": "a"}});
    let error = server.restore(shop).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the server has no kind \"Shop\" of \"klient.invalid/v1\": restore its CustomResourceDefinition first"
    );
    let nameless = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}});
    assert_eq!(server.restore(nameless).await.unwrap_err().to_string(), "cannot restore a Pod without a name");
    assert!(server.restore(Value::Null).await.is_err());
}

#[tokio::test]
async fn dependents_stay_without_garbage_collector() {
    let server = ApiServer::builder().without_garbage_collector().start().await.unwrap();
    let owned = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"},
        ]},
    });
    server.restore(owned.clone()).await.unwrap();
    server.skip_to_revision(server.revision() + 50);
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_service(server.service()), "default");
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(maps.get_opt("a").await.unwrap().is_some());
    let before = server.revision();
    assert!(maps.delete("a").await.is_ok());
    assert_eq!(server.revision(), before + 1);
}

//! Moments that requests alone cannot produce.

use serde_json::json;
use tokio::time::Instant;

use super::{work::perform, *};
use crate::{
    ApiServer,
    store::{Expected, Write},
};

async fn put(core: &Core, table: &str, key: &str, object: serde_json::Value) -> ObjectId {
    let table: Arc<str> = Arc::from(table);
    core.store.commit(&table, key, Expected::Absent, Write::Put(object)).await.unwrap();
    (table, key.to_owned())
}

#[tokio::test]
async fn dependent_of_unrecorded_owner_is_kept() {
    let server = ApiServer::start().await.unwrap();
    let core = server.core();
    // Committed, and not recorded by the collector yet.
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": "owner", "namespace": "default", "uid": "u-1"}});
    put(core, "configmaps", "default/owner", owner).await;
    let of_owner = |uid: &str| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    let dependent = |name: &str, uid: &str| {
        json!({"apiVersion": "v1", "kind": "Secret",
               "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": of_owner(uid)}})
    };
    let kept = put(core, "secrets", "default/kept", dependent("kept", "u-1")).await;
    let gone = put(core, "secrets", "default/gone", dependent("gone", "u-2")).await;
    for id in [kept, gone] {
        perform(core, Job::Dependent(id)).await;
    }
    assert!(core.store.get("secrets", "default/kept").is_some());
    assert!(core.store.get("secrets", "default/gone").is_none(), "its owner has another UID");
}

#[tokio::test(start_paused = true)]
async fn collector_pauses_after_disk_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::builder().folder(folder.path()).start().await.unwrap();
    let core = server.core();
    let waiting = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default",
                         "uid": "u-1", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["orphan"]}});
    let id = put(core, "configmaps", "default/a", waiting).await;
    core.store.close();
    let began = Instant::now();
    perform(core, Job::Owner(id)).await;
    assert!(began.elapsed().as_secs() >= 1, "the job is queued again without a pause");
}

#[tokio::test(start_paused = true)]
async fn job_is_queued_again_after_disk_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::builder().folder(folder.path()).start().await.unwrap();
    let core = server.core();
    let waiting = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.b", "uid": "u-1", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": [crate::builtin::definitions::FINALIZER]},
        "spec": {"group": "b", "names": {"plural": "as", "kind": "A"}, "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true}]}});
    put(core, crate::builtin::definitions::TABLE, "as.b", waiting).await;
    core.store.close();
    let job = Job::Definition("as.b".to_owned());
    perform(core, job.clone()).await;
    // The task of the collector runs only while this one waits.
    assert_eq!(core.collector.state.lock().unwrap().queue.back(), Some(&job));
}

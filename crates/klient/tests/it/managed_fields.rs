//! `managedFields` are dropped from typed responses, unless the client is configured to keep them.

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, WatchEvent,
    client::{Deleted, http::Body},
    request::media_type,
    wire::ManagedFields,
};
use serde_json::{Value, json};

use crate::support::scripted::{Script, json_response, response};

fn managed_map() -> Value {
    json!({
        "kind": "ConfigMap", "apiVersion": "v1", "data": {"key": "value"},
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "managedFields": [
            {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:data": {".": {}, "f:key": {}}}},
        ]},
    })
}

/// Returns one object, in either format.
fn objects() -> [http::Response<Body>; 2] {
    let map: ConfigMap = serde_json::from_value(managed_map()).unwrap();
    let protobuf = klient::wire::encode_body(&map).unwrap();
    [json_response(200, &managed_map()), response(200, media_type::PROTOBUF, protobuf)]
}

fn list() -> http::Response<Body> {
    json_response(200, &json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": [managed_map()]}))
}

fn event() -> http::Response<Body> {
    json_response(200, &json!({"type": "MODIFIED", "object": managed_map()}))
}

/// Returns the results of all typed reads of the same object.
async fn read(wanted: Option<ManagedFields>) -> Vec<ConfigMap> {
    let script = Script::new(objects().into_iter().chain([list(), event()]).chain(objects()));
    let builder = script.builder();
    let client = match wanted {
        Some(wanted) => builder.managed_fields(wanted).build(),
        None => builder.build(),
    };
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    let mut read = Vec::new();
    for _ in 0..2 {
        read.push(maps.get("web").await.unwrap());
    }
    read.extend(maps.list().await.unwrap().items);
    let mut watch = maps.watch().await.unwrap();
    let Some(Ok(WatchEvent::Modified(map))) = watch.next().await else { panic!("no event") };
    read.push(map);
    for _ in 0..2 {
        let Deleted::Object(map) = maps.delete("web").await.unwrap() else { panic!("no object") };
        read.push(*map);
    }
    script.played();
    read
}

#[tokio::test]
async fn managed_fields_are_kept_on_request() {
    let whole: ConfigMap = serde_json::from_value(managed_map()).unwrap();
    assert_eq!(read(Some(ManagedFields::Keep)).await, vec![whole; 6]);
}

#[tokio::test]
async fn managed_fields_are_dropped_by_default() {
    let mut lean: ConfigMap = serde_json::from_value(managed_map()).unwrap();
    lean.metadata.managed_fields = None;
    for wanted in [None, Some(ManagedFields::Drop)] {
        assert_eq!(read(wanted).await, vec![lean.clone(); 6]);
    }
}

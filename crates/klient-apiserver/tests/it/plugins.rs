//! Built-in admission plugins beyond what the recorded scripts can show: the work of a controller manager, and switches.

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, ResourceQuota};
use klient::{Api, Client};
use klient_apiserver::{ApiServer, ApiServerBuilder, User};
use serde_json::{Value, json};

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn pod(name: &str, spec: &Value) -> Pod {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    of(pod)
}

fn map(name: &str) -> ConfigMap {
    of(json!({"metadata": {"name": name}}))
}

#[tokio::test]
async fn quota_usage_is_counted() {
    let server = ApiServer::builder().namespace_objects().start().await.unwrap();
    let client = Client::from_service(server.service());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), "default");
    let quota =
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "3", "pods": "1", "requests.cpu": "1"}}});
    quotas.create(&of(quota)).await.unwrap();
    let used = async || serde_json::to_value(quotas.get("q").await.unwrap().status.unwrap().used).unwrap();
    // The namespace has a config map of its own.
    assert_eq!(used().await, json!({"configmaps": "1", "pods": "0", "requests.cpu": "0"}));
    maps.create(&map("a")).await.unwrap();
    maps.create(&map("b")).await.unwrap();
    let error = maps.create(&map("c")).await.unwrap_err();
    let message = "configmaps \"c\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=3, limited: configmaps=3";
    assert_eq!(error.status().unwrap().message, message);
    maps.delete("a").await.unwrap();
    assert_eq!(used().await["configmaps"], "2");
    maps.create(&map("c")).await.unwrap();

    let pods: Api<Pod> = Api::namespaced(client, "default");
    let resources = json!({"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "700m"}}}]});
    pods.create(&pod("a", &resources)).await.unwrap();
    assert_eq!(used().await, json!({"configmaps": "3", "pods": "1", "requests.cpu": "700m"}));
    assert!(pods.create(&pod("b", &resources)).await.unwrap_err().is_forbidden());
    let ended = json!({"status": {"phase": "Succeeded"}});
    pods.status().patch("a", klient::Patch::merge(ended)).await.unwrap();
    assert_eq!(used().await["pods"], "0", "a pod that has ended uses nothing");
    pods.create(&pod("b", &resources)).await.unwrap();
}

#[tokio::test]
async fn concurrent_creates_stay_within_a_quota() {
    let server = ApiServer::builder().namespace_objects().start().await.unwrap();
    let client = Client::from_service(server.service());
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), "default");
    quotas.create(&of(json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "5"}}}))).await.unwrap();
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client, "default");
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..20 {
        let secrets = secrets.clone();
        tasks.spawn(
            async move { secrets.create(&of(json!({"metadata": {"name": format!("s{index}")}}))).await.is_ok() },
        );
    }
    let created = tasks.join_all().await.into_iter().filter(|is_created| *is_created).count();
    assert_eq!(created, 5);
    assert_eq!(secrets.list().await.unwrap().items.len(), 5);
}

#[tokio::test]
async fn pods_need_their_service_account_in_a_whole_cluster() {
    let server = ApiServer::builder().namespace_objects().start().await.unwrap();
    let pods: Api<Pod> = Api::namespaced(Client::from_service(server.service()), "default");
    let error = pods.create(&pod("a", &json!({"serviceAccountName": "robot"}))).await.unwrap_err();
    let message =
        "pods \"a\" is forbidden: error looking up service account default/robot: serviceaccount \"robot\" not found";
    assert_eq!(error.status().unwrap().message, message);
    let created = pods.create(&pod("a", &json!({}))).await.unwrap().spec.unwrap();
    let volume = &created.volumes.unwrap()[0];
    assert!(volume.name.starts_with("kube-api-access-"));
    assert_eq!(created.containers[0].volume_mounts.as_ref().unwrap()[0].name, volume.name);
    // A server without service accounts accepts all pods.
    let server = ApiServer::start().await.unwrap();
    let pods: Api<Pod> = Api::namespaced(Client::from_service(server.service()), "default");
    assert!(pods.create(&pod("a", &json!({}))).await.unwrap().spec.unwrap().volumes.is_none());
}

#[tokio::test]
async fn disabled_plugins_do_nothing() {
    let names = ["Priority", "DefaultTolerationSeconds", "TaintNodesByCondition", "ServiceAccount", "ResourceQuota"];
    let builder =
        names.into_iter().fold(ApiServer::builder().namespace_objects(), ApiServerBuilder::disable_admission_plugin);
    let server = builder.start().await.unwrap();
    let client = Client::from_service(server.service());
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), "default");
    quotas.create(&of(json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}))).await.unwrap();
    let spec = pods.create(&pod("a", &json!({"priorityClassName": "none"}))).await.unwrap().spec.unwrap();
    assert_eq!((spec.priority, spec.tolerations, spec.service_account_name), (None, None, None));
    let nodes: Api<Node> = Api::cluster(client);
    let node = nodes.create(&of(json!({"metadata": {"name": "n"}}))).await.unwrap();
    assert!(node.spec.and_then(|spec| spec.taints).is_none());
}

#[tokio::test]
async fn owner_references_need_permission_if_enforced() {
    for enforced in [false, true] {
        let mut builder = ApiServer::builder().rbac();
        if enforced {
            builder = builder.enable_admission_plugin("OwnerReferencesPermissionEnforcement");
        }
        let server = builder.start().await.unwrap();
        let rules =
            json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "patch"]}]);
        let role = json!({"metadata": {"name": "r"}, "rules": rules});
        let binding = json!({"metadata": {"name": "r"}, "subjects": [{"kind": "User", "name": "bob"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}});
        for (plural, object) in [("roles", role), ("rolebindings", binding)] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/default/{plural}");
            let request = http::Request::builder().method(Method::POST).uri(path);
            let request = request.header("content-type", "application/json").body(object.to_string().into()).unwrap();
            assert_eq!(server.handle(request).await.status(), 201);
        }
        let maps: Api<ConfigMap> =
            Api::namespaced(Client::from_service(server.service_as(User::new("bob"))), "default");
        let owner = maps.create(&map("owner")).await.unwrap();
        let reference = |blocks: bool| {
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid,
                "blockOwnerDeletion": blocks}])
        };
        let owned = |name: &str, blocks: bool| -> ConfigMap {
            of(json!({"metadata": {"name": name, "ownerReferences": reference(blocks)}}))
        };
        maps.create(&owned("free", false)).await.unwrap();
        let blocking = maps.create(&owned("blocking", true)).await;
        let changed = {
            maps.create(&map("changed")).await.unwrap();
            let patch = json!({"metadata": {"ownerReferences": reference(false)}});
            maps.patch("changed", klient::Patch::merge(patch)).await
        };
        let messages =
            [blocking, changed].map(|outcome| outcome.err().map(|error| error.status().unwrap().message.clone()));
        match enforced {
            false => assert_eq!(messages, [None, None]),
            true => assert_eq!(
                messages,
                [
                    Some("configmaps \"blocking\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>".to_owned()),
                    Some("configmaps \"changed\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>".to_owned()),
                ]
            ),
        }
    }
}

#[tokio::test]
async fn namespace_need_not_exist_if_its_plugin_is_off() {
    let server = ApiServer::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_service(server.service()), "absent");
    assert!(maps.create(&map("a")).await.unwrap_err().is_not_found());
    let server = ApiServer::builder().disable_admission_plugin("NamespaceLifecycle").start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_service(server.service()), "absent");
    maps.create(&map("a")).await.unwrap();
}

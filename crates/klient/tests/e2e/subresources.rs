//! Subresources of built-in kinds and of a custom resource, in both encodings, as far as a server without kubelets has
//! them.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::{SelfSubjectReview, TokenRequest},
    certificates::v1::CertificateSigningRequest,
    core::v1::{Binding, Endpoints, Namespace, Node, Pod, Service, ServiceAccount},
    policy::v1::PodDisruptionBudget,
};
use klient::{
    Api, ErrorKind, Patch, Resource,
    client::{ScaleClient, auth::StaticAuth},
    options::LogOptions,
    resource::ApiResource,
};
use serde_json::{Value, json};

use crate::{
    cluster::{both_clients, namespace, or_skip},
    custom::{Widget, widgets},
    kinds::certificate_request,
};

fn from<K: Resource>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

async fn make<K: Resource>(api: &Api<K>, value: Value) -> K {
    api.create(&from(value)).await.unwrap()
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [
        {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}}]}})
}

/// Sets the status of a pod to running and ready, as a kubelet would.
async fn run(pods: &Api<Pod>, name: &str) {
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.status().patch(name, Patch::merge(status)).await.unwrap();
}

#[tokio::test]
async fn scale_client_scales_deployments_and_custom_resources() {
    for (form, client) in or_skip!(both_clients()) {
        let widget = widgets(&client).await;
        let namespace = namespace(&client, &format!("scale-{form}")).await;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        make(
            &deployments,
            json!({"metadata": {"name": "one"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}}),
        )
        .await;
        make::<Widget>(
            &Api::namespaced(client.clone(), &namespace),
            json!({"metadata": {"name": "one"}, "spec": {"size": 1, "replicas": 1}}),
        )
        .await;
        let scales = ScaleClient::new(client.clone(), namespace);
        for resource in [ApiResource::of::<Deployment>(), widget] {
            let mut scale = scales.get(&resource, "one").await.unwrap();
            assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(1), "{resource:?}");
            scale.spec.as_mut().unwrap().replicas = Some(2);
            let updated = scales.update(&resource, &scale).await.unwrap();
            assert_eq!(updated.spec.unwrap().replicas, Some(2), "{resource:?}");
            assert!(scales.update(&resource, &scale).await.unwrap_err().is_conflict());
            let set = scales.set_replicas(&resource, "one", 3).await.unwrap();
            assert_eq!(set.spec.unwrap().replicas, Some(3), "{resource:?}");
            assert!(scales.get(&resource, "none").await.unwrap_err().is_not_found());
        }
        let deployment = deployments.get("one").await.unwrap();
        assert_eq!(deployment.spec.replicas, Some(3));
        assert_eq!(deployments.scale().get("one").await.unwrap().spec.unwrap().replicas, Some(3));
    }
}

#[tokio::test]
async fn eviction_waits_for_the_disruption_budget() {
    for (form, client) in or_skip!(both_clients()) {
        let namespace = namespace(&client, &format!("eviction-{form}")).await;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let evict = async |name: &str| pods.evict(name).await;
        make(&pods, pod("free")).await;
        run(&pods, "free").await;
        assert!(evict("free").await.unwrap().is_success());
        assert!(evict("free").await.unwrap_err().is_not_found());

        make(&pods, pod("kept")).await;
        run(&pods, "kept").await;
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(client, &namespace);
        make(
            &budgets,
            json!({"metadata": {"name": "b"}, "spec": {
            "minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}}),
        )
        .await;
        // Sets the number that a controller would compute.
        let allow = async |allowed: i32| {
            let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed,
                "currentHealthy": 1, "desiredHealthy": 1 - allowed, "expectedPods": 1}});
            budgets.status().patch("b", Patch::merge(status)).await.unwrap();
        };
        allow(0).await;
        let refused = evict("kept").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooManyRequests);
        assert_eq!(refused.status().unwrap().causes()[0].reason, "DisruptionBudget");
        allow(1).await;
        assert!(evict("kept").await.unwrap().is_success());
        let status = budgets.get("b").await.unwrap().status.unwrap();
        assert_eq!(status.disruptions_allowed, Some(0));
    }
}

#[tokio::test]
async fn pod_is_bound_once_and_changed_while_it_runs() {
    for (form, client) in or_skip!(both_clients()) {
        let namespace = namespace(&client, &format!("binding-{form}")).await;
        let node = json!({"metadata": {"name": namespace}, "status": {
            "capacity": {"cpu": "4", "memory": "8Gi"}, "allocatable": {"cpu": "4", "memory": "8Gi"}}});
        make::<Node>(&Api::cluster(client.clone()), node).await;
        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        make(&pods, pod("a")).await;
        let binding: Binding = from(json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": namespace}}));
        assert!(pods.bind(&binding).await.unwrap().is_success());
        assert!(pods.bind(&binding).await.unwrap_err().is_conflict());
        run(&pods, "a").await;
        let mut bound = pods.get("a").await.unwrap();
        assert_eq!(bound.spec.as_ref().unwrap().node_name.as_ref(), Some(&namespace));

        let debugger = serde_json::from_value(json!([{"name": "debug", "image": "debug:1"}])).unwrap();
        bound.spec.as_mut().unwrap().ephemeral_containers = Some(debugger);
        let debugged = pods.ephemeral_containers().update("a", &bound).await.unwrap();
        assert_eq!(debugged.spec.unwrap().ephemeral_containers.unwrap()[0].name, "debug");

        let more = Patch::strategic(json!({"spec": {"containers": [
            {"name": "web", "resources": {"requests": {"cpu": "150m"}}}]}}));
        let resized = pods.resize().patch("a", more.clone()).await.unwrap();
        let resources = resized.spec.unwrap().containers.remove(0).resources.unwrap();
        assert_eq!(resources.requests.unwrap()["cpu"].0, "150m");
        let below = Patch::strategic(json!({"spec": {"containers": [
            {"name": "web", "resources": {"limits": {"cpu": "1m"}}}]}}));
        let refused = pods.resize().patch("a", below.clone()).await.unwrap_err();
        assert!(refused.is_invalid(), "{refused}");
    }
}

#[tokio::test]
async fn token_of_a_service_account_is_accepted() {
    for (form, client) in or_skip!(both_clients()) {
        let namespace = namespace(&client, &format!("token-{form}")).await;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
        let request: TokenRequest = from(json!({"metadata": {}, "spec": {"audiences": [], "expirationSeconds": 600}}));
        let issued = accounts.create_token("default", &request).await.unwrap();
        let token = issued.status.unwrap().token.unwrap();
        let client = client.to_builder().auth(StaticAuth::bearer(&token).unwrap()).build();
        let reviews: Api<SelfSubjectReview> = Api::cluster(client);
        let review = reviews.create(&SelfSubjectReview::default()).await.unwrap();
        let user = review.status.unwrap().user_info.unwrap().username.unwrap();
        assert_eq!(user, format!("system:serviceaccount:{namespace}:default"));
    }
}

#[tokio::test]
async fn certificate_is_approved_and_namespace_finalized() {
    for (form, client) in or_skip!(both_clients()) {
        let requests: Api<CertificateSigningRequest> = Api::cluster(client.clone());
        let name = format!("approval-{form}");
        let mut request = make(
            &requests,
            json!({"metadata": {"name": name}, "spec": {
            "request": certificate_request(), "signerName": "example.com/x", "usages": ["client auth"]}}),
        )
        .await;
        let approved = json!([{"type": "Approved", "status": "True", "reason": "Test"}]);
        request.status.get_or_insert_default().conditions = serde_json::from_value(approved).unwrap();
        let approved = requests.update_approval(&request).await.unwrap();
        assert_eq!(approved.status.unwrap().conditions.unwrap()[0].type_, "Approved");

        let namespaces: Api<Namespace> = Api::cluster(client);
        let made = make(&namespaces, json!({"metadata": {"name": format!("finalize-{form}")}})).await;
        let name = made.metadata.name.as_deref().unwrap();
        namespaces.delete(name).await.unwrap();
        let mut ending = namespaces.get(name).await.unwrap();
        assert_eq!(ending.status.as_ref().unwrap().phase.as_deref(), Some("Terminating"));
        ending.spec.as_mut().unwrap().finalizers = None;
        namespaces.finalize(&ending).await.unwrap();
        assert!(namespaces.get(name).await.unwrap_err().is_not_found());
    }
}

/// Waits at most half a minute for a response.
async fn soon<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), answer).await.expect("a response in bounded time")
}

#[tokio::test]
async fn unavailable_logs_are_errors_with_a_reason() {
    for (form, client) in or_skip!(both_clients()) {
        let name = format!("log-{form}");
        let namespace = namespace(&client, &name).await;
        let nodes: Api<Node> = Api::cluster(client.clone());
        make(&nodes, json!({"metadata": {"name": name}})).await;
        let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}});
        nodes.status().patch(&name, Patch::merge(status)).await.unwrap();

        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        make(&pods, pod("a")).await;
        // Without a node, the log is empty, which is not an error of the server.
        assert_eq!(pods.logs("a").await.unwrap(), "");
        assert!(pods.logs("none").await.unwrap_err().is_not_found());
        let binding: Binding = from(json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": name}}));
        pods.bind(&binding).await.unwrap();
        let error = pods.logs("a").container("none").await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("container none is not valid"), "{error}");
        for options in [LogOptions::default(), LogOptions::default().follow()] {
            let error = soon(pods.logs("a").options(options.clone()).stream()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.to_string().contains("127.0.0.1"), "{error}");
        }
    }
}

#[tokio::test]
async fn proxy_without_endpoints_is_an_error_of_the_server() {
    for (form, client) in or_skip!(both_clients()) {
        let namespace = namespace(&client, &format!("proxy-{form}")).await;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        make(&pods, pod("a")).await;
        let error = soon(pods.proxy(Method::GET, "a:80", "/").bytes()).await.unwrap_err();
        assert!(error.status().is_some(), "{error:?}");
        let services: Api<Service> = Api::namespaced(client.clone(), &namespace);
        make(&services, json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})).await;
        // Creates the object that a controller would create.
        make::<Endpoints>(&Api::namespaced(client.clone(), &namespace), json!({"metadata": {"name": "s"}})).await;
        let error = soon(services.proxy(Method::GET, "s:80", "/x").bytes()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("no endpoints available for service"), "{error}");
        let nodes: Api<Node> = Api::cluster(client);
        let error = soon(nodes.proxy(Method::GET, "no-such-node", "/healthz").bytes()).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
    }
}

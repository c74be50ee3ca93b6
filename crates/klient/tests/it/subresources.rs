//! Subresources, metadata-only objects and scale.

use http::Method;
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::TokenRequest,
    autoscaling::v1::Scale,
    core::v1::{Binding, Node, Pod, Secret, Service, ServiceAccount},
    policy::v1::Eviction,
};
use klient::{
    Api, Clientset, ErrorKind, Patch, WatchEvent,
    client::{DynamicClient, ScaleClient},
    object::DynamicObject,
    options::{DeleteOptions, LogOptions},
    request::{media_type, subresource},
    resource::{ApiResource, GroupVersionKind, Scope},
};
use serde_json::json;

use crate::support::scripted::{Script, Seen, fed, json_response, map, response, streamed};

fn lines(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(|seen| format!("{} {}", seen.request.method(), seen.request.uri())).collect()
}

fn pods(script: &std::sync::Arc<Script>) -> Api<Pod> {
    Api::namespaced(script.client(), "shop")
}

fn done() -> http::Response<klient::client::http::Body> {
    json_response(201, &json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}))
}

#[tokio::test]
async fn rejected_eviction_is_an_error_with_the_reason() {
    let refused = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.", "code": 429,
        "details": {"causes": [{"reason": "DisruptionBudget", "message": "needs 2"}]}});
    let script = Script::new([done(), json_response(429, &refused)]);
    let pods = pods(&script);
    let delete = DeleteOptions::default().grace_period(std::time::Duration::from_secs(5));
    assert!(pods.evict("web-0").options(delete.clone()).await.unwrap().is_success());
    let error = pods.evict("web-0").options(delete.clone()).await.unwrap_err();
    assert!(error.is_too_many_requests());
    assert_eq!(error.status().unwrap().details.as_ref().unwrap().causes[0].message, "needs 2");
    let seen = script.played();
    assert_eq!(lines(&seen), ["POST /api/v1/namespaces/shop/pods/web-0/eviction"; 2]);
    let sent: Eviction = klient::wire::decode_body(seen[0].request.body()).unwrap();
    assert_eq!((sent.metadata.name.as_deref(), sent.metadata.namespace.as_deref()), (Some("web-0"), Some("shop")));
    assert_eq!(sent.delete_options.unwrap().grace_period_seconds, Some(5));
}

#[tokio::test]
async fn binding_token_and_containers_use_their_subresources() {
    let token = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
        "spec": {"audiences": []}, "status": {"token": "t", "expirationTimestamp": "2026-01-02T03:04:05Z"}});
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web-0"}});
    let script = Script::new([done(), json_response(201, &token), json_response(200, &pod), json_response(200, &pod)]);
    let pods = pods(&script);
    let mut binding = Binding::default();
    binding.metadata.name = Some("web-0".to_owned());
    binding.target.name = Some("node-1".to_owned());
    pods.bind(&binding).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(script.client(), "shop");
    let made = accounts.create_token("robot", &TokenRequest::default()).await.unwrap();
    assert_eq!(made.status.unwrap().token.as_deref(), Some("t"));
    let patch = Patch::strategic(json!({"spec": {"ephemeralContainers": [{"name": "debug"}]}}));
    pods.ephemeral_containers().patch("web-0", patch.clone()).await.unwrap();
    pods.resize().get("web-0").await.unwrap();
    assert_eq!(
        lines(&script.played()),
        [
            "POST /api/v1/namespaces/shop/pods/web-0/binding",
            "POST /api/v1/namespaces/shop/serviceaccounts/robot/token",
            "PATCH /api/v1/namespaces/shop/pods/web-0/ephemeralcontainers",
            "GET /api/v1/namespaces/shop/pods/web-0/resize",
        ]
    );
}

#[tokio::test]
async fn any_subresource_can_be_requested_by_name() {
    let script = Script::new([json_response(200, &json!({"kind": "Odd", "apiVersion": "x/v1", "value": 3}))]);
    let odd = pods(&script).subresource::<DynamicObject>("odd").get("web-0").await.unwrap();
    assert_eq!(odd.data["value"], 3);
    assert_eq!(lines(&script.played()), ["GET /api/v1/namespaces/shop/pods/web-0/odd"]);
}

#[tokio::test]
async fn proxy_request_cannot_leave_the_object() {
    let script = Script::new((0..3).map(|_| response(200, "text/plain", "hi")));
    assert_eq!(pods(&script).proxy(Method::GET, "web-0:8080", "/a b/c").bytes().await.unwrap(), "hi");
    let services: Api<Service> = Api::namespaced(script.client(), "shop");
    services.proxy(Method::POST, "https:web:443", "reload").bytes().await.unwrap();
    let nodes: Api<Node> = Api::cluster(script.client());
    nodes.proxy(Method::GET, "node-1", "/metrics").param("x", 1).bytes().await.unwrap();
    let error = nodes.proxy(Method::GET, "node-1", "/../../secrets").bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        lines(&script.played()),
        [
            "GET /api/v1/namespaces/shop/pods/web-0:8080/proxy/a%20b/c",
            "POST /api/v1/namespaces/shop/services/https:web:443/proxy/reload",
            "GET /api/v1/nodes/node-1/proxy/metrics?x=1",
        ]
    );
}

#[tokio::test]
async fn log_is_split_into_lines_across_chunks() {
    let (feed, body) = fed();
    let script = Script::new([streamed(200, "text/plain", body)]);
    let options = LogOptions::default().follow().container("app");
    let mut log = pods(&script).logs("web-0").options(options.clone()).stream().await.unwrap();
    for chunk in ["one\nt", "wo\r", "\n\nthr", "ee"] {
        feed.send(Ok(chunk.into())).unwrap();
    }
    feed.send(Ok(vec![b'\n', 0xff, b'x'].into())).unwrap();
    drop(feed);
    let mut seen = Vec::new();
    while let Some(line) = log.line().await.unwrap() {
        seen.push(line);
    }
    assert_eq!(seen, ["one", "two", "", "three", "\u{fffd}x"]);
    assert_eq!(lines(&script.played()), ["GET /api/v1/namespaces/shop/pods/web-0/log?container=app&follow=true"]);
}

#[tokio::test]
async fn overlong_log_line_is_returned_in_pieces() {
    let script = Script::new([response(200, "text/plain", vec![b'x'; 3 << 20])]);
    let mut log = pods(&script).logs("web-0").stream().await.unwrap();
    let mut sizes = Vec::new();
    while let Some(line) = log.line().await.unwrap() {
        sizes.push(line.len());
    }
    assert_eq!(sizes, [1 << 20; 3]);
}

#[tokio::test(start_paused = true)]
async fn only_a_followed_log_may_be_idle() {
    let script = Script::new([crate::support::scripted::Step::Silence, crate::support::scripted::Step::Silence]);
    let pods = pods(&script);
    let hour = std::time::Duration::from_secs(3600);
    let follow = LogOptions::default().follow();
    assert!(tokio::time::timeout(hour, pods.logs("web-0").options(follow).stream()).await.is_err());
    let ended = tokio::time::timeout(hour, pods.logs("web-0")).await.unwrap();
    assert!(ended.unwrap_err().is_timeout());
}

fn partial(name: &str) -> serde_json::Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": name, "uid": "u"}})
}

#[tokio::test]
async fn metadata_requests_transfer_only_metadata() {
    let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"}, "items": [partial("a"), partial("b")]});
    let event = json!({"type": "ADDED", "object": partial("c")});
    let script =
        Script::new([json_response(200, &partial("a")), json_response(200, &list), json_response(200, &event)]);
    let secrets = Api::<Secret>::namespaced(script.client(), "shop").metadata();
    assert_eq!(secrets.get("a").await.unwrap().metadata.uid.as_deref(), Some("u"));
    assert_eq!(secrets.list().await.unwrap().items.len(), 2);
    let mut watch = secrets.watch().await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
    let seen = script.played();
    for (seen, form) in seen.iter().zip(["PartialObjectMetadata", "PartialObjectMetadataList", "PartialObjectMetadata"])
    {
        let accept = seen.request.headers()["accept"].to_str().unwrap();
        assert!(accept.split(',').all(|one| one.contains(&format!(";as={form};g=meta.k8s.io;v=v1"))), "{accept}");
        assert!(accept.starts_with(media_type::PROTOBUF), "{accept}");
    }
}

#[tokio::test]
async fn whole_object_instead_of_metadata_is_an_error() {
    let whole = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"key": "c2VjcmV0"}});
    let list = json!({"kind": "SecretList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]});
    let script = Script::new([json_response(200, &whole), json_response(200, &list)]);
    let secrets = Api::<Secret>::namespaced(script.client(), "shop").metadata();
    let error = secrets.get("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(!format!("{error:?}").contains("c2VjcmV0"), "{error:?}");
    let error = secrets.list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("SecretList"), "{error}");
}

#[tokio::test]
async fn metadata_only_object_cannot_be_written() {
    let script = Script::new(Vec::<crate::support::scripted::Step>::new());
    let maps = script.maps().metadata();
    let object = klient::object::PartialObjectMeta::of(&map("web"));
    assert!(maps.create(&object).await.unwrap_err().is_invalid());
    assert!(maps.update(&object).await.unwrap_err().is_invalid());
    script.played();
}

#[tokio::test]
async fn scale_client_scales_any_kind() {
    let scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "web"},
        "spec": {"replicas": 3}, "status": {"replicas": 1}});
    let script = Script::new((0..4).map(|_| json_response(200, &scale)));
    let scales = ScaleClient::new(script.client(), "shop");
    let widgets = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Namespaced);
    let got = scales.set_replicas(&widgets, "web", 3).await.unwrap();
    assert_eq!(got.spec.as_ref().unwrap().replicas, Some(3));
    scales.update(&widgets, &got).await.unwrap();
    let deployments = Clientset::new(script.client()).apps_v1().deployments("shop");
    deployments.scale().get("web").await.unwrap();
    deployments.subresource::<Scale>(subresource::SCALE).get("web").await.unwrap();
    assert_eq!(
        lines(&script.played()),
        [
            "PATCH /apis/example.com/v1/namespaces/shop/widgets/web/scale",
            "PUT /apis/example.com/v1/namespaces/shop/widgets/web/scale",
            "GET /apis/apps/v1/namespaces/shop/deployments/web/scale",
            "GET /apis/apps/v1/namespaces/shop/deployments/web/scale",
        ]
    );
}

#[tokio::test]
async fn dynamic_kinds_are_sent_as_json() {
    let widget = json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "big"}, "size": 3});
    let script = Script::new([json_response(200, &widget), json_response(200, &json!({"items": []}))]);
    let widgets = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Namespaced);
    let dynamic = DynamicClient::new(script.client());
    let got = dynamic.in_namespace(&widgets, "shop").get("big").await.unwrap();
    assert_eq!(got.data["size"], 3);
    dynamic.all(&widgets).list().await.unwrap();
    let seen = script.played();
    assert_eq!(
        lines(&seen),
        ["GET /apis/example.com/v1/namespaces/shop/widgets/big", "GET /apis/example.com/v1/widgets"]
    );
    assert!(seen.iter().all(|seen| seen.request.headers()["accept"] == media_type::JSON));
}

#[tokio::test]
async fn status_is_written_to_its_subresource() {
    let deployment = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}});
    let script = Script::new([json_response(200, &deployment), json_response(200, &deployment)]);
    let api: Api<Deployment> = Api::namespaced(script.client(), "shop");
    let object: Deployment = serde_json::from_value(deployment).unwrap();
    api.update_status(&object).await.unwrap();
    let patch = Patch::merge(json!({"status": {"replicas": 1}}));
    api.status().patch("web", patch.clone()).await.unwrap();
    assert_eq!(
        lines(&script.played()),
        [
            "PUT /apis/apps/v1/namespaces/shop/deployments/web/status",
            "PATCH /apis/apps/v1/namespaces/shop/deployments/web/status"
        ]
    );
}

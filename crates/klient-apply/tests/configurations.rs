//! Configurations as JSON: only what was set, with the keys of list items.

#![cfg(all(feature = "apps", feature = "core"))]
#![allow(clippy::unwrap_used)]

use klient_apply::{
    apps::v1::DeploymentApply,
    core::v1::{ConfigMapApply, SecretApply, ServiceApply, TolerationApply},
    meta::v1::ObjectMetaApply,
};
use serde_json::json;

#[test]
fn configuration_has_only_the_fields_that_were_set() {
    let map = ConfigMapApply::new("settings", "shop").data([("a", "1")]).labels([("app", "web")]);
    let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
        "metadata": {"name": "settings", "namespace": "shop", "labels": {"app": "web"}}});
    assert_eq!(map.to_value(), expected);
    assert_eq!(serde_json::to_value(&map).unwrap(), expected);
}

#[test]
fn list_items_have_their_keys_and_are_merged_by_them() {
    let web = DeploymentApply::new("web", "shop").spec(|spec| {
        spec.template(|template| {
            template.spec(|pod| {
                pod.container("server", |server| server.image("x:1").env("A", |variable| variable.value("1")))
                    .container("server", |server| {
                        server.image("x:2").name("other").port(80, "TCP", |port| port.name("http"))
                    })
                    .container("side", |side| side)
                    .tolerations([TolerationApply::new().key("gpu").operator("Exists")])
            })
        })
    });
    let server = json!({"name": "server", "image": "x:2", "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]});
    let pod = json!({"containers": [server, {"name": "side"}], "tolerations": [{"key": "gpu", "operator": "Exists"}]});
    assert_eq!(web.to_value()["spec"], json!({"template": {"spec": pod}}));
}

#[test]
fn values_have_the_form_of_the_api() {
    let service = ServiceApply::new("web", "shop").spec(|spec| {
        spec.port(80, "TCP", |port| port.target_port("http")).port(53, "UDP", |port| port.target_port(5353))
    });
    let ports = json!([{"port": 80, "protocol": "TCP", "targetPort": "http"}, {"port": 53, "protocol": "UDP", "targetPort": 5353}]);
    assert_eq!(service.to_value()["spec"]["ports"], ports);
    let secret = SecretApply::new("s", "shop").data([("key", b"\x01\x02".as_slice())]);
    assert_eq!(secret.to_value()["data"], json!({"key": "AQI="}));
    let metadata = ObjectMetaApply::new().finalizers(["a/b"]).finalizers(["a/b", "c/d"]);
    assert_eq!(metadata.to_value(), json!({"finalizers": ["a/b", "c/d"]}));
}

//! Creates a node of a kubelet, and a pod on it.

use anyhow::Result;
use bench_jobs::{Arguments, FLEET, forwarded_port, name};
use k8s_openapi::api::core::v1::{Node, Pod};
use klient::{Api, Client};
use serde_json::json;

use crate::pods::make_namespace;

/// The address of the arguments is that of the kubelet.
pub(crate) async fn fill(arguments: &Arguments, client: &Client) -> Result<()> {
    make_namespace(client, FLEET).await?;
    let node = json!({"metadata": {"name": FLEET}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": forwarded_port(arguments)?}},
    }});
    Api::<Node>::cluster(client.clone()).create(&serde_json::from_value(node)?).await?;
    let containers = json!([{"name": "app", "image": "app"}]);
    let pod = json!({"metadata": {"name": name(0)}, "spec": {"nodeName": FLEET, "containers": containers}});
    Api::<Pod>::namespaced(client.clone(), FLEET).create(&serde_json::from_value(pod)?).await?;
    println!("{}", json!({}));
    Ok(())
}

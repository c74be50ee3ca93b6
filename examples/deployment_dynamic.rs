//! Creates, changes and deletes a Deployment without its type: the way for kinds that are known only at run time.
//!
//! Needs a cluster: the one of your kubeconfig, or the one that it runs in.
//!
//! ```text
//! cargo run -p klient-examples --example deployment_dynamic
//! ```

#![allow(clippy::print_stdout)]

use klient::{
    Client,
    client::{
        DynamicClient,
        discovery::{CachedDiscovery, DiscoveryClient, RestMapper},
    },
    object::DynamicObject,
};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::infer()?;
    // The server resolves the short name, as it would for a custom resource.
    let mapper = RestMapper::new(CachedDiscovery::in_memory(DiscoveryClient::new(client.clone())));
    let resource = mapper.resolve("deploy").await?.resource;
    println!("deploy is {}", resource.gvr());

    let namespace = client.default_namespace().to_owned();
    let deployments = DynamicClient::new(client).in_namespace(&resource, &namespace);
    let demo = DynamicObject::new(NAME, &resource).data(json!({"spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "demo"}},
        "template": {
            "metadata": {"labels": {"app": "demo"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]},
        },
    }}));
    let created = deployments.create(&demo).await?;
    println!("created {NAME} with {} replicas", created.data["spec"]["replicas"]);

    let mut changed = deployments.get(NAME).await?;
    changed.data["spec"]["replicas"] = json!(1);
    changed.data["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:1.29");
    let updated = deployments.update(&changed).await?;
    println!("updated it to {}", updated.data["spec"]["template"]["spec"]["containers"][0]["image"]);

    deployments.delete(NAME).background().await?;
    println!("deleted {NAME}");
    Ok(())
}

const NAME: &str = "demo-dynamic";

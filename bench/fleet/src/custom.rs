//! Creates custom resources.

use std::time::Duration;

use anyhow::{Result, bail};
use bench_jobs::{Arguments, CUSTOM_GROUP, CUSTOM_KIND, CUSTOM_PLURAL, CUSTOM_VERSION, FLEET, name};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use klient::{Api, Client, client::DynamicClient};
use klient::{
    object::DynamicObject,
    resource::{ApiResource, GroupVersionKind, Scope},
};
use serde_json::json;

use crate::WORKERS;

/// Creates the kind and its objects, each of which contains a pod template.
pub(crate) async fn fill(arguments: &Arguments, client: &Client) -> Result<()> {
    define(client).await?;
    let kind = GroupVersionKind::new(CUSTOM_GROUP, CUSTOM_VERSION, CUSTOM_KIND);
    let resource = ApiResource::new(kind, CUSTOM_PLURAL, Scope::Namespaced);
    let api = DynamicClient::new(client.clone()).in_namespace(&resource, FLEET);
    wait_until_served(&api).await?;
    let pod = arguments.pod()?;
    let data = json!({
        "spec": {
            "replicas": 3,
            "revisionHistoryLimit": 5,
            "strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {"duration": "10m"}}, {"setWeight": 60}]}},
            "template": {
                "metadata": {"labels": pod.metadata.labels, "annotations": pod.metadata.annotations},
                "spec": pod.spec,
            },
        },
        "status": {
            "observedGeneration": 1,
            "replicas": 3,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "AvailableReason", "message": "enough replicas are available"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "progressed"},
            ],
        },
    });
    let template = DynamicObject::new("", &resource).within(FLEET).data(data);
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (api, template) = (api.clone(), template.clone());
        let numbers = (worker..arguments.size).step_by(WORKERS);
        workers.spawn(async move {
            for number in numbers {
                let mut rollout = template.clone();
                rollout.metadata.name = Some(name(number));
                api.create(&rollout).await?;
            }
            Ok::<_, klient::Error>(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    let bytes = serde_json::to_vec(&api.get(&name(0)).await?)?.len();
    println!("{}", json!({"object_bytes": bytes}));
    Ok(())
}

async fn define(client: &Client) -> Result<()> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": format!("{CUSTOM_PLURAL}.{CUSTOM_GROUP}")},
        "spec": {
            "group": CUSTOM_GROUP,
            "scope": "Namespaced",
            "names": {"kind": CUSTOM_KIND, "plural": CUSTOM_PLURAL},
            "versions": [
                {"name": CUSTOM_VERSION, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }))?;
    Api::<CustomResourceDefinition>::cluster(client.clone()).create(&definition).await?;
    Ok(())
}

async fn wait_until_served(api: &Api<DynamicObject>) -> Result<()> {
    for _ in 0..300 {
        if api.list().await.is_ok() {
            return Ok(());
        }
        // The server reports the kind as established before all of its parts serve it.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("the kind is not served");
}

//! A `Controller`: every labelled map owns a secret, which is created again when it is deleted, and deleted with its owner.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{DeleteParams, PostParams},
    runtime::{
        controller::{Action, Controller},
        finalizer::{Event, finalizer},
        watcher,
    },
};
use serde_json::json;

use crate::{ask, eventually, make};

pub(crate) async fn check(client: &Client) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let labelled = watcher::Config::default().labels("of=kube");
    let controller = Controller::new(maps.clone(), labelled).owns(secrets.clone(), watcher::Config::default()).run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_millis(50)),
        Arc::new(client.clone()),
    );
    let running = tokio::spawn(controller.for_each(|_| std::future::ready(())));
    let owner = make(&maps, "owner").await?;
    let first = eventually("a secret is made", async || Ok(secrets.get_opt("owner").await?)).await?;
    ensure!(
        first
            .owner_references()
            .first()
            .is_some_and(|found| found.uid == owner.metadata.uid.clone().unwrap_or_default())
    );
    ask("end-watches")?;
    secrets.delete("owner", &DeleteParams::default()).await?;
    eventually("another secret is made", async || {
        Ok(secrets.get_opt("owner").await?.filter(|found| found.uid() != first.uid()))
    })
    .await?;
    let deleted = maps.delete("owner", &DeleteParams::default()).await?;
    ensure!(deleted.is_left(), "it went at once, in spite of its finalizer");
    eventually("both are gone", async || {
        let left = (maps.get_opt("owner").await?, secrets.get_opt("owner").await?);
        Ok((left == (None, None)).then_some(()))
    })
    .await?;
    running.abort();
    Ok(())
}

async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.as_ref().clone(), "default");
    let secrets: Api<Secret> = Api::namespaced(client.as_ref().clone(), "default");
    finalizer(&maps, "kube.klient.invalid/secrets", map, |event| async {
        match event {
            Event::Apply(map) => {
                let secret =
                    json!({"metadata": {"name": map.name_any(), "ownerReferences": [map.controller_owner_ref(&())]}});
                let secret = serde_json::from_value(secret).map_err(kube::Error::SerdeError)?;
                match secrets.create(&PostParams::default(), &secret).await {
                    Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
                    outcome => drop(outcome?),
                }
            }
            // Its dependents are deleted with it.
            Event::Cleanup(_) => {}
        }
        Ok::<_, kube::Error>(Action::await_change())
    })
    .await
    .map_err(Box::new)
}

type Error = Box<kube::runtime::finalizer::Error<kube::Error>>;

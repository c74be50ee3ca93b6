//! Jobs that write.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use bench_jobs::{Answer, Arguments, FIELD_MANAGER, MADE, Mark, Measured, change, check, made, name, spread};
use k8s_openapi::api::core::v1::Pod;
use klient::{Api, Client};
use klient::{
    Patch,
    options::{DeleteCollectionOptions, DeleteOptions, PatchOptions},
};

pub(crate) async fn create(arguments: &Arguments, client: &Client) -> Result<(Measured, Answer)> {
    let api: Api<Pod> = Api::namespaced(client.clone(), MADE);
    let objects = Arc::new(made(arguments)?);
    let mark = Mark::now()?;
    spread(arguments, |numbers| {
        let (api, objects) = (api.clone(), Arc::clone(&objects));
        async move {
            let mut last = None;
            for number in numbers {
                let pod = api.create(&objects[number]).await?;
                check(&pod, &name(number))?;
                last = Some(pod);
            }
            Ok(last)
        }
    })
    .await?;
    let measured = mark.measured()?;
    let answer = api.list().await?.items.iter().collect();
    let all = DeleteCollectionOptions::default().delete(DeleteOptions::default().grace_period(Duration::ZERO));
    api.delete_collection().options(all).await?;
    Ok((measured, answer))
}

pub(crate) async fn patch(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let size = arguments.size;
    let mark = Mark::now()?;
    let last = spread(arguments, |numbers| {
        let fleet = fleet.clone();
        async move {
            let options = PatchOptions::default().manager(FIELD_MANAGER);
            let mut last = None;
            for number in numbers {
                let name = name(number % size);
                let pod = fleet.patch(&name, Patch::merge(change(number))).options(options.clone()).await?;
                check(&pod, &name)?;
                last = Some(pod);
            }
            Ok(last)
        }
    })
    .await?;
    Ok((mark.measured()?, last.iter().collect()))
}

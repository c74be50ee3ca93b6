//! Jobs that read.

use anyhow::{Result, ensure};
use bench_jobs::{Answer, Arguments, Mark, Measured, check, name, spread};
use k8s_openapi::api::core::v1::Pod;
use klient::Api;

pub(crate) async fn get(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let size = arguments.size;
    let mark = Mark::now()?;
    let last = spread(arguments, |numbers| {
        let fleet = fleet.clone();
        async move {
            let mut last = None;
            for number in numbers {
                let name = name(number % size);
                let pod = fleet.get(&name).await?;
                check(&pod, &name)?;
                last = Some(pod);
            }
            Ok(last)
        }
    })
    .await?;
    Ok((mark.measured()?, last.iter().collect()))
}

pub(crate) async fn list(arguments: &Arguments, fleet: &Api<Pod>) -> Result<(Measured, Answer)> {
    let mark = Mark::now()?;
    let mut last = Vec::new();
    for _ in 0..arguments.count {
        let list = fleet.list().await?;
        ensure!(list.items.len() == arguments.size, "{} objects", list.items.len());
        last = list.items;
    }
    Ok((mark.measured()?, last.iter().collect()))
}

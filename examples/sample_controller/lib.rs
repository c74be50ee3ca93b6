//! The sample controller of Kubernetes on klient: each `Foo` has a Deployment of the name and size that it says.
//!
//! `foo` is the kind, `crd.yaml` its definition, `controller` what is done about it. `main.rs` runs it: on an embedded API
//! server, or on a cluster. `klient demo` shows it at work.

#![allow(clippy::disallowed_names, reason = "the kind is called Foo")]

mod controller;
#[path = "../docs.rs"]
mod docs;
mod foo;

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use klient::{
    Api, Client, Error,
    retry::{Backoff, retry_on_error},
    wait::{Until, wait_for},
};

pub use self::{
    controller::{CONTROLLER, RESYNC, Syncer, builder, events, new_deployment},
    foo::{Foo, FooSpec, FooStatus},
};

/// The definition of the kind, as a file for kubectl.
pub const DEFINITION: &str = include_str!("crd.yaml");

/// Installs the kind, if it is not there, and waits until it is served.
///
/// # Errors
///
/// If the server refuses, or does not serve it in time.
pub async fn install(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    let definition: CustomResourceDefinition = serde_saphyr::from_str(DEFINITION).context("crd.yaml")?;
    let name = definition.metadata.name.clone().unwrap_or_default();
    match definitions.create(&definition).await {
        Ok(_) => {}
        Err(error) if error.is_already_exists() => {}
        Err(error) => return Err(error).context("the definition of Foo cannot be installed"),
    }
    let established = Until::condition("Established", "True");
    wait_for(&definitions, &name, &established, Duration::from_secs(30)).await.context("Foo is not served")?;
    // What says so is a moment ahead of what serves.
    let foos: Api<Foo> = Api::all(client.clone());
    let patience = Backoff::default().factor(2.0).steps(11);
    let list = async || foos.list().limit(1).await;
    retry_on_error(patience, Error::is_not_found, list).await.context("Foo is not served")?;
    Ok(())
}

//! Kubernetes' sample controller, built on klient: each [`Foo`] gets a Deployment with the name and size of its spec.
//!
//! `foo` is the kind, `crd.yaml` its definition and `controller` the reconciler. `klient demo` runs it on an embedded API server;
//! `examples/sample_controller` in the repository is a program around it, with its tests.

#![allow(clippy::disallowed_names, reason = "the kind is called Foo")]

mod controller;
mod foo;

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use klient::{
    Api, Client, Error, ErrorKind, Result,
    retry::{Backoff, retry_on_error},
    wait::{Until, wait_for},
};

pub use self::{
    controller::{CONTROLLER, RESYNC, Syncer, builder, events, new_deployment},
    foo::{Foo, FooSpec, FooStatus},
};

/// The CustomResourceDefinition of [`Foo`], as YAML.
pub const DEFINITION: &str = include_str!("sample_controller/crd.yaml");

/// Creates the CustomResourceDefinition of [`Foo`] if it does not exist, and waits until the server serves the kind.
///
/// # Errors
///
/// Returns an error if the server rejects the definition, or does not serve the kind within 30 seconds.
pub async fn install(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    let definition: CustomResourceDefinition = serde_saphyr::from_str(DEFINITION)
        .map_err(|error| Error::new(ErrorKind::Decode, "cannot parse crd.yaml").with_source(error))?;
    let name = definition.metadata.name.clone().unwrap_or_default();
    match definitions.create(&definition).await {
        Ok(_) => {}
        Err(error) if error.is_already_exists() => {}
        Err(error) => return Err(error),
    }
    let established = Until::condition("Established", "True");
    wait_for(&definitions, &name, &established, Duration::from_secs(30)).await?;
    // The condition becomes true a moment before the server serves the kind.
    let foos: Api<Foo> = Api::all(client.clone());
    let backoff = Backoff::default().factor(2.0).steps(11);
    retry_on_error(backoff, Error::is_not_found, async || foos.list().limit(1).await).await?;
    Ok(())
}

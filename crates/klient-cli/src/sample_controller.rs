//! Kubernetes' sample controller, built on klient: each [`Foo`] gets a Deployment with the name and size of its spec.
//!
//! `foo` is the kind, `crd.yaml` its definition for kubectl, and `controller` the reconciler. `klient demo` runs it on an embedded API server;
//! `examples/sample_controller` in the repository is a program around it, with its tests.

#![allow(clippy::disallowed_names, reason = "the kind is called Foo")]

mod controller;
mod foo;

use klient::{Client, CustomResourceExt as _, Result};

pub use self::{
    controller::{CONTROLLER, RESYNC, Syncer, builder, events, new_deployment},
    foo::{Foo, FooSpec, FooStatus},
};

/// Installs the CustomResourceDefinition of [`Foo`], and waits until the server serves the kind.
///
/// # Errors
///
/// Returns an error if the server rejects the definition, or does not serve the kind within 30 seconds.
pub async fn install(client: &Client) -> Result<()> {
    klient::custom::install(client, Foo::crd()).manager("sample-controller").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crd_yaml_is_the_derived_definition() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sample_controller/crd.yaml");
        let derived = klient::custom::to_yaml([Foo::crd()]).unwrap();
        let expected =
            format!("# The kind that the sample controller reconciles: kubectl apply -f crd.yaml\n{derived}");
        let found = std::fs::read_to_string(path).unwrap();
        assert_eq!(found, expected, "{path} is out of date");
    }
}

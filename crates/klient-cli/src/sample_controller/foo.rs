//! `Foo`: a custom resource that asks for a Deployment.

use klient::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired Deployment of a Foo.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "samplecontroller.k8s.io", version = "v1alpha1", kind = "Foo", namespaced, status = "FooStatus")]
#[kube(doc = "A request for a Deployment with a name and a size.", derive = "Default", derive = "PartialEq")]
// The group ends in k8s.io, which is guarded: this says that it was not reviewed.
#[kube(annotation("api-approved.kubernetes.io", "unapproved, experimental-only; a sample"))]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment.
    #[serde(default)]
    pub deployment_name: String,
    /// The desired number of replicas. If unset, the controller leaves the Deployment's size alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
}

/// The observed state of a Foo.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// The number of available replicas of the Deployment.
    #[serde(default)]
    pub available_replicas: i32,
}

impl FooSpec {
    /// Creates a specification from the name and the size of the Deployment.
    pub fn new(deployment_name: &str, replicas: Option<i32>) -> Self {
        Self { deployment_name: deployment_name.to_owned(), replicas }
    }
}

//! `Foo`: a custom resource that asks for a Deployment.

use k8s_openapi::{Metadata, NamespaceResourceScope, Resource, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::{Deserialize, Serialize};

/// A request for a Deployment with a name and a size.
// `kind` and `apiVersion` are written and never read: the type determines both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub struct Foo {
    #[serde(skip_deserializing)]
    api_version: ApiVersion,
    /// The standard object metadata.
    pub metadata: ObjectMeta,
    /// The desired Deployment.
    #[serde(default)]
    pub spec: FooSpec,
    /// The observed state, as last written by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<FooStatus>,
}

/// The desired Deployment of a [`Foo`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment.
    #[serde(default)]
    pub deployment_name: String,
    /// The desired number of replicas. If unset, the controller leaves the Deployment's size alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// The observed state of a [`Foo`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// The number of available replicas of the Deployment.
    #[serde(default)]
    pub available_replicas: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
enum ApiVersion {
    #[default]
    #[serde(rename = "samplecontroller.k8s.io/v1alpha1")]
    V1Alpha1,
}

impl Foo {
    /// Returns a `Foo` that has not been sent to a server yet.
    pub fn new(name: &str, deployment_name: &str, replicas: Option<i32>) -> Self {
        Self {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: FooSpec { deployment_name: deployment_name.to_owned(), replicas },
            ..Self::default()
        }
    }
}

impl Resource for Foo {
    const API_VERSION: &'static str = "samplecontroller.k8s.io/v1alpha1";
    const GROUP: &'static str = "samplecontroller.k8s.io";
    const KIND: &'static str = "Foo";
    const VERSION: &'static str = "v1alpha1";
    const URL_PATH_SEGMENT: &'static str = "foos";
    type Scope = NamespaceResourceScope;
}

impl Metadata for Foo {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

//! The kind: a wish for a Deployment.

use k8s_openapi::{Metadata, NamespaceResourceScope, Resource, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::{Deserialize, Serialize};

/// A wish for a Deployment of some name and size.
// The tag is written and not read, and so is the version: both are what the type says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub struct Foo {
    #[serde(skip_deserializing)]
    api_version: ApiVersion,
    /// Name, namespace and so on.
    pub metadata: ObjectMeta,
    /// What is wished.
    #[serde(default)]
    pub spec: FooSpec,
    /// What there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<FooStatus>,
}

/// What is wished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment.
    #[serde(default)]
    pub deployment_name: String,
    /// How many replicas it should have; as many as it likes, if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// How many replicas are up.
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
    /// A wish, to be sent to a server.
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

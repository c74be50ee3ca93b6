//! Several Rust types as versions of one custom resource: hub and spoke.
//!
//! One type is the hub. Every other version is a [`Spoke`], which converts to and from the hub; the way between two spokes is
//! through the hub. Invariant: of the metadata, a conversion changes labels and annotations alone, as the server demands.
//! In controller-runtime: `pkg/conversion`.

mod convert;
mod random;
mod review;
mod round_trip;
mod stash;

use std::{fmt, marker::PhantomData};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, WebhookClientConfig, WebhookConversion,
};
use klient_core::Resource;
use serde_json::Value;

pub use self::{
    convert::ConversionError,
    review::{ConversionRequest, ConversionResponse, ConversionReview},
    round_trip::RoundTripError,
    stash::{stash, take_stash},
};
use super::{CustomResourceExt, MergeError, merge_crds};
use crate::BoxError;

/// A version of a custom resource that converts to and from another one, the hub.
///
/// Whatever the spoke has no field for must survive the way to the spoke and back: [`stash()`] keeps it in an annotation.
#[doc(alias = "Convertible")]
#[doc(alias = "ConvertTo")]
#[doc(alias = "ConvertFrom")]
pub trait Spoke: Resource + CustomResourceExt {
    /// The type of the hub.
    type Hub: Resource + CustomResourceExt;

    /// Converts to the hub.
    ///
    /// # Errors
    ///
    /// Returns an error if the object has no form in the hub's version. The whole request of the server fails then.
    fn into_hub(self) -> Result<Self::Hub, BoxError>;

    /// Converts from the hub.
    ///
    /// # Errors
    ///
    /// Returns an error if the object has no form in this version. The whole request of the server fails then.
    fn from_hub(hub: Self::Hub) -> Result<Self, BoxError>;
}

/// The versions of one custom resource: the merged definition, and the conversion between them.
///
/// ```
/// use klient::{BoxError, CustomResource, custom::{Spoke, Versions}};
///
/// mod v1 {
///     #[derive(klient::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
///     #[kube(group = "example.com", version = "v1", kind = "Shop", namespaced)]
///     pub struct ShopSpec { pub square_meters: i64 }
/// }
/// mod v1beta1 {
///     #[derive(klient::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
///     #[kube(group = "example.com", version = "v1beta1", kind = "Shop", namespaced)]
///     pub struct ShopSpec { pub size: i64 }
/// }
///
/// impl Spoke for v1beta1::Shop {
///     type Hub = v1::Shop;
///
///     fn into_hub(self) -> Result<v1::Shop, BoxError> {
///         Ok(v1::Shop { metadata: self.metadata, spec: v1::ShopSpec { square_meters: self.spec.size } })
///     }
///
///     fn from_hub(hub: v1::Shop) -> Result<Self, BoxError> {
///         Ok(Self { metadata: hub.metadata, spec: v1beta1::ShopSpec { size: hub.spec.square_meters } })
///     }
/// }
///
/// let versions = Versions::of::<v1::Shop>().and::<v1beta1::Shop>();
/// assert_eq!(versions.crd()?.spec.versions.len(), 2);
/// versions.check_round_trips(100, 1)?; // In a test.
/// # Ok::<_, BoxError>(())
/// ```
pub struct Versions<Hub> {
    hub: Version,
    spokes: Vec<Version>,
    stored: &'static str,
    webhook: Option<WebhookClientConfig>,
    hub_type: PhantomData<fn() -> Hub>,
}

/// One version, with its type erased.
struct Version {
    api_version: &'static str,
    name: &'static str,
    definition: fn() -> CustomResourceDefinition,
    /// Decodes and encodes an object, so that it has the form of the type.
    normalize: fn(Value) -> Result<Value, BoxError>,
    to_hub: fn(Value) -> Result<Value, BoxError>,
    from_hub: fn(Value) -> Result<Value, BoxError>,
}

impl Versions<()> {
    /// Starts with the hub, which is the stored version unless [`stored`](Versions::stored) names another.
    pub fn of<Hub: Resource + CustomResourceExt>() -> Versions<Hub> {
        let hub = Version {
            api_version: Hub::API_VERSION,
            name: Hub::VERSION,
            definition: Hub::crd,
            normalize: convert::normalize::<Hub>,
            to_hub: Ok,
            from_hub: Ok,
        };
        Versions { stored: hub.name, hub, spokes: Vec::new(), webhook: None, hub_type: PhantomData }
    }
}

impl<Hub: Resource + CustomResourceExt> Versions<Hub> {
    /// Adds a version.
    #[must_use]
    pub fn and<S: Spoke<Hub = Hub>>(mut self) -> Self {
        self.spokes.push(Version {
            api_version: S::API_VERSION,
            name: S::VERSION,
            definition: S::crd,
            normalize: convert::normalize::<S>,
            to_hub: convert::to_hub::<S>,
            from_hub: convert::from_hub::<S>,
        });
        self
    }

    /// Sets the stored version.
    #[must_use]
    pub fn stored<K: Resource + CustomResourceExt>(mut self) -> Self {
        self.stored = K::VERSION;
        self
    }

    /// Sets the webhook that the server calls to convert objects. Without one, the server changes `apiVersion` alone, and prunes
    /// the fields that the other version does not have.
    ///
    /// Leave `ca_bundle` unset if another program, such as cert-manager, injects it.
    #[must_use]
    pub fn webhook(mut self, config: WebhookClientConfig) -> Self {
        self.webhook = Some(config);
        self
    }

    /// Returns the definition with all versions.
    ///
    /// # Errors
    ///
    /// Returns an error if the types differ in group, kind, plural or scope, or if two have the same version.
    pub fn crd(&self) -> Result<CustomResourceDefinition, MergeError> {
        let mut definition = merge_crds(self.all().map(|version| (version.definition)()).collect(), self.stored)?;
        definition.spec.conversion = self.webhook.as_ref().map(|config| CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(WebhookConversion {
                client_config: Some(config.clone()),
                conversion_review_versions: vec!["v1".to_owned()],
            }),
        });
        Ok(definition)
    }

    fn all(&self) -> impl Iterator<Item = &Version> {
        std::iter::once(&self.hub).chain(&self.spokes)
    }
}

impl<Hub> fmt::Debug for Versions<Hub> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spokes: Vec<_> = self.spokes.iter().map(|spoke| spoke.api_version).collect();
        f.debug_struct("Versions")
            .field("hub", &self.hub.api_version)
            .field("spokes", &spokes)
            .field("stored", &self.stored)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

//! Custom resources: types that derive [`CustomResource`](crate::CustomResource), their definitions, versions and installation.
//!
//! ```
//! use klient::{CustomResource, CustomResourceExt};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
//! #[kube(printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"))]
//! pub struct ShopSpec {
//!     size: u32,
//! }
//!
//! #[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
//! pub struct ShopStatus {
//!     open: bool,
//! }
//!
//! let shop = Shop::new("corner", ShopSpec { size: 3 });
//! assert_eq!(Shop::crd_name(), "shops.example.com");
//! klient::custom::check(&Shop::crd()).unwrap(); // In a test.
//! # let _ = shop;
//! ```
//!
//! | to | use |
//! |---|---|
//! | generate a type and its definition | [`CustomResource`](derive@crate::CustomResource), [`CustomResourceExt`] |
//! | add CEL rules and merge strategies | [`KubeSchema`](derive@crate::KubeSchema), [`Rule`], [`ListMerge`], [`MapMerge`] |
//! | find mistakes in a test | [`check()`] |
//! | evaluate CEL rules before a write | `#[kube(cel)]`, with the feature `cel` |
//! | apply parts of objects | [`Apply`](derive@crate::Apply), [`crate::apply`] |
//! | print definitions | [`print_crds`], [`to_yaml`] |
//! | install a definition | [`install()`] |
//! | have several versions | [`Versions`], [`Spoke`] |
//! | move stored objects to another version | [`migrate_storage`] |
//!
//! # Types of kube-derive
//!
//! A type that kube-derive generated implements kube's `Resource`, not `k8s_openapi`'s. If it is your own, change the import:
//! the attributes are the same, and the new type works with kube's `Api` as well. If it is in another crate, adapt it:
//!
//! ```
//! # mod other {
//! #     #[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
//! #     pub struct Shop { pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta }
//! # }
//! #[derive(klient::Resource, Clone, Debug, serde::Deserialize, serde::Serialize)]
//! #[serde(transparent)]
//! #[resource(group = "example.com", version = "v1", kind = "Shop", plural = "shops", namespaced)]
//! struct Shop(other::Shop);
//!
//! fn works_with_klient<K: klient::Resource>() {}
//! works_with_klient::<Shop>();
//! ```

#[cfg(feature = "cel")]
mod cel;
mod cel_cost;
mod check;
mod definition;
#[cfg(feature = "client")]
mod install;
mod merge;
#[cfg(feature = "client")]
mod migrate;
#[doc(hidden)]
pub mod private;
mod rule;
mod schema;
mod versions;
mod yaml;

#[cfg(feature = "cel")]
pub use self::cel::{InvalidObject, Rules, Violation, ViolationKind};
pub use self::{
    check::{InvalidDefinition, Problem, check},
    definition::{CustomResourceExt, HasSpec, HasStatus},
    merge::{MergeError, merge_crds},
    rule::{ListMerge, MapMerge, MergeStrategy, Message, Reason, Rule, StructMerge},
    schema::structural_schema,
    versions::{
        ConversionError, ConversionRequest, ConversionResponse, ConversionReview, RoundTripError, Spoke, Versions,
        stash, take_stash,
    },
    yaml::{print_crds, to_yaml},
};
#[cfg(feature = "client")]
pub use self::{
    install::{Install, install},
    migrate::{Migrated, migrate_storage},
};

//! Custom types, each derived twice from the same text: by klient and by kube-derive 5.
//!
//! The tests compare the definitions byte for byte, and have the real kube-apiserver and the embedded server take them.

#![allow(missing_docs, reason = "the types are test data")]
#![allow(unreachable_pub, reason = "the types are test data")]
#![allow(clippy::duplicate_mod, reason = "both derives read the same text")]
#![allow(dead_code, unused_attributes, reason = "kube-derive generates attributes that have no effect")]

// kube-derive's default paths begin with `::kube`. This crate stands in for kube, which would bring its client.
extern crate self as kube;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
pub use kube_core as core;
pub use kube_derive::KubeSchema;

/// A type of the corpus.
pub struct Entry {
    pub name: &'static str,
    pub definition: CustomResourceDefinition,
    /// Whether servers take the definition. Those without a schema, or without a stored version, are refused.
    pub is_accepted: bool,
}

/// Declares specifications, and a function that returns their definitions.
macro_rules! specs {
    ($($(#[$attribute:meta])* $root:ident $spec:ident $kind:literal { $($body:tt)* })*) => {
        $(
            #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
            #[kube(group = "corpus.klient.invalid", version = "v1", kind = $kind)]
            $(#[$attribute])*
            pub struct $spec { $($body)* }
        )*

        pub fn all() -> Vec<crate::Entry> {
            vec![$(crate::entry($kind, <$root as CustomResourceExt>::crd(), true)),*]
        }
    };
}

fn entry(name: &'static str, definition: CustomResourceDefinition, is_accepted: bool) -> Entry {
    Entry { name, definition, is_accepted }
}

/// Includes the corpus in a module that has `derives`.
macro_rules! corpus {
    ($($module:ident $path:literal)*) => {
        $(
            #[path = $path]
            pub mod $module;
        )*

        /// Returns all definitions.
        pub fn all() -> Vec<crate::Entry> {
            [$($module::all()),*].into_iter().flatten().collect()
        }
    };
}
pub(crate) use corpus;

pub mod by_klient;
pub mod by_kube;
pub mod judged;

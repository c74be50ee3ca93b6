//! The corpus, derived by kube-derive.

mod derives {
    pub use kube_core::crd::{CustomResourceExt, merge_crds};
    pub use kube_derive::{CustomResource, KubeSchema};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

crate::corpus! {
    scalars "../corpus/scalars.rs"
    containers "../corpus/containers.rs"
    structs "../corpus/structs.rs"
    serde_attributes "../corpus/serde_attributes.rs"
    enums "../corpus/enums.rs"
    kubernetes "../corpus/kubernetes.rs"
    rules "../corpus/rules.rs"
    definitions "../corpus/definitions.rs"
}

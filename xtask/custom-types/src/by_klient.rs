//! The corpus, derived by klient.

mod derives {
    pub use klient::{CustomResource, CustomResourceExt, KubeSchema, custom::merge_crds};
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

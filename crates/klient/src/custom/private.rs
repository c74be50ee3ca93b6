//! Functions and types that generated code calls. Not part of the API.

pub use super::{
    definition::{Column, Definition, Scale, metadata},
    rule::{add_property_rule, add_rule, replace_properties, set_merge},
};

/// A type whose `x_kube` attributes are read.
#[diagnostic::on_unimplemented(
    message = "the `x_kube` attributes of `{Self}` have no effect on its schema",
    label = "does not derive `KubeSchema`",
    note = "derive `KubeSchema` instead of `JsonSchema`"
)]
pub trait KubeSchema {}

//! Functions and types that generated code calls. Not part of the API.

pub use super::{
    definition::{Column, Definition, Scale, metadata},
    rule::{add_property_rule, add_rule, replace_properties, set_merge},
};

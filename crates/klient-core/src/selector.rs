//! Selectors: the objects that a list, a watch or a controller selects.
//!
//! A selector is a list of requirements that must all match. Requirements are sorted, so that equal selectors print
//! alike. In client-go: `k8s.io/apimachinery/pkg/labels` and `.../fields`.

use std::fmt;

mod convert;
mod field;
mod label;
mod label_parse;

#[cfg(test)]
mod tests;

pub use convert::UnrepresentableSelectorError;
pub use field::{FieldOperator, FieldRequirement, FieldSelector, ParseFieldSelectorError};
pub use label::{LabelOperator, LabelRequirement, LabelSelector};
pub use label_parse::ParseLabelSelectorError;

/// An invalid selector, with the location and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSelectorError {
    place: String,
    why: String,
}

impl InvalidSelectorError {
    fn new(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self { place: place.into(), why: why.into() }
    }
}

impl fmt::Display for InvalidSelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "selector at {}: {}", self.place, self.why)
    }
}

impl std::error::Error for InvalidSelectorError {}

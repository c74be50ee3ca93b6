//! Expressions, their results, their errors and their costs.

#![allow(clippy::unwrap_used)]

mod checks;
mod evaluation;
mod libraries;

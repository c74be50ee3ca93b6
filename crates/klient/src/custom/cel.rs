//! CEL rules, evaluated on the client: before a write, and in tests (feature `cel`).
//!
//! `klient-cel` evaluates expressions, for the embedded server as well. Types of CEL crates stay private.
//!
//! Invariant: the verdict is the server's, or the rule is reported as one that cannot be evaluated here.

mod defaults;
mod rules;
mod violation;
mod walk;

pub use self::{
    rules::Rules,
    violation::{InvalidObject, Violation, ViolationKind},
};

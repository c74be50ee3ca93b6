//! CEL rules, evaluated on the client: before a write, and in tests (feature `cel`).
//!
//! The `cel` crate evaluates expressions, with the functions of Kubernetes from `kube-cel`, both of the kube-rs and cel-rust
//! projects. `kube-cel` 0.8 also has a validator, which is not used: it escapes every `_` in names, passes `null` for an optional
//! `oldSelf`, pairs the items of lists by position, and does not know that the server tolerates unchanged values. Types of both
//! crates stay private, because each of their releases changes them.
//!
//! Invariant: the verdict is the server's, or the rule is reported as one that cannot be evaluated here.

mod defaults;
mod rules;
mod value;
mod violation;
mod walk;

pub use self::{
    rules::Rules,
    violation::{InvalidObject, Violation, ViolationKind},
};

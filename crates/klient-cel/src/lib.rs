//! CEL expressions as the Kubernetes API server evaluates them.
//!
//! An [`Expression`] is parsed once, and evaluated with [`Variables`] and a [`Budget`]. Values are those of the `cel` crate.
//!
//! ```
//! use klient_cel::{Budget, Expression, Variables, to_cel};
//! use serde_json::{Value, json};
//!
//! let rule = Expression::parse("self.replicas <= self.max").unwrap();
//! let mut variables = Variables::new();
//! variables.set("self", to_cel(&json!({"replicas": 3, "max": 5}), &Value::Null));
//! assert_eq!(rule.evaluate(&variables, &mut Budget::new(1_000_000)), Ok(true.into()));
//! ```
//!
//! Invariants: evaluation ends, because each step is paid for; no expression panics or recurses without limit.

mod authorizer;
mod budget;
mod check;
mod error;
mod evaluate;
mod expression;
mod value;

pub use self::{
    authorizer::{AccessQuery, Authorizer, Decision},
    budget::Budget,
    check::{CheckError, Scope, Type, check, with_metadata},
    error::EvaluationError,
    evaluate::{Variables, optional_of},
    expression::{Expression, ParseError},
    value::{escape, from_cel, to_cel},
};
pub use kube_cel::cel::Value as CelValue;

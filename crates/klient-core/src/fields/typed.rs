//! Values of a type of a schema.

mod compare;
mod form;
mod merge;
mod reconcile;
mod remove;
mod to_set;
mod validate;

use std::sync::Arc;

use serde_json::Value;

pub use self::compare::Comparison;
use super::{
    problem::Problems,
    schema::{Schema, TypeId},
    set::FieldSet,
    value,
};

/// A value of a type of a schema.
///
/// Clones share the value.
#[doc(alias("typed.TypedValue"))]
#[derive(Clone, Debug)]
pub struct Typed {
    schema: Arc<Schema>,
    ty: TypeId,
    value: Arc<Value>,
}

/// Whether lists may have several items with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They may: in stored objects, and in objects of creates and updates.
    Allowed,
    /// They may not: in applied configurations.
    Refused,
}

impl Typed {
    /// Returns a value after checking that it fits its type.
    ///
    /// # Errors
    ///
    /// Returns every field that does not fit.
    pub fn new(
        schema: &Arc<Schema>,
        ty: TypeId,
        value: impl Into<Arc<Value>>,
        duplicates: Duplicates,
    ) -> Result<Self, Problems> {
        let typed = Self::unchecked(schema, ty, value);
        typed.validate(duplicates)?;
        Ok(typed)
    }

    /// Returns a value that is known to fit its type.
    pub fn unchecked(schema: &Arc<Schema>, ty: TypeId, value: impl Into<Arc<Value>>) -> Self {
        Self { schema: Arc::clone(schema), ty, value: value.into() }
    }

    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the value without its type.
    #[must_use]
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.value)
    }

    /// Returns the schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the type.
    #[must_use]
    pub fn type_id(&self) -> TypeId {
        self.ty
    }

    /// Returns whether the values are equal. `80` equals `80.0`.
    pub(super) fn equals(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value) || value::equals(&self.value, &other.value)
    }

    /// Returns the same type with another value.
    fn with(&self, value: Value) -> Self {
        Self { schema: Arc::clone(&self.schema), ty: self.ty, value: Arc::new(value) }
    }

    /// Returns the set with every declared field that has paths of the set below it.
    pub(super) fn with_declared_parents(&self, set: &FieldSet) -> FieldSet {
        set.with_declared_parents(&self.schema, Some(self.ty))
    }
}

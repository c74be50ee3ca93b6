//! Options of server-side apply.

use super::WriteQuery;
use crate::{FieldValidation, InvalidOptionError, Query};

/// Options of server-side apply, which always needs a field manager.
///
/// ```
/// use klient_core::{ApplyOptions, Query};
///
/// let mut query = Query::default();
/// ApplyOptions::new("my-controller").force().append_query(&mut query)?;
/// assert_eq!(query.as_str(), "fieldManager=my-controller&force=true");
/// # Ok::<(), klient_core::InvalidOptionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplyOptions {
    /// Who owns the fields that are applied.
    pub field_manager: String,
    /// Whether to take fields from other managers; otherwise that is a conflict. Controllers should.
    pub force: bool,
    /// Whether to do everything but store the result.
    pub dry_run: bool,
    /// What to do with unknown and repeated fields.
    pub field_validation: Option<FieldValidation>,
}

impl ApplyOptions {
    /// Applies as that manager.
    pub fn new(field_manager: impl Into<String>) -> Self {
        Self { field_manager: field_manager.into(), force: false, dry_run: false, field_validation: None }
    }

    /// Sets the field manager.
    #[must_use]
    pub fn manager(mut self, manager: impl Into<String>) -> Self {
        self.field_manager = manager.into();
        self
    }

    /// Takes over fields that other managers own.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Has the server do everything but store the result.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Sets what to do with unknown and repeated fields.
    #[must_use]
    pub fn field_validation(mut self, validation: FieldValidation) -> Self {
        self.field_validation = Some(validation);
        self
    }

    /// Adds these options to a query.
    ///
    /// # Errors
    ///
    /// If the field manager is empty, longer than 128 bytes or not printable.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        if self.field_manager.is_empty() {
            return Err(InvalidOptionError::new("fieldManager", "is required to apply: set it with `manager`"));
        }
        let write = WriteQuery {
            dry_run: self.dry_run,
            field_manager: Some(&self.field_manager),
            field_validation: self.field_validation,
        };
        write.validate()?;
        write.append(query);
        query.append_flag("force", self.force);
        Ok(())
    }
}

//! Options of server-side apply.

use super::WriteQuery;
use crate::{FieldValidation, InvalidOptionError, Query};

/// Options of server-side apply, which requires a field manager.
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
    /// The field manager that owns the applied fields.
    pub field_manager: String,
    /// Whether to take fields over from other managers instead of failing with a conflict. Controllers should.
    pub force: bool,
    /// Whether the server does everything but store the result.
    pub dry_run: bool,
    /// How the server treats unknown and duplicate fields.
    pub field_validation: Option<FieldValidation>,
}

impl ApplyOptions {
    /// Creates options with that field manager.
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

    /// Requests a dry run: the server does everything but store the result.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Sets how the server treats unknown and duplicate fields.
    #[must_use]
    pub fn field_validation(mut self, validation: FieldValidation) -> Self {
        self.field_validation = Some(validation);
        self
    }

    /// Adds these options to a query.
    ///
    /// # Errors
    ///
    /// Returns an error if the field manager is empty, longer than 128 bytes or not printable.
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

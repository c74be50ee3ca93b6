//! Options of writing an object: the same for create, update and patch, each with its own type.

use super::WriteQuery;
use crate::{FieldValidation, InvalidOptionError, Query};

macro_rules! write_options {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            /// Whether the server does everything but store the result.
            pub dry_run: bool,
            /// The field manager; by default, the server derives it from the user agent.
            pub field_manager: Option<String>,
            /// How the server treats unknown and duplicate fields.
            pub field_validation: Option<FieldValidation>,
        }

        impl $name {
            /// Requests a dry run: the server does everything but store the result.
            #[must_use]
            pub fn dry_run(mut self) -> Self {
                self.dry_run = true;
                self
            }

            /// Sets the field manager.
            #[must_use]
            pub fn manager(mut self, manager: impl Into<String>) -> Self {
                self.field_manager = Some(manager.into());
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
                let write = WriteQuery {
                    dry_run: self.dry_run,
                    field_manager: self.field_manager.as_deref(),
                    field_validation: self.field_validation,
                };
                write.validate()?;
                write.append(query);
                Ok(())
            }
        }
    };
}

write_options!(
    /// Options of creating an object.
    CreateOptions
);
write_options!(
    /// Options of replacing an object.
    UpdateOptions
);
write_options!(
    /// Options of a JSON, merge or strategic patch; those of an apply are [`ApplyOptions`](crate::ApplyOptions).
    PatchOptions
);

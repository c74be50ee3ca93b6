//! Options of deleting many objects at once: the selection, and how each is deleted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::Preconditions;
use crate::{DeleteOptions, InvalidOptionError, ListOptions, Query};

/// Options of deleting all objects that a list would return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteCollectionOptions {
    /// The selection of objects.
    pub list: ListOptions,
    /// How each object is deleted.
    pub delete: DeleteOptions,
}

impl DeleteCollectionOptions {
    /// Sets the selection of objects.
    #[must_use]
    pub fn list(mut self, list: ListOptions) -> Self {
        self.list = list;
        self
    }

    /// Sets how each object is deleted.
    #[must_use]
    pub fn delete(mut self, delete: DeleteOptions) -> Self {
        self.delete = delete;
        self
    }

    /// Sets the label selector: a `LabelSelector`, or a string.
    #[must_use]
    pub fn labels(mut self, selector: impl ToString) -> Self {
        self.list = self.list.labels(selector);
        self
    }

    /// Sets the field selector: a `FieldSelector`, or a string.
    #[must_use]
    pub fn fields(mut self, selector: impl ToString) -> Self {
        self.list = self.list.fields(selector);
        self
    }

    /// Adds the options that select objects to a query.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ListOptions::append_query`].
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        self.list.append_query(query)
    }

    /// Returns the body of the request, to be encoded in any format.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`DeleteOptions::to_openapi`], and an error if there are preconditions: servers ignore
    /// them here, so that more objects than intended would be deleted.
    pub fn to_openapi(&self) -> Result<meta::DeleteOptions, InvalidOptionError> {
        if self.delete.preconditions != Preconditions::default() {
            return Err(InvalidOptionError::new("preconditions", "apply to one object, not to a collection"));
        }
        self.delete.to_openapi()
    }
}

//! Options of deleting many objects at once: which ones, and how each is deleted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::Preconditions;
use crate::{DeleteOptions, InvalidOptionError, ListOptions, Query};

/// Options of deleting all objects that a list would show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteCollectionOptions {
    /// Which objects.
    pub list: ListOptions,
    /// How each is deleted.
    pub delete: DeleteOptions,
}

impl DeleteCollectionOptions {
    /// Sets which objects are deleted.
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

    /// Sets the labels to select by: a `LabelSelector`, or any text that is one.
    #[must_use]
    pub fn labels(mut self, selector: impl ToString) -> Self {
        self.list = self.list.labels(selector);
        self
    }

    /// Sets the fields to select by: a `FieldSelector`, or any text that is one.
    #[must_use]
    pub fn fields(mut self, selector: impl ToString) -> Self {
        self.list = self.list.fields(selector);
        self
    }

    /// Adds the options that say which objects to a query.
    ///
    /// # Errors
    ///
    /// Those of [`ListOptions::append_query`].
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        self.list.append_query(query)
    }

    /// The body of the request, to be encoded in any form.
    ///
    /// # Errors
    ///
    /// Those of [`DeleteOptions::to_openapi`], and if there are preconditions: servers ignore them here, so that more
    /// would be deleted than was meant.
    pub fn to_openapi(&self) -> Result<meta::DeleteOptions, InvalidOptionError> {
        if self.delete.preconditions != Preconditions::default() {
            return Err(InvalidOptionError::new("preconditions", "are about one object, not about a collection"));
        }
        self.delete.to_openapi()
    }
}

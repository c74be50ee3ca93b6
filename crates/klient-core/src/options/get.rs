//! Options of reading one object.

use crate::{InvalidOptionError, Query, VersionMatch};

/// Options of reading one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GetOptions {
    /// How fresh the object must be.
    pub version: VersionMatch,
}

impl GetOptions {
    /// Sets how fresh the object must be.
    #[must_use]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.version = version;
        self
    }

    /// Adds these options to a query.
    ///
    /// # Errors
    ///
    /// If an exact version is asked for, which a get cannot.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        let (version, _) = self.version.for_get()?;
        query.append_option("resourceVersion", version);
        Ok(())
    }
}

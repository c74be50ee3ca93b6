//! Options of reading one object.

use crate::{InvalidOptionError, Query, VersionMatch};

/// Options of reading one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GetOptions {
    /// The required version of the object.
    pub version: VersionMatch,
}

impl GetOptions {
    /// Sets the required version of the object.
    #[must_use]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.version = version;
        self
    }

    /// Adds these options to a query.
    ///
    /// # Errors
    ///
    /// Returns an error if an exact version is requested, which a get does not support.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        let (version, _) = self.version.for_get()?;
        query.append_option("resourceVersion", version);
        Ok(())
    }
}

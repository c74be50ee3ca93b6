//! Options of reading many objects at once.

use std::time::Duration;

use super::timeout_seconds;
use crate::{InvalidOptionError, Query, VersionMatch};

/// Options of a list.
///
/// ```
/// use klient_core::{ListOptions, Query, VersionMatch};
///
/// let options = ListOptions::default().labels("app=web").limit(500).version(VersionMatch::Any);
/// let mut query = Query::default();
/// options.append_query(&mut query)?;
/// assert_eq!(query.as_str(), "labelSelector=app%3Dweb&resourceVersion=0&limit=500");
/// # Ok::<(), klient_core::InvalidOptionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// Only objects with these labels; the printed form of a selector.
    pub label_selector: Option<String>,
    /// Only objects with these field values; the printed form of a selector.
    pub field_selector: Option<String>,
    /// Only objects of a part of the hash space: an alpha feature of new servers, which others ignore.
    pub shard_selector: Option<String>,
    /// How fresh the list must be.
    pub version: VersionMatch,
    /// At most so many objects in one answer; 0 for all. Servers ignore it with [`VersionMatch::Any`].
    pub limit: u32,
    /// Where to go on, as the previous page said. All other options must be those of that page.
    pub continue_token: Option<String>,
    /// How long the server may take.
    pub timeout: Option<Duration>,
}

impl ListOptions {
    /// Sets the labels to select by: a `LabelSelector`, or any text that is one.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that selectors and texts can be given in place")]
    pub fn labels(mut self, selector: impl ToString) -> Self {
        self.label_selector = Some(selector.to_string());
        self
    }

    /// Sets the fields to select by: a `FieldSelector`, or any text that is one.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that selectors and texts can be given in place")]
    pub fn fields(mut self, selector: impl ToString) -> Self {
        self.field_selector = Some(selector.to_string());
        self
    }

    /// Sets the part of the hash space to select by.
    #[must_use]
    pub fn shard_selector(mut self, selector: impl Into<String>) -> Self {
        self.shard_selector = Some(selector.into());
        self
    }

    /// Sets how fresh the list must be.
    #[must_use]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.version = version;
        self
    }

    /// Sets how many objects one answer may hold.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Sets where to go on, to what the previous page said.
    #[must_use]
    #[doc(alias = "Continue")]
    pub fn continue_token(mut self, token: impl Into<String>) -> Self {
        self.continue_token = Some(token.into());
        self
    }

    /// Sets how long the server may take; parts of a second count as a whole one.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds these options to a query.
    ///
    /// # Errors
    ///
    /// If a version is asked for together with a continue token, which has its own, or is `0` or empty; if the token
    /// is empty; if the timeout is zero.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        let (version, matching) = self.version.for_list(self.continue_token.is_some())?;
        let timeout = timeout_seconds(self.timeout)?;
        if self.continue_token.as_deref() == Some("") {
            // A server would start over, which makes a loop over pages endless.
            return Err(InvalidOptionError::new("continue", "is empty: leave it out for the first page"));
        }
        query
            .append_option("labelSelector", self.label_selector.as_deref())
            .append_option("fieldSelector", self.field_selector.as_deref())
            .append_option("shardSelector", self.shard_selector.as_deref())
            .append_option("resourceVersion", version)
            .append_option("resourceVersionMatch", matching)
            .append_option("limit", (self.limit > 0).then_some(self.limit))
            .append_option("continue", self.continue_token.as_deref())
            .append_option("timeoutSeconds", timeout);
        Ok(())
    }
}

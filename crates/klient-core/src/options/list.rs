//! Options of a list.

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
    /// The label selector.
    pub label_selector: Option<String>,
    /// The field selector.
    pub field_selector: Option<String>,
    /// The part of the hash space to select: an alpha feature of new servers, ignored by others.
    pub shard_selector: Option<String>,
    /// The required version of the list.
    pub version: VersionMatch,
    /// The maximum number of objects per response; 0 for all. Servers ignore it with [`VersionMatch::Any`].
    pub limit: u32,
    /// The token of the previous page. All other options must be those of that page.
    pub continue_token: Option<String>,
    /// The time limit of the server.
    pub timeout: Option<Duration>,
}

impl ListOptions {
    /// Sets the label selector: a `LabelSelector`, or a string.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass selectors and strings inline")]
    pub fn labels(mut self, selector: impl ToString) -> Self {
        self.label_selector = Some(selector.to_string());
        self
    }

    /// Sets the field selector: a `FieldSelector`, or a string.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass selectors and strings inline")]
    pub fn fields(mut self, selector: impl ToString) -> Self {
        self.field_selector = Some(selector.to_string());
        self
    }

    /// Sets the part of the hash space to select.
    #[must_use]
    pub fn shard_selector(mut self, selector: impl Into<String>) -> Self {
        self.shard_selector = Some(selector.into());
        self
    }

    /// Sets the required version of the list.
    #[must_use]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.version = version;
        self
    }

    /// Sets the maximum number of objects per response.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the token of the previous page.
    #[must_use]
    #[doc(alias = "Continue")]
    pub fn continue_token(mut self, token: impl Into<String>) -> Self {
        self.continue_token = Some(token.into());
        self
    }

    /// Sets the time limit of the server, rounded up to whole seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds these options to a query.
    ///
    /// # Errors
    ///
    /// Returns an error if a version is set together with a continue token, which has its own, or is `0` or empty; if
    /// the token is empty; or if the timeout is zero.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        let (version, matching) = self.version.for_list(self.continue_token.is_some())?;
        let timeout = timeout_seconds(self.timeout)?;
        if self.continue_token.as_deref() == Some("") {
            // A server would start again, which makes a loop over pages endless.
            return Err(InvalidOptionError::new("continue", "is empty: omit it for the first page"));
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

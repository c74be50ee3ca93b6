//! Options of a watch.

use std::time::Duration;

use super::timeout_seconds;
use crate::{InvalidOptionError, Query, ResourceVersion, VersionMatch};

/// Options of a watch.
///
/// ```
/// use klient_core::{Query, WatchOptions};
///
/// let mut query = Query::default();
/// WatchOptions::after("1234").bookmarks().append_query(&mut query)?;
/// assert_eq!(query.as_str(), "watch=true&resourceVersion=1234&allowWatchBookmarks=true");
/// # Ok::<(), klient_core::InvalidOptionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The label selector.
    pub label_selector: Option<String>,
    /// The field selector.
    pub field_selector: Option<String>,
    /// The part of the hash space to select: an alpha feature of new servers, ignored by others.
    pub shard_selector: Option<String>,
    /// The start: `Exact` for the changes after a version; the others send the current state first.
    pub version: VersionMatch,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// Whether the watch begins with the current state, ended by a bookmark. If unset, the version decides.
    pub send_initial_events: Option<bool>,
    /// The maximum duration; by default, the server selects 30 to 60 minutes.
    pub timeout: Option<Duration>,
}

impl WatchOptions {
    /// Creates options for the changes after the version of a list or a bookmark.
    pub fn after(version: impl Into<ResourceVersion>) -> Self {
        Self { version: VersionMatch::Exact(version.into()), ..Self::default() }
    }

    /// Creates options for a watch that begins with a consistent read of the current state, ended by a bookmark.
    #[doc(alias = "WatchList")]
    pub fn initial_events() -> Self {
        Self { allow_bookmarks: true, send_initial_events: Some(true), ..Self::default() }
    }

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

    /// Sets the start of the watch.
    #[must_use]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.version = version;
        self
    }

    /// Requests bookmarks.
    #[must_use]
    pub fn bookmarks(mut self) -> Self {
        self.allow_bookmarks = true;
        self
    }

    /// Sets whether the watch begins with the current state.
    #[must_use]
    pub fn send_initial_events(mut self, send: bool) -> Self {
        self.send_initial_events = Some(send);
        self
    }

    /// Sets the maximum duration, rounded up to whole seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds these options to a query, with the parameter that makes it a watch.
    ///
    /// # Errors
    ///
    /// Returns an error if the version does not fit the initial events (`Exact` requires none, `NotOlderThan` requires
    /// them), if initial events are requested without bookmarks, or if the timeout is zero.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        let (version, matching) = self.version.for_watch(self.send_initial_events)?;
        let timeout = timeout_seconds(self.timeout)?;
        if self.send_initial_events == Some(true) && !self.allow_bookmarks {
            let why = "requires bookmarks, which mark the end of the initial events";
            return Err(InvalidOptionError::new("sendInitialEvents", why));
        }
        query
            .append_flag("watch", true)
            .append_option("labelSelector", self.label_selector.as_deref())
            .append_option("fieldSelector", self.field_selector.as_deref())
            .append_option("shardSelector", self.shard_selector.as_deref())
            .append_option("resourceVersion", version)
            .append_option("resourceVersionMatch", matching)
            .append_option("sendInitialEvents", self.send_initial_events)
            .append_flag("allowWatchBookmarks", self.allow_bookmarks)
            .append_option("timeoutSeconds", timeout);
        Ok(())
    }
}

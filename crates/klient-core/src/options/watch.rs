//! Options of following changes.

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
    /// Only objects with these labels; the printed form of a selector.
    pub label_selector: Option<String>,
    /// Only objects with these field values; the printed form of a selector.
    pub field_selector: Option<String>,
    /// Only objects of a part of the hash space: an alpha feature of new servers, which others ignore.
    pub shard_selector: Option<String>,
    /// Where to start: `Exact` for the changes after a version; the others send a state first.
    pub version: VersionMatch,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// Whether the watch begins with the current state, ended by a bookmark; unset, the version decides.
    pub send_initial_events: Option<bool>,
    /// How long the watch may last; otherwise the server picks 30 to 60 minutes.
    pub timeout: Option<Duration>,
}

impl WatchOptions {
    /// A watch of the changes after a version, as a list or a bookmark gave it.
    pub fn after(version: impl Into<ResourceVersion>) -> Self {
        Self { version: VersionMatch::Exact(version.into()), ..Self::default() }
    }

    /// A watch that begins with the current state as one consistent read, ended by a bookmark.
    #[doc(alias = "WatchList")]
    pub fn initial_events() -> Self {
        Self { allow_bookmarks: true, send_initial_events: Some(true), ..Self::default() }
    }

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

    /// Sets where to start.
    #[must_use]
    pub fn version(mut self, version: VersionMatch) -> Self {
        self.version = version;
        self
    }

    /// Asks for bookmarks.
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

    /// Sets how long the watch may last; parts of a second count as a whole one.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds these options to a query, with the parameter that makes it a watch.
    ///
    /// # Errors
    ///
    /// If the version does not go with the initial events: `Exact` is for a watch without any, `NotOlderThan` for one
    /// with; if initial events are asked for without the bookmark that ends them; if the timeout is zero.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        let (version, matching) = self.version.for_watch(self.send_initial_events)?;
        let timeout = timeout_seconds(self.timeout)?;
        if self.send_initial_events == Some(true) && !self.allow_bookmarks {
            let why = "needs bookmarks: without them nothing tells where the initial events end";
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

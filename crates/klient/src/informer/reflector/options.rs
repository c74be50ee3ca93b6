//! Options of lists and watches.

use std::{fmt, sync::Arc, time::Duration};

use klient_proto::ManagedFields;

use crate::Error;

/// The way in which the current state is read before the watch is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FirstRead {
    /// A list. Its body is compressed on the way, which that of a watch is not: the cheapest for the client.
    #[default]
    List,
    /// A watch that begins with the current state, or a list if the server does not support that. The cheapest for the
    /// server's memory.
    #[doc(alias = "WatchListClient")]
    WatchList,
}

/// A function that is called with every failure.
pub type ErrorHandler = Arc<dyn Fn(&Error) + Send + Sync>;

/// Options of a reflector or informer.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReflectorOptions {
    /// The way in which the current state is read.
    pub first_read: FirstRead,
    /// Whether the very first read must return the most recent state. Otherwise the server may respond from its cache, with a
    /// state that can be older than one that this process saw before it was restarted.
    pub consistent_first_read: bool,
    /// The label selector of lists and watches.
    pub label_selector: Option<String>,
    /// The field selector of lists and watches.
    pub field_selector: Option<String>,
    /// The number of objects per page of a list. If unset, it depends on whether the server can respond from its cache.
    pub page_size: Option<u32>,
    /// The shortest timeout of a watch. Each watch gets a random one between this and twice this.
    pub min_watch_timeout: Duration,
    /// The time without an event or bookmark after which a watch is reopened, if the server sends bookmarks.
    pub max_silence: Duration,
    /// The time without an event after which a watch that should begin with the current state is replaced by a list.
    pub watch_list_deadline: Duration,
    /// Whether `managedFields` are kept or dropped.
    pub managed_fields: ManagedFields,
    /// Called with every failure. It must return quickly.
    pub on_error: Option<ErrorHandler>,
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            first_read: FirstRead::default(),
            consistent_first_read: false,
            label_selector: None,
            field_selector: None,
            page_size: None,
            min_watch_timeout: Duration::from_secs(5 * 60),
            max_silence: Duration::from_secs(3 * 60),
            watch_list_deadline: Duration::from_secs(30),
            managed_fields: ManagedFields::Drop,
            on_error: None,
        }
    }
}

impl fmt::Debug for ReflectorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorOptions")
            .field("first_read", &self.first_read)
            .field("label_selector", &self.label_selector)
            .field("field_selector", &self.field_selector)
            .finish_non_exhaustive()
    }
}

//! How a reflector lists and watches.

use std::{fmt, sync::Arc, time::Duration};

use klient_proto::ManagedFields;

use crate::Error;

/// How the current state is read before changes are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FirstRead {
    /// By a list. Its body is compressed on the way, which a watch's is not: the cheapest for this side.
    #[default]
    List,
    /// By a watch that begins with the current state, where the server has that; otherwise by a list. The cheapest for the
    /// server's memory.
    #[doc(alias = "WatchListClient")]
    WatchList,
}

/// Is told of failures.
pub type ErrorHandler = Arc<dyn Fn(&Error) + Send + Sync>;

/// Options of a reflector or informer.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReflectorOptions {
    /// How the current state is read.
    pub first_read: FirstRead,
    /// Whether even the very first read must be of the newest state. Otherwise the server may answer with a state that it has
    /// at hand, which can be older than one that this process saw before it was restarted.
    pub consistent_first_read: bool,
    /// Only objects with these labels.
    pub label_selector: Option<String>,
    /// Only objects with these field values.
    pub field_selector: Option<String>,
    /// How many objects a list asks for at once; unset, it depends on what the server reads the list from.
    pub page_size: Option<u32>,
    /// A watch is asked to end after this to twice this time.
    pub min_watch_timeout: Duration,
    /// How long a watch may be without a sign of life, from a server that sends bookmarks, before it is given up for dead.
    pub max_silence: Duration,
    /// How long a watch that begins with the current state may send nothing of it before a list is made instead.
    pub watch_list_deadline: Duration,
    /// What becomes of `managedFields`.
    pub managed_fields: ManagedFields,
    /// Told of every failure.
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

//! Informers: a local, indexed and current copy of the objects of one kind, shared by all users in the process.
//!
//! [`SharedInformer`] joins the parts. The [`Reflector`] lists and watches, and turns watch events into [deltas](Delta). The
//! [`DeltaFifo`] folds them per key. The [store](ThreadSafeStore) applies them in batches, and [handlers](EventHandler) receive
//! the resulting [events](Event). A [`Lister`] reads the store. Objects stay in wire form until the typed object is requested.
//! In client-go: `tools/cache`.

mod apply;
mod builder;
mod delta_fifo;
mod delta_queue;
#[cfg(feature = "client")]
pub(crate) mod factory;
mod handler;
mod index;
mod list_watch;
pub(crate) mod lister;
#[cfg(feature = "client")]
mod merged;
mod metrics;
#[cfg(feature = "client")]
mod namespaces;
pub(crate) mod narrow;
mod object;
mod processor;
#[cfg(feature = "client")]
mod references;
mod reflector;
mod registration;
mod run;
mod scope;
pub(crate) mod shared_informer;
mod store;
mod trie;

#[cfg(feature = "client")]
pub(crate) use self::factory::InformerFactory;
use self::shared_informer::{Handle, stopped};
pub use self::{
    builder::{InformerBuilder, ObjectFormat},
    delta_fifo::{Delta, DeltaBatch, DeltaFifo, Deltas, Tombstone},
    delta_queue::DeltaQueue,
    handler::{Event, EventHandler, EventStream, FilteringHandler, HandlerFuncs, HandlerOptions},
    index::{Index, IndexFunc, IndexValues, Indexers},
    list_watch::{ListItems, ListWatch, WatchEvents},
    lister::NamespaceLister,
    object::CachedObject,
    reflector::{
        ErrorHandler, FirstRead, InformerState, InformerStatus, Reflector, ReflectorOptions, ReflectorStore,
        RelistReason,
    },
    registration::Registration,
    store::{Keyed, Objects, ObjectsIter, Snapshot, StoreWriter, ThreadSafeStore},
};
pub(crate) use self::{lister::Lister, shared_informer::SharedInformer};
#[cfg(feature = "client")]
pub use self::{namespaces::NamespaceSet, references::References};
/// The name of the index by namespace. A [`NamespaceLister`] adds this index when it first needs it.
pub const NAMESPACE_INDEX: &str = "namespace";

//! Explores thread schedules of the files that hold locks: the work queue, the shared fifo, the store.
//!
//! Each file is compiled here once more, from its source, with shuttle's locks in `crate::sync` instead of those of the standard
//! library.
#![cfg(test)]
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, unused_imports, missing_docs)]

mod fifo_schedules;
mod store_schedules;

// Names that the files below import from the root of their own crate.
use klient::{Error, ErrorKind, ObjectKey};

/// The names of `klient`'s `sync` module, from shuttle.
mod sync {
    use shuttle::sync::{Arc, RwLock};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;

    /// The pointer that readers follow. Shuttle has no atomic pointers to counted values, so a lock replaces it.
    pub(crate) struct Published<T>(RwLock<std::sync::Arc<T>>);

    impl<T> Published<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(RwLock::new(std::sync::Arc::new(value)))
        }

        pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
            look(&self.get())
        }

        pub(crate) fn get(&self) -> std::sync::Arc<T> {
            std::sync::Arc::clone(&self.0.read().unwrap())
        }

        pub(crate) fn set(&self, value: T) {
            *self.0.write().unwrap() = std::sync::Arc::new(value);
        }
    }
}

// The files under test.
#[path = "../../src/informer/delta_fifo.rs"]
mod delta_fifo;
#[path = "../../src/informer/delta_queue.rs"]
mod delta_queue;
#[path = "../../src/informer/index.rs"]
mod index;
#[path = "../../src/informer/store.rs"]
mod store;
#[path = "../../src/informer/trie.rs"]
mod trie;

/// Runs a test under many random schedules, and under schedules that reach rare orders of few events.
fn explore(test: impl Fn() + Clone + Send + Sync + 'static) {
    shuttle::check_random(test.clone(), 800);
    shuttle::check_pct(test, 400, 3);
}

#[allow(dead_code, unreachable_pub, missing_docs)]
mod workqueue {
    //! The core of the work queue and its tests.
    #[path = "../../../src/workqueue/core.rs"]
    pub(crate) mod core;
    mod explore;
    #[path = "../../../src/workqueue/order.rs"]
    pub(crate) mod order;
    #[path = "../../../src/workqueue/state.rs"]
    pub(crate) mod state;
    #[path = "../../../src/workqueue/waiters.rs"]
    pub(crate) mod waiters;
}

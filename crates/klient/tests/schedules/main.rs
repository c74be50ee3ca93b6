//! Explores thread schedules of the files that hold locks: the queue, the fifo, the store.
//!
//! Each is compiled here once more, from its own source file, with `crate::sync` meaning shuttle's locks instead of the
//! standard library's.
#![cfg(test)]
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, unused_imports, missing_docs)]

mod fifo_schedules;
mod store_schedules;

// What the files below find at the root of their own crate.
use klient::{Error, ErrorKind, ObjectKey};

/// What `klient`'s `sync` names, from shuttle.
mod sync {
    use shuttle::sync::{Arc, RwLock};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, MutexGuard as BriefGuard};
    pub(crate) use std::sync::PoisonError;

    /// Shuttle has no clock to sleep by, and no need to.
    #[derive(Debug)]
    pub(crate) struct BriefLock<T>(Mutex<T>);

    impl<T> BriefLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> BriefGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// The pointer that readers follow: shuttle knows no atomic pointers to counted values, so that a lock stands for one.
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

// The files themselves.
#[path = "../../src/informer/delta_fifo.rs"]
mod delta_fifo;
#[path = "../../src/informer/index.rs"]
mod index;
#[path = "../../src/informer/store.rs"]
mod store;
#[path = "../../src/informer/trie.rs"]
mod trie;

/// Runs a test under many random schedules, and under those that hit rare orders of few events.
fn explore(test: impl Fn() + Clone + Send + Sync + 'static) {
    shuttle::check_random(test.clone(), 800);
    shuttle::check_pct(test, 400, 3);
}

#[allow(dead_code, unreachable_pub, missing_docs)]
mod workqueue {
    //! The queue's core, and what is tried with it.
    #[path = "../../../src/workqueue/core.rs"]
    pub(crate) mod core;
    mod explore;
    #[path = "../../../src/workqueue/order.rs"]
    pub(crate) mod order;
    #[path = "../../../src/workqueue/state.rs"]
    pub(crate) mod state;
    #[path = "../../../src/workqueue/table.rs"]
    mod table;
    #[path = "../../../src/workqueue/waiters.rs"]
    pub(crate) mod waiters;
}

//! Explores thread schedules of the files that hold locks: the queue, the fifo, the store.
//!
//! Each is compiled here once more, from its own source file, with `crate::sync` meaning shuttle's locks instead of the
//! standard library's.
#![cfg(test)]

mod sync {
    //! What `klient`'s `sync` names, from shuttle.
    #![allow(unused_imports)]
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard, RwLock};
    pub(crate) use std::sync::PoisonError;
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
    #[path = "../../../src/workqueue/waiters.rs"]
    pub(crate) mod waiters;
}

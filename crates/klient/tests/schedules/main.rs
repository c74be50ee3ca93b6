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

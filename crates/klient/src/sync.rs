//! The locks of the runtime half.
//!
//! `tests/schedules` compiles files that use these with shuttle's in their place, and explores how threads may interleave.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

use std::sync::Arc;

use arc_swap::ArcSwap;

/// A value that one writer replaces whole while any number of readers look at it. Nobody waits for anybody.
pub(crate) struct Published<T>(ArcSwap<T>);

impl<T> Published<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ArcSwap::from_pointee(value))
    }

    /// Looks at the newest value, without counting a reference to it.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.load())
    }

    /// The newest value, for as long as the caller wants.
    pub(crate) fn get(&self) -> Arc<T> {
        self.0.load_full()
    }

    pub(crate) fn set(&self, value: T) {
        self.0.store(Arc::new(value));
    }
}

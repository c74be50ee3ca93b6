//! The locks of informers and queues.
//!
//! `tests/schedules` compiles the files that use these locks with shuttle's instead, and explores how threads may interleave.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

use std::{sync::Arc, task::Poll};

use arc_swap::ArcSwap;

/// A value that one writer replaces while any number of readers use it. Neither side waits.
pub(crate) struct Published<T>(ArcSwap<T>);

impl<T> Published<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ArcSwap::from_pointee(value))
    }

    /// Calls a function with the newest value, without a new reference to it.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.load())
    }

    /// Returns the newest value.
    pub(crate) fn get(&self) -> Arc<T> {
        self.0.load_full()
    }

    pub(crate) fn set(&self, value: T) {
        self.0.store(Arc::new(value));
    }
}

/// Lets other tasks of the thread run first.
///
/// An idle thread can take the task over in the meantime. After Tokio's `yield_now` it cannot: if one of the other tasks blocks
/// the thread, the task that yielded waits as well.
pub(crate) async fn yield_to_others() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

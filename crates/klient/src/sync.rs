//! The locks of the runtime half.
//!
//! `tests/schedules` compiles files that use these with shuttle's in their place, and explores how threads may interleave.
#![allow(unused_imports, reason = "not every lock has a user yet")]

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

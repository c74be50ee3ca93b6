//! client-go for Rust: a Kubernetes client, informers, work queues and controllers.
//!
//! The vocabulary (keys, options, selectors, statuses) is [`klient_core`]'s and is re-exported at the root; objects in
//! wire form are [`klient_proto`]'s, under [`wire`].

#[cfg(feature = "client")]
pub mod client;
pub mod condition;
pub mod controller;
#[cfg(feature = "client")]
pub mod election;
mod error;
#[cfg(feature = "client")]
pub mod events;
#[cfg(feature = "client")]
pub mod finalizer;
pub mod informer;
#[cfg(feature = "client")]
pub mod manager;
pub mod metrics;
pub mod retry;
pub mod shutdown;
mod sync;
#[cfg(feature = "client")]
pub mod wait;
pub mod workqueue;
mod writes;

pub use error::{BoxError, Error, ErrorKind};
pub use klient_core::*;
pub use klient_proto as wire;

// The README's example compiles.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

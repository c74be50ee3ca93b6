//! client-go for Rust: a Kubernetes client, informers, work queues and controllers.
//!
//! The names at the root are the paved path. Everything else sits in the module that names it.

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
mod vocabulary;
#[cfg(feature = "client")]
pub mod wait;
pub mod workqueue;
mod writes;

#[cfg(feature = "client")]
pub use client::{api::Api, clientset::Clientset, handle::Client};
pub use controller::run::Controller;
pub use error::{BoxError, Error, ErrorKind, Result};
#[cfg(feature = "client")]
pub use informer::factory::InformerFactory;
pub use informer::{lister::Lister, shared_informer::SharedInformer};
#[doc(inline)]
pub use klient_core::{ObjectKey, Patch, Resource, ResourceExt, WatchEvent};
pub use klient_proto as wire;
#[cfg(feature = "client")]
pub use manager::run::Manager;
pub use vocabulary::*;
pub use workqueue::queue::WorkQueue;

// The examples in the README compile.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

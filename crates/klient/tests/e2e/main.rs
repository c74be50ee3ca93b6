//! End-to-end tests against the real kube-apiserver, skipped where there is none. `cargo xtask e2e` builds it.

#![allow(clippy::unwrap_used)]

mod auth;
mod cluster;
mod connections;
mod custom;
#[cfg(feature = "derive")]
mod custom_types;
mod discovery;
mod election;
mod encodings;
mod events;
mod every_verb;
mod faults;
mod informer;
mod kinds;
mod metadata;
mod options;
mod robustness;
mod sharding;
#[cfg(feature = "streams")]
mod streams;
mod subresources;
#[cfg(feature = "derive")]
mod typed_apply;
mod verbs;
mod versions;
mod watches;
#[cfg(feature = "webhook")]
mod webhooks;

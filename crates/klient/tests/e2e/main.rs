//! End-to-end tests against the real kube-apiserver. Run with `cargo xtask e2e`, which starts it.

#![allow(clippy::unwrap_used)]

mod auth;
mod cluster;
mod connections;
mod discovery;
mod forms;
mod verbs;
mod watches;

//! Tests of the embedded API server with klient's client.

#![allow(clippy::unwrap_used)]

mod access;
mod apply;
mod apply_times;
mod conversions;
mod costs;
mod definitions;
mod durable;
mod faults;
mod hostile;
mod model;
mod objects;
mod openapi;
mod plugins;
mod policies;
mod restore;
mod server;
mod settings;
mod sockets;
mod watches;
mod webhooks;

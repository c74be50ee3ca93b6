//! Tests of the embedded API server with klient's client.

#![allow(clippy::unwrap_used)]

mod apply;
mod definitions;
mod durable;
mod faults;
mod hostile;
mod model;
mod objects;
mod openapi;
mod server;
mod settings;
mod sockets;
mod watches;

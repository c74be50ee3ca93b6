//! Tests of the embedded API server with klient's client.

#![allow(clippy::unwrap_used)]

mod durable;
mod faults;
mod hostile;
mod model;
mod objects;
mod server;
mod settings;
mod sockets;
mod watches;

//! The embedded API server, asked by klient's own client.

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

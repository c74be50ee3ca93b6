//! The embedded API server, asked by klient's own client without sockets.

#![allow(clippy::unwrap_used)]

mod model;
mod objects;
mod server;
mod watches;

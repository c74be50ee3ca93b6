//! The client against scripted transports and scripted servers on the loopback.

#![allow(clippy::unwrap_used)]

mod answers;
mod discovery;
mod discovery_cache;
mod http2;
mod offered;
mod openapi;
mod requests;
mod retries;
mod routed;
mod scripted;
mod sockets;
mod streams;

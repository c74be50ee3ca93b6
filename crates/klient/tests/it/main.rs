//! The client against scripted transports and scripted servers on the loopback.

#![allow(clippy::unwrap_used)]

mod answers;
mod http2;
mod requests;
mod rest;
mod retries;
mod scripted;
mod sockets;
mod streams;
mod subresources;

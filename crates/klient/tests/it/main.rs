//! The client against scripted transports and scripted servers on the loopback.

#![allow(clippy::unwrap_used)]

mod answers;
mod discovery;
mod discovery_cache;
mod http2;
mod mapper;
mod offered;
mod openapi;
mod pager;
mod requests;
mod rest;
mod retries;
mod retry_watch;
mod routed;
mod scripted;
mod sockets;
mod streams;
mod subresources;

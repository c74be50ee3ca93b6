//! The client against scripted transports and scripted servers on the loopback.

#![allow(clippy::unwrap_used)]

mod answers;
mod exec_plugins;
mod http2;
mod oidc;
mod peers;
mod proxies;
mod requests;
mod retries;
mod scripted;
mod served;
mod sockets;
mod streams;

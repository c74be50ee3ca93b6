//! The client against scripted transports and scripted servers on the loopback.

#![allow(clippy::unwrap_used)]

mod controller;
mod discovery;
mod discovery_cache;
mod election;
mod embedded;
mod events;
mod exec_plugins;
mod helpers;
mod http2;
mod informer;
mod managed_fields;
mod manager;
mod mapper;
mod offered;
mod oidc;
mod openapi;
mod pager;
mod peers;
mod proxies;
mod requests;
mod responses;
mod rest;
mod retries;
mod retry_watch;
mod routed;
mod scripted;
mod sendable;
mod served;
mod sockets;
mod streams;
mod subresources;

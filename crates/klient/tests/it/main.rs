//! The client against scripted transports and scripted servers on the loopback.

#![allow(clippy::unwrap_used)]

mod apply_if_changed;
mod clusters;
mod controller;
#[cfg(feature = "derive")]
mod custom_types;
mod dashboards;
mod debug_page;
mod discovery;
mod discovery_cache;
mod drain;
mod election;
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
mod pod_logs;
#[cfg(feature = "streams")]
mod pod_streams;
mod proxies;
mod requests;
mod responses;
mod rest;
mod retries;
mod retry_watch;
mod rotation;
mod sendable;
mod shards;
mod sockets;
mod streams;
mod subresources;
mod support;
#[cfg(feature = "derive")]
mod typed_apply;
#[cfg(feature = "webhook")]
mod webhooks;

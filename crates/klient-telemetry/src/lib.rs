//! klient's metrics in the `metrics` facade, `prometheus-client` or OpenTelemetry, and its traces across requests.
//!
//! klient counts in a [`Registry`](klient::metrics::Registry) of its own, under client-go's and controller-runtime's names. This crate
//! gives these numbers to the system that a program uses already: a [`Publisher`] pushes them at intervals, and a `Collector` is read
//! when Prometheus scrapes. `trace_context` adds the W3C trace context to requests, so that a trace goes on in the API server.
//!
//! Each system is a feature: `metrics`, `prometheus-client` and `opentelemetry`. None is on by default.
#![cfg_attr(feature = "metrics", doc = "```no_run")]
#![cfg_attr(not(feature = "metrics"), doc = "```ignore")]
//! use std::time::Duration;
//! use klient::{Manager, metrics::Registry};
//! use klient_telemetry::Publisher;
//!
//! # async fn run() -> Result<(), klient::Error> {
//! let publisher = Publisher::facade(Registry::global().clone());
//! let manager = Manager::builder()
//!     .task("telemetry", async move |stop| {
//!         publisher.run_until(Duration::from_secs(10), stop.requested()).await;
//!         Ok::<(), klient::Error>(())
//!     })
//!     .build()
//!     .await?;
//! manager.run().await
//! # }
//! ```

#[cfg(feature = "prometheus-client")]
mod collector;
mod deltas;
#[cfg(feature = "metrics")]
mod facade;
#[cfg(feature = "opentelemetry")]
mod meter;
mod publisher;
#[cfg(feature = "opentelemetry")]
mod trace_context;

#[cfg(feature = "prometheus-client")]
pub use self::collector::Collector;
pub use self::publisher::Publisher;
#[cfg(feature = "opentelemetry")]
pub use self::trace_context::{TraceContext, exemplars, trace_context};

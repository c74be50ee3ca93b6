//! Metrics in other systems, and traces from a change to the requests that it caused.

#![allow(clippy::unwrap_used)]

mod metrics;
mod traces;

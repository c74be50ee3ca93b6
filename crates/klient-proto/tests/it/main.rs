//! Tests of the wire formats through the public API.

#![allow(clippy::unwrap_used, reason = "these are tests, their helper functions too")]

mod corpus;
mod gzip;
mod hostile;
mod kinds;
mod oracle;
mod paths;
mod properties;
mod raw;
mod split;
mod support;
mod transcode;

//! Sessions over pipes: both ends of each protocol, against each other.

#![allow(clippy::unwrap_used)]

mod channels;
mod spdy;

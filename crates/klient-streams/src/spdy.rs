//! SPDY/3.1, as Kubernetes uses it: many streams over one connection, without flow control.
//!
//! [`frame`] and [`header`] are the encodings, without sockets. [`Connection`] is one end of a connection.

mod connection;
mod dictionary;
pub mod frame;
pub mod header;

use std::fmt;

pub use self::{
    connection::{Accepted, Connection, Role, connection},
    header::Headers,
};

/// An error of a peer that does not speak SPDY/3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpdyError {
    message: &'static str,
}

impl SpdyError {
    pub(crate) const fn new(message: &'static str) -> Self {
        Self { message }
    }
}

impl fmt::Display for SpdyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed SPDY/3.1: {}", self.message)
    }
}

impl std::error::Error for SpdyError {}

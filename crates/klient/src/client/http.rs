//! HTTP: the transport and layers around it, retries, rate limits, and the server's warnings.
//!
//! [`Transport`] is the interface: [`HttpTransport`] connects to a server, [`FnTransport`] calls a function.

pub(super) mod body;
mod earlier_failures;
pub(super) mod exchange;
mod gunzip;
mod layer;
pub(super) mod minimum_rate;
pub(super) mod response;
mod retry;
pub(super) mod rotation;
pub(super) mod shared_error;
pub(super) mod throttle;
pub(super) mod transport;
pub(super) mod warnings;

#[cfg(feature = "streams")]
pub use klient_streams::{Io, Upgraded};

pub use self::{
    body::Body,
    transport::{FnTransport, HttpSettings, HttpTransport, IdentitySlot, SendFuture, Transport},
    warnings::{LogWarnings, Warning, WarningHandler},
};

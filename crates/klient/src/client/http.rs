//! How requests travel: the transport and its hooks, retries, limits, and what servers say beside the response.
//!
//! [`Transport`] is the seam: [`HttpTransport`] is the real one, [`FnTransport`] answers from a function.

pub(super) mod body;
pub(super) mod exchange;
mod gunzip;
mod layer;
pub(super) mod response;
mod retry;
pub(super) mod shared_error;
pub(super) mod throttle;
pub(super) mod transport;
pub(super) mod warnings;

pub use self::{
    body::Body,
    transport::{FnTransport, HttpSettings, HttpTransport, IdentitySlot, SendFuture, Transport},
    warnings::{LogWarnings, Warning, WarningHandler},
};

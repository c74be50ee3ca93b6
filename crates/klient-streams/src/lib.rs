//! The stream protocols of Kubernetes, both ends, over any `AsyncRead` and `AsyncWrite`.
//!
//! One future drives each session. It ends when the last handle and the last stream of the session are dropped. A slow
//! reader makes the session wait: buffers are bounded.

pub mod channels;
pub mod handshake;
mod keep_alive;
mod mux;
pub mod spdy;
pub mod tunnel;
mod upgraded;
mod websocket;

pub use self::{
    keep_alive::KeepAlive,
    mux::{Stream, StreamReader, StreamWriter},
    upgraded::{Io, Upgraded},
};

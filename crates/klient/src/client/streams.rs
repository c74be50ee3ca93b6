//! Streams to containers: [exec](crate::Api::exec), [attach](crate::Api::attach) and
//! [port-forward](crate::Api::port_forward).
//!
//! Sessions run over WebSocket, and over SPDY with servers that have no WebSockets for them; the choice is made once per
//! server. One task drives each session. It ends when the session's last handle is dropped, which closes the connection.
//! A slow reader slows down its peer: nothing is buffered without limit.

mod exec;
mod exit_status;
mod port_forward;
mod process;
mod support;
mod terminal;
mod upgrade;

pub(in crate::client) use self::support::StreamSupport;
pub use self::{
    exec::{Attach, Exec},
    exit_status::ExitStatus,
    port_forward::{ForwardListener, ForwardStatistics, ForwardedConnection, PortForward, PortForwardRequest},
    process::{Output, Process, Resizer, Stderr, Stdin, Stdout},
    support::StreamProtocol,
    terminal::TerminalSize,
};

//! The protocols that carry streams, and which of them a server is known to support.

use std::sync::atomic::{AtomicBool, Ordering};

/// The protocol that carries a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamProtocol {
    /// WebSocket, or SPDY if the server has no WebSockets for such sessions.
    #[default]
    Automatic,
    /// WebSocket only.
    WebSocket,
    /// SPDY/3.1 only, for proxies that do not support WebSockets.
    Spdy,
}

/// The protocols that a server is known not to support.
#[derive(Debug, Default)]
pub(in crate::client) struct StreamSupport {
    exec: AtomicBool,
    port_forward: AtomicBool,
}

/// The kind of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionKind {
    /// exec and attach.
    Exec,
    PortForward,
}

impl StreamSupport {
    fn spdy_only(&self, kind: SessionKind) -> &AtomicBool {
        match kind {
            SessionKind::Exec => &self.exec,
            SessionKind::PortForward => &self.port_forward,
        }
    }

    /// Returns the protocols to request, in order.
    pub(super) fn order(&self, kind: SessionKind, wanted: StreamProtocol) -> &'static [StreamProtocol] {
        use StreamProtocol::{Automatic, Spdy, WebSocket};
        match wanted {
            WebSocket => &[WebSocket],
            Spdy => &[Spdy],
            Automatic if self.spdy_only(kind).load(Ordering::Relaxed) => &[Spdy, WebSocket],
            Automatic => &[WebSocket, Spdy],
        }
    }

    /// Records the protocol of a session that was opened, unless the caller chose it.
    pub(super) fn opened(&self, kind: SessionKind, wanted: StreamProtocol, protocol: StreamProtocol) {
        if wanted != StreamProtocol::Automatic {
            return;
        }
        self.spdy_only(kind).store(protocol == StreamProtocol::Spdy, Ordering::Relaxed);
    }
}

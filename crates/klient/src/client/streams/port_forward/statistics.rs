//! Counters of a port-forward.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of a [`PortForward`](super::PortForward) since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForwardStatistics {
    /// The number of connections that were opened.
    pub connections: u64,
    /// The number of connections that are open.
    pub active: u64,
    /// The number of connections that could not be opened, or that ended with an error of the pod.
    pub failed: u64,
    /// The number of upgraded connections to the server: more than one after a reconnect.
    pub sessions: u64,
    /// The number of bytes that were sent to the pod.
    pub bytes_sent: u64,
    /// The number of bytes that were received from the pod.
    pub bytes_received: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) active: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) sessions: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
    pub(super) bytes_received: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> ForwardStatistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ForwardStatistics {
            connections: read(&self.connections),
            active: read(&self.active),
            failed: read(&self.failed),
            sessions: read(&self.sessions),
            bytes_sent: read(&self.bytes_sent),
            bytes_received: read(&self.bytes_received),
        }
    }
}

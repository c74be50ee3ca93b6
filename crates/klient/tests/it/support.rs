//! Fixtures that several tests share: servers and transports that respond as a test says.

pub(crate) mod embedded;
pub(crate) mod routed;
pub(crate) mod scripted;
pub(crate) mod served;

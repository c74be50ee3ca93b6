//! The server of a world: embedded or real.

use std::time::Duration;

use anyhow::Result;
use klient::Client;

use crate::{embedded::Embedded, rng::Rng, weather::Role};

/// A server.
pub(crate) enum Site {
    Embedded { server: Embedded, is_quick: bool },
}

impl Site {
    /// Returns the namespace of the world.
    pub(crate) fn namespace(&self) -> &str {
        match self {
            Self::Embedded { .. } => "default",
        }
    }

    /// Returns a client whose requests have faults.
    pub(crate) fn client(&self, role: Role) -> Result<Client> {
        match self {
            Self::Embedded { server, .. } => server.client(role),
        }
    }

    /// Returns a client without faults.
    pub(crate) fn direct(&self) -> Result<Client> {
        match self {
            Self::Embedded { server, .. } => Ok(server.direct()),
        }
    }

    /// Prepares the server for a world.
    pub(crate) async fn prepare(&self, _direct: &Client) -> Result<()> {
        match self {
            Self::Embedded { .. } => Ok(()),
        }
    }

    /// Kills the server, and starts it again.
    pub(crate) async fn restart(&mut self, rng: &mut Rng) -> Result<()> {
        match self {
            Self::Embedded { server, .. } => server.restart(rng).await,
        }
    }

    /// Drops the server's history.
    pub(crate) async fn compact(&mut self, _direct: &Client) -> Result<()> {
        match self {
            Self::Embedded { server, .. } => server.compact(),
        }
        Ok(())
    }

    /// Replaces the clients' token.
    pub(crate) fn rotate_token(&mut self) -> Result<()> {
        match self {
            Self::Embedded { server, .. } => server.rotate_token(),
        }
    }

    /// Replaces the certificates of server and clients.
    pub(crate) async fn rotate_certificate(&mut self) -> Result<()> {
        match self {
            Self::Embedded { .. } => Ok(()),
        }
    }

    /// Lets the clocks jump.
    pub(crate) async fn jump(&mut self, rng: &mut Rng) {
        match self {
            Self::Embedded { server, .. } => server.jump(rng).await,
        }
    }

    /// Disturbs the bytes between client and server.
    pub(crate) fn disturb(&mut self, _rng: &mut Rng) {
        match self {
            Self::Embedded { .. } => {}
        }
    }

    /// Ends all disturbances.
    pub(crate) fn calm(&mut self) {
        match self {
            Self::Embedded { .. } => {}
        }
    }

    /// Returns the shortest and longest time between two strikes, in milliseconds.
    pub(crate) fn ticks(&self) -> (u64, u64) {
        match self {
            Self::Embedded { is_quick: false, .. } => (200, 8000),
            Self::Embedded { is_quick: true, .. } => (10, 100),
        }
    }

    /// Returns the time within which everything must agree with the server after the last fault.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            Self::Embedded { is_quick: false, .. } => Duration::from_secs(3600),
            Self::Embedded { is_quick: true, .. } => Duration::from_secs(60),
        }
    }

    /// Returns the longest pause between two comparisons.
    pub(crate) fn longest_pause(&self) -> Duration {
        match self {
            Self::Embedded { is_quick: false, .. } => Duration::from_secs(30),
            Self::Embedded { is_quick: true, .. } => Duration::from_millis(200),
        }
    }
}

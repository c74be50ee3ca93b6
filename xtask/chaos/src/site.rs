//! The server of a world: embedded or real.

use std::time::Duration;

use anyhow::Result;
use klient::Client;

use crate::{embedded::Embedded, real::Real, rng::Rng, weather::Role};

/// A server.
pub(crate) enum Site {
    Embedded { server: Embedded, is_quick: bool },
    Real(Box<Real>),
}

impl Site {
    /// Returns the namespace of the world.
    pub(crate) fn namespace(&self) -> &str {
        match self {
            Self::Embedded { .. } => "default",
            Self::Real(server) => server.namespace(),
        }
    }

    /// Returns a client whose requests have faults.
    pub(crate) fn client(&self, role: Role) -> Result<Client> {
        match self {
            Self::Embedded { server, .. } => server.client(role),
            Self::Real(server) => server.client(role),
        }
    }

    /// Returns a client without faults.
    pub(crate) fn direct(&self) -> Result<Client> {
        match self {
            Self::Embedded { server, .. } => Ok(server.direct()),
            Self::Real(server) => server.direct(),
        }
    }

    /// Prepares the server for a world.
    pub(crate) async fn prepare(&self, direct: &Client) -> Result<()> {
        match self {
            Self::Embedded { .. } => Ok(()),
            Self::Real(server) => server.prepare(direct).await,
        }
    }

    /// Kills the server, and starts it again.
    pub(crate) async fn restart(&mut self, rng: &mut Rng) -> Result<()> {
        match self {
            Self::Embedded { server, .. } => server.restart(rng).await,
            Self::Real(server) => server.restart(rng).await,
        }
    }

    /// Drops the server's history.
    pub(crate) async fn compact(&mut self, direct: &Client) -> Result<()> {
        match self {
            Self::Embedded { server, .. } => server.compact(),
            Self::Real(server) => server.compact(direct).await?,
        }
        Ok(())
    }

    /// Replaces the clients' token.
    pub(crate) fn rotate_token(&mut self) -> Result<()> {
        match self {
            Self::Embedded { server, .. } => server.rotate_token(),
            Self::Real(server) => server.rotate_token(),
        }
    }

    /// Replaces the certificates of server and clients.
    pub(crate) async fn rotate_certificate(&mut self) -> Result<()> {
        match self {
            Self::Embedded { .. } => Ok(()),
            Self::Real(server) => server.rotate_certificate().await,
        }
    }

    /// Lets the clocks jump.
    pub(crate) async fn jump(&mut self, rng: &mut Rng) {
        match self {
            Self::Embedded { server, .. } => server.jump(rng).await,
            Self::Real(_) => {}
        }
    }

    /// Disturbs the bytes between client and server.
    pub(crate) fn disturb(&mut self, rng: &mut Rng) {
        match self {
            Self::Embedded { .. } => {}
            Self::Real(server) => server.disturb(rng),
        }
    }

    /// Ends all disturbances.
    pub(crate) fn calm(&mut self) {
        match self {
            Self::Embedded { .. } => {}
            Self::Real(server) => server.calm(),
        }
    }

    /// Returns the shortest and longest time between two strikes, in milliseconds.
    pub(crate) fn ticks(&self) -> (u64, u64) {
        match self {
            Self::Embedded { is_quick: false, .. } => (200, 8000),
            Self::Embedded { is_quick: true, .. } => (10, 100),
            Self::Real(_) => (50, 1500),
        }
    }

    /// Returns the time within which everything must agree with the server after the last fault.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            Self::Embedded { is_quick: false, .. } => Duration::from_secs(3600),
            Self::Embedded { is_quick: true, .. } => Duration::from_secs(60),
            Self::Real(_) => Duration::from_secs(120),
        }
    }

    /// Returns the longest pause between two comparisons.
    pub(crate) fn longest_pause(&self) -> Duration {
        match self {
            Self::Embedded { is_quick: false, .. } => Duration::from_secs(30),
            Self::Embedded { is_quick: true, .. } | Self::Real(_) => Duration::from_millis(200),
        }
    }
}

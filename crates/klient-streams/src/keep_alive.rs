//! Pings, and the detection of a peer that does not respond to them.
//!
//! A server that waits for a program to read its input handles no pings. While data is in flight, it therefore has
//! more time, and the keep-alive of the socket detects a peer that is unreachable.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

/// The settings of a session's pings.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KeepAlive {
    /// The time between pings.
    pub interval: Duration,
    /// The time without any message after which the peer is considered dead.
    pub limit: Duration,
    /// The end of the session, whatever the peer does.
    pub deadline: Option<Instant>,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { interval: Duration::from_secs(5), limit: Duration::from_secs(61), deadline: None }
    }
}

impl KeepAlive {
    /// Sets the time between pings.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the time without any message after which the peer is considered dead.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

impl KeepAlive {
    /// Sets the end of the session, whatever the peer does.
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Returns the time of the next event after `now`.
    fn next(&self, now: Instant) -> Instant {
        let ping = now + self.interval;
        self.deadline.map_or(ping, |deadline| deadline.min(ping))
    }
}

/// The state of the pings of one session.
pub(crate) struct Pings {
    settings: KeepAlive,
    timer: Pin<Box<Sleep>>,
    heard: Instant,
    /// The number of the last ping.
    sent: u32,
    /// The ping that will be received after all data.
    after_data: u32,
    in_flight: bool,
    is_expired: bool,
}

/// An event of the clock.
pub(crate) enum Tick {
    /// A ping with this number is due.
    Ping(u32),
    /// The peer is dead, or the time limit of the session has expired.
    Dead,
}

impl Pings {
    pub(crate) fn new(settings: KeepAlive) -> Self {
        let now = Instant::now();
        let timer = Box::pin(tokio::time::sleep_until(settings.next(now)));
        Self { settings, timer, heard: now, sent: 0, after_data: 0, in_flight: false, is_expired: false }
    }

    /// Records that something arrived.
    pub(crate) fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Records that data was sent.
    pub(crate) fn data_sent(&mut self) {
        self.in_flight = true;
        self.after_data = self.sent.wrapping_add(1);
    }

    /// Records the response to a ping: all data before it was received.
    pub(crate) fn pong(&mut self, number: u32) {
        if number.wrapping_sub(self.after_data) < u32::MAX / 2 {
            self.in_flight = false;
        }
    }

    /// Polls the clock. A session that does not read, because its user does not, cannot hear its peer.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, is_reading: bool) -> Poll<Tick> {
        ready!(self.timer.as_mut().poll(context));
        let now = Instant::now();
        self.timer.as_mut().reset(self.settings.next(now));
        if self.settings.deadline.is_some_and(|deadline| deadline <= now) {
            self.is_expired = true;
            return Poll::Ready(Tick::Dead);
        }
        if !is_reading {
            self.heard = now;
        }
        let limit = if self.in_flight { self.settings.limit * IN_FLIGHT } else { self.settings.limit };
        if now.duration_since(self.heard) >= limit {
            return Poll::Ready(Tick::Dead);
        }
        self.sent = self.sent.wrapping_add(1);
        Poll::Ready(Tick::Ping(self.sent))
    }

    /// Returns the message of the error after [`Tick::Dead`].
    pub(crate) fn dead(&self) -> String {
        if self.is_expired {
            return "the time limit of the session expired".to_owned();
        }
        format!("the peer has not responded to pings for {} s", self.heard.elapsed().as_secs())
    }
}

const IN_FLIGHT: u32 = 10;

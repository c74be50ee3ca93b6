//! The bodies of responses: a whole one, or a stream of server-sent events with a snapshot per second.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::Full;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, Interval, MissedTickBehavior},
};

use super::Debug;

/// The body of a response of the manager.
pub(in crate::manager) enum PageBody {
    Full(Full<Bytes>),
    Events(Box<EventBody>),
}

/// A stream of snapshots. It ends after some time, so that a client has to be authorized again.
pub(in crate::manager) struct EventBody {
    debug: Arc<Debug>,
    interval: Interval,
    end: Instant,
    /// Counts as one client until it is dropped.
    _permit: OwnedSemaphorePermit,
}

impl EventBody {
    pub(super) fn new(debug: Arc<Debug>, permit: OwnedSemaphorePermit) -> Self {
        let mut interval = tokio::time::interval(PERIOD);
        // A client that reads slowly gets the newest snapshot, and no backlog.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { debug, interval, end: Instant::now() + LIFETIME, _permit: permit }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        ready!(self.interval.poll_tick(context));
        if Instant::now() >= self.end {
            return Poll::Ready(None);
        }
        let snapshot = self.debug.snapshot();
        Poll::Ready(Some([b"data: ", &*snapshot, b"\n\n"].concat().into()))
    }
}

impl Body for PageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Full(body) => Pin::new(body).poll_frame(context),
            Self::Events(events) => events.poll_event(context).map(|event| event.map(|event| Ok(Frame::data(event)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(body) => body.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Full(body) => body.size_hint(),
            Self::Events(_) => http_body::SizeHint::default(),
        }
    }
}

/// The time between two snapshots.
const PERIOD: Duration = Duration::from_secs(1);
/// The time after which a stream ends.
const LIFETIME: Duration = Duration::from_secs(600);

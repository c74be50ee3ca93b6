//! Watches: events as they arrive. Step 2 of an object's path.

use std::{
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use klient_core::{Resource, WatchEvent};
use klient_proto::{RawObject, SplitOptions, WatchSplitter};

use crate::client::http::{
    body::Body,
    minimum_rate::MinimumRate,
    response::{self, Encoding},
    rotation::{Rotation, RotationCheck},
};
use crate::{Error, ErrorKind};

/// The events of one watch request, until the server ends it.
///
/// It also ends, between two events, when the client's certificate or the trusted authorities have been replaced: watch
/// again after the last version, as after any other end.
///
/// It is a stream of events with decoded objects; [`next_raw`](Self::next_raw) returns them in wire format. Dropping it
/// cancels the request.
#[doc(alias = "watch.Interface")]
pub struct Watch<K> {
    body: Body,
    splitter: Option<WatchSplitter>,
    ready: VecDeque<Result<WatchEvent<RawObject>, Error>>,
    /// The rate of an event that has begun. Between events, the server may be silent.
    rate: MinimumRate,
    rotation: Option<RotationCheck>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Watch<K> {
    /// Splits the body of a response. A server that sends next to nothing of an event for this long is an error.
    pub(in crate::client) fn new(
        response: http::Response<Body>,
        options: SplitOptions,
        time_limit: Duration,
    ) -> Result<Self, Error> {
        let splitter = match Encoding::of(&response) {
            Encoding::Protobuf => WatchSplitter::protobuf(options),
            Encoding::Json => WatchSplitter::json(options),
            Encoding::Other => {
                return Err(Error::new(ErrorKind::Decode, "cannot decode response: expected protobuf or JSON"));
            }
        };
        let rotation = response.extensions().get::<Rotation>().cloned().map(RotationCheck::new);
        Ok(Self {
            body: response.into_body(),
            splitter: Some(splitter),
            ready: VecDeque::new(),
            rate: MinimumRate::new(time_limit),
            rotation,
            kind: PhantomData,
        })
    }

    /// Returns the next event with its object decoded, or `None` when the server has ended the watch.
    ///
    /// # Errors
    ///
    /// Returns an error if an event cannot be decoded; the next call then continues with the next event. A broken
    /// connection, a malformed stream, or a server that does not complete an event that it began, is an error after which
    /// there are no more events.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        Some(self.next_raw().await?.and_then(decoded))
    }

    /// Returns the next event with its object in wire format; otherwise like [`next`](Self::next).
    pub async fn next_raw(&mut self) -> Option<Result<WatchEvent<RawObject>, Error>> {
        std::future::poll_fn(|context| self.poll_raw(context)).await
    }

    /// Returns whether the watch has ended.
    pub fn is_ended(&self) -> bool {
        self.splitter.is_none() && self.ready.is_empty()
    }

    pub(super) fn poll_raw(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<WatchEvent<RawObject>, Error>>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            let Some(splitter) = self.splitter.as_mut() else { return Poll::Ready(None) };
            let chunk = match self.body.poll_chunk(context) {
                Poll::Ready(chunk) => chunk,
                Poll::Pending if splitter.is_between_events() => {
                    let Some(rotation) = &mut self.rotation else { return Poll::Pending };
                    ready!(rotation.poll_outdated(context));
                    tracing::debug!("certificates changed, ending watch");
                    self.splitter = None;
                    return Poll::Ready(None);
                }
                Poll::Pending => Err(ready!(self.rate.poll_too_slow("an event", context))),
            };
            match chunk {
                Ok(Some(chunk)) => {
                    self.rate.received(chunk.len());
                    let ready = &mut self.ready;
                    let pushed = splitter.push(&chunk, |event| ready.push_back(event.map_err(Error::from)));
                    if let Err(error) = pushed {
                        self.splitter = None;
                        ready.push_back(Err(error.into()));
                    } else if !ready.is_empty() {
                        self.rate.restart();
                    }
                }
                Ok(None) => {
                    let finished = self.splitter.take().map_or(Ok(()), WatchSplitter::finish);
                    return Poll::Ready(finished.err().map(|error| Err(error.into())));
                }
                Err(error) => {
                    self.splitter = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl<K: Resource> Stream for Watch<K> {
    type Item = Result<WatchEvent<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.poll_raw(context));
        Poll::Ready(event.map(|event| event.and_then(decoded)))
    }
}

fn decoded<K: Resource>(event: WatchEvent<RawObject>) -> Result<WatchEvent<K>, Error> {
    Ok(match event {
        WatchEvent::Added(object) => WatchEvent::Added(response::decode(&object)?),
        WatchEvent::Modified(object) => WatchEvent::Modified(response::decode(&object)?),
        WatchEvent::Deleted(object) => WatchEvent::Deleted(response::decode(&object)?),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    })
}

impl<K> fmt::Debug for Watch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("ready", &self.ready.len()).field("ended", &self.splitter.is_none()).finish()
    }
}

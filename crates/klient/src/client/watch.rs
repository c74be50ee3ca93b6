//! Watches: events as they arrive.

use std::{collections::VecDeque, fmt, marker::PhantomData};

use klient_core::{Resource, WatchEvent};
use klient_proto::{RawObject, SplitOptions, WatchSplitter};

use super::{answer::Form, body::Body};
use crate::{Error, ErrorKind};

/// The events of one watch request, which ends when the server ends it.
///
/// Dropping it ends the watch.
pub struct Watch<K> {
    body: Body,
    splitter: Option<WatchSplitter>,
    ready: VecDeque<Result<WatchEvent<RawObject>, Error>>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Watch<K> {
    pub(super) fn new(response: http::Response<Body>, options: SplitOptions) -> Result<Self, Error> {
        let splitter = match Form::of(&response) {
            Form::Protobuf => WatchSplitter::protobuf(options),
            Form::Json => WatchSplitter::json(options),
            Form::Other => return Err(Error::new(ErrorKind::Decode, "the answer is neither protobuf nor JSON")),
        };
        Ok(Self { body: response.into_body(), splitter: Some(splitter), ready: VecDeque::new(), kind: PhantomData })
    }

    /// The next event, its object decoded; `None` when the server has ended the watch.
    ///
    /// # Errors
    ///
    /// An event that cannot be read is an error, and the next call goes on; a broken connection or stream is an error
    /// after which there are no more events.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        let event = match self.next_raw().await? {
            Ok(event) => event,
            Err(error) => return Some(Err(error)),
        };
        Some(match event {
            WatchEvent::Added(object) => object.decode().map(WatchEvent::Added).map_err(Error::from),
            WatchEvent::Modified(object) => object.decode().map(WatchEvent::Modified).map_err(Error::from),
            WatchEvent::Deleted(object) => object.decode().map(WatchEvent::Deleted).map_err(Error::from),
            WatchEvent::Bookmark(bookmark) => Ok(WatchEvent::Bookmark(bookmark)),
            WatchEvent::Error(status) => Ok(WatchEvent::Error(status)),
        })
    }

    /// The next event with its object in wire form; otherwise as [`next`](Self::next).
    pub async fn next_raw(&mut self) -> Option<Result<WatchEvent<RawObject>, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let splitter = self.splitter.as_mut()?;
            match self.body.chunk().await {
                Ok(Some(chunk)) => {
                    let ready = &mut self.ready;
                    let pushed = splitter.push(&chunk, |event| ready.push_back(event.map_err(Error::from)));
                    if let Err(error) = pushed {
                        self.splitter = None;
                        ready.push_back(Err(error.into()));
                    }
                }
                Ok(None) => {
                    let finished = self.splitter.take().map_or(Ok(()), WatchSplitter::finish);
                    return finished.err().map(|error| Err(error.into()));
                }
                Err(error) => {
                    self.splitter = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<K> fmt::Debug for Watch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("ready", &self.ready.len()).field("ended", &self.splitter.is_none()).finish()
    }
}

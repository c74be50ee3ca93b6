//! Lists: objects as they arrive. Step 2 of an object's path.

use std::{
    any::Any,
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::StatusCode;
use klient_core::{DynamicObject, Resource, TypeMeta};
use klient_proto::{ListEnd, ListSplitter, RawObject, SplitOptions};

use crate::client::{http::body::Body, http::minimum_rate::MinimumRate, http::response, http::response::Encoding};
use crate::{Error, ErrorKind};

/// The objects of one list, as they arrive. Neither the body nor the list is ever in memory as a whole.
///
/// It is a stream of decoded objects; [`next_raw`](Self::next_raw) returns them in wire format. Dropping it cancels the
/// request.
pub struct ListStream<K> {
    body: Body,
    splitter: Option<ListSplitter>,
    ready: VecDeque<Result<RawObject, Error>>,
    end: Option<ListEnd>,
    /// The type of the objects, for items that do not contain it.
    types: Option<TypeMeta>,
    /// The first bytes, until they are known to be those of a list.
    first: Option<Bytes>,
    code: StatusCode,
    encoding: Encoding,
    rate: MinimumRate,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> ListStream<K> {
    /// Splits the body of a response. A server that sends next to nothing for this long is an error.
    pub(in crate::client) fn new(
        response: http::Response<Body>,
        options: SplitOptions,
        time_limit: Duration,
    ) -> Result<Self, Error> {
        let (code, encoding) = (response.status(), Encoding::of(&response));
        let splitter = match encoding {
            Encoding::Protobuf => ListSplitter::protobuf(options),
            Encoding::Json => ListSplitter::json(options),
            Encoding::Other => {
                return Err(Error::new(ErrorKind::Decode, "cannot decode response: expected protobuf or JSON"));
            }
        };
        Ok(Self {
            body: response.into_body(),
            splitter: Some(splitter),
            ready: VecDeque::new(),
            end: None,
            types: None,
            first: None,
            code,
            encoding,
            rate: MinimumRate::new(time_limit),
            kind: PhantomData,
        })
    }

    /// Sets the type of the objects.
    pub(in crate::client) fn items(mut self, types: Option<TypeMeta>) -> Self {
        self.types = types;
        self
    }

    /// Returns the next decoded object, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// Returns an error if an object cannot be decoded; the next call then continues with the next object. A broken
    /// connection, a malformed list or a server that stops sending, or only trickles, is an error after which there are no more objects
    /// and no [`end`](Self::end).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no object.
    pub async fn next(&mut self) -> Option<Result<K, Error>> {
        Some(self.next_raw().await?.and_then(|object| self.decode(&object)))
    }

    /// Returns the next object in wire format; otherwise like [`next`](Self::next).
    pub async fn next_raw(&mut self) -> Option<Result<RawObject, Error>> {
        std::future::poll_fn(|context| self.poll_raw(context)).await
    }

    /// Returns the list's metadata, with its version and the token of the next page, once the last object was returned.
    pub fn end(&mut self) -> Option<ListEnd> {
        self.end.take()
    }

    /// Returns whether the list ended prematurely.
    pub(in crate::client) fn is_broken(&self) -> bool {
        self.splitter.is_none() && self.end.is_none() && self.ready.is_empty()
    }

    fn decode(&self, object: &RawObject) -> Result<K, Error> {
        let mut object: K = response::decode(object)?;
        // An object of a kind known at run time could not be written back without its type.
        if let Some(types) = &self.types
            && let Some(object) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>()
        {
            object.types.get_or_insert_with(|| types.clone());
        }
        Ok(object)
    }

    /// Returns the failure that a server reports with a success code, if it is one.
    fn status(&self) -> Option<Error> {
        let body = self.first.as_ref().filter(|body| response::is_status(self.encoding, body))?;
        Some(response::status(self.code, self.encoding, body)).filter(|status| !status.is_success()).map(Error::from)
    }

    fn poll_raw(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RawObject, Error>>> {
        loop {
            if let Some(object) = self.ready.pop_front() {
                return Poll::Ready(Some(object));
            }
            let Some(splitter) = self.splitter.as_mut() else { return Poll::Ready(None) };
            let chunk = match self.body.poll_chunk(context) {
                Poll::Ready(chunk) => chunk,
                Poll::Pending => Err(ready!(self.rate.poll_too_slow("a list", context))),
            };
            match chunk {
                Ok(Some(chunk)) => {
                    self.rate.received(chunk.len());
                    let (ready, first) = (&mut self.ready, &mut self.first);
                    first.get_or_insert_with(|| chunk.clone());
                    let pushed = splitter.push(&chunk, |item| ready.push_back(item.map_err(Error::from)));
                    if let Err(error) = pushed {
                        self.splitter = None;
                        let error = self.status().unwrap_or_else(|| error.into());
                        self.ready.push_back(Err(error));
                    } else if !ready.is_empty() {
                        *first = Some(Bytes::new());
                    }
                }
                Ok(None) => match self.splitter.take().map(ListSplitter::finish) {
                    Some(Ok(end)) => match self.status() {
                        Some(error) => return Poll::Ready(Some(Err(error))),
                        None => self.end = Some(end),
                    },
                    Some(Err(error)) => {
                        let error = self.status().unwrap_or_else(|| error.into());
                        return Poll::Ready(Some(Err(error)));
                    }
                    None => {}
                },
                Err(error) => {
                    self.splitter = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl<K: Resource> Stream for ListStream<K> {
    type Item = Result<K, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let object = ready!(self.poll_raw(context));
        Poll::Ready(object.map(|object| object.and_then(|object| self.decode(&object))))
    }
}

impl<K> fmt::Debug for ListStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListStream").field("ready", &self.ready.len()).field("ended", &self.splitter.is_none()).finish()
    }
}

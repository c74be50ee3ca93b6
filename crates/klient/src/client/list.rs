//! Lists: objects as they arrive. Step 2 of an object's way.

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
use tokio::time::{Instant, Sleep};

use crate::client::{http::body::Body, http::response, http::response::Form};
use crate::{Error, ErrorKind};

/// The objects of one list, as they arrive. Neither the body nor the list is ever held whole.
///
/// A stream of decoded objects; [`next_raw`](Self::next_raw) gives them in wire form. Dropping it ends the list.
pub struct ListStream<K> {
    body: Body,
    splitter: Option<ListSplitter>,
    ready: VecDeque<Result<RawObject, Error>>,
    end: Option<ListEnd>,
    /// What the objects are, for those that do not say.
    types: Option<TypeMeta>,
    /// The first bytes, until they turn out to be those of a list.
    first: Option<Bytes>,
    code: StatusCode,
    form: Form,
    silence: Duration,
    /// When to give the server up.
    deadline: Pin<Box<Sleep>>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> ListStream<K> {
    /// Splits the body of an answer; a server that sends nothing for so long is given up.
    pub(in crate::client) fn new(
        response: http::Response<Body>,
        options: SplitOptions,
        silence: Duration,
    ) -> Result<Self, Error> {
        let (code, form) = (response.status(), Form::of(&response));
        let splitter = match form {
            Form::Protobuf => ListSplitter::protobuf(options),
            Form::Json => ListSplitter::json(options),
            Form::Other => return Err(Error::new(ErrorKind::Decode, "the answer is neither protobuf nor JSON")),
        };
        Ok(Self {
            body: response.into_body(),
            splitter: Some(splitter),
            ready: VecDeque::new(),
            end: None,
            types: None,
            first: None,
            code,
            form,
            silence,
            deadline: Box::pin(tokio::time::sleep(silence)),
            kind: PhantomData,
        })
    }

    /// Sets what the objects are.
    pub(in crate::client) fn items(mut self, types: Option<TypeMeta>) -> Self {
        self.types = types;
        self
    }

    /// The next object, decoded; `None` after the last.
    ///
    /// # Errors
    ///
    /// An object that cannot be read is an error, and the next call goes on; a broken connection, a malformed list, or
    /// a server that falls silent is an error after which there are no more objects, and no [`end`](Self::end).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no object.
    pub async fn next(&mut self) -> Option<Result<K, Error>> {
        Some(self.next_raw().await?.and_then(|object| self.decode(&object)))
    }

    /// The next object in wire form; otherwise as [`next`](Self::next).
    pub async fn next_raw(&mut self) -> Option<Result<RawObject, Error>> {
        std::future::poll_fn(|context| self.poll_raw(context)).await
    }

    /// What a list says of itself, its version and where the next page begins; once the last object was given out.
    pub fn end(&mut self) -> Option<ListEnd> {
        self.end.take()
    }

    /// Whether the list broke off: there is nothing more to come, and the end did not.
    pub(in crate::client) fn is_broken(&self) -> bool {
        self.splitter.is_none() && self.end.is_none() && self.ready.is_empty()
    }

    fn decode(&self, object: &RawObject) -> Result<K, Error> {
        let mut object: K = response::decode(object)?;
        // A kind known at run time is nowhere else but in the object, which could not be written back without it.
        if let Some(types) = &self.types
            && let Some(object) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>()
        {
            object.types.get_or_insert_with(|| types.clone());
        }
        Ok(object)
    }

    /// The failure that a server tells with the code of a success, if it is one.
    fn status(&self) -> Option<Error> {
        let body = self.first.as_ref().filter(|body| response::is_status(self.form, body))?;
        Some(response::status(self.code, self.form, body)).filter(|status| !status.is_success()).map(Error::from)
    }

    fn poll_raw(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RawObject, Error>>> {
        loop {
            if let Some(object) = self.ready.pop_front() {
                return Poll::Ready(Some(object));
            }
            let Some(splitter) = self.splitter.as_mut() else { return Poll::Ready(None) };
            let chunk = match self.body.poll_chunk(context) {
                Poll::Ready(chunk) => chunk,
                Poll::Pending => {
                    ready!(self.deadline.as_mut().poll(context));
                    let what = format!("the server sent nothing of a list for {} s", self.silence.as_secs_f32());
                    Err(Error::new(ErrorKind::Timeout, what))
                }
            };
            match chunk {
                Ok(Some(chunk)) => {
                    self.deadline.as_mut().reset(Instant::now() + self.silence);
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

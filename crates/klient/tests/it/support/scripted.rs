//! A transport that responds from a script and records the requests.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Frame;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, BoxError, Client, Error, ErrorKind,
    client::{
        ClientBuilder,
        http::{Body, SendFuture, Transport},
    },
    request::media_type,
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

/// One exchange of a script.
pub(crate) enum Step {
    Respond(http::Response<Body>),
    Broken,
    Silence,
}

impl From<http::Response<Body>> for Step {
    fn from(response: http::Response<Body>) -> Self {
        Self::Respond(response)
    }
}

/// A request as the transport got it, and when.
pub(crate) struct Seen {
    pub(crate) request: http::Request<Bytes>,
    pub(crate) at: Instant,
}

/// Answers each request with the next step; more requests than steps fail the test.
pub(crate) struct Script {
    steps: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<Seen>>,
}

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = impl Into<Step>>) -> Arc<Self> {
        let steps = steps.into_iter().map(Into::into).collect();
        Arc::new(Self { steps: Mutex::new(steps), seen: Mutex::default() })
    }

    pub(crate) fn builder(self: &Arc<Self>) -> ClientBuilder {
        Client::builder(Arc::clone(self))
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        self.builder().build()
    }

    pub(crate) fn maps(self: &Arc<Self>) -> Api<ConfigMap> {
        Api::namespaced(self.client(), "default")
    }

    /// All requests so far, once the script was played to its end.
    pub(crate) fn played(&self) -> Vec<Seen> {
        assert_eq!(self.steps.lock().unwrap().len(), 0, "steps are left");
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Transport for Script {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        let step = self.steps.lock().unwrap().pop_front();
        let step = step.unwrap_or_else(|| panic!("{} {} is not in the script", request.method(), request.uri()));
        self.seen.lock().unwrap().push(Seen { request, at: Instant::now() });
        Box::pin(async move {
            match step {
                Step::Respond(response) => Ok(response),
                Step::Broken => Err(Error::new(ErrorKind::Transport, "the scripted connection broke")),
                Step::Silence => std::future::pending().await,
            }
        })
    }
}

pub(crate) fn response(code: u16, content_type: &str, body: impl Into<Bytes>) -> http::Response<Body> {
    streamed(code, content_type, Body::from_bytes(body))
}

pub(crate) fn streamed(code: u16, content_type: &str, body: Body) -> http::Response<Body> {
    http::Response::builder().status(code).header("content-type", content_type).body(body).unwrap()
}

pub(crate) fn json_response(code: u16, value: &Value) -> http::Response<Body> {
    response(code, media_type::JSON, value.to_string())
}

/// An response with one more header.
pub(crate) fn with(mut response: http::Response<Body>, name: &'static str, value: &str) -> http::Response<Body> {
    response.headers_mut().insert(name, value.parse().unwrap());
    response
}

pub(crate) fn map(name: &str) -> ConfigMap {
    serde_json::from_value(map_json(name)).unwrap()
}

pub(crate) fn map_json(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}})
}

/// An response with that object, as protobuf.
pub(crate) fn map_response(name: &str) -> http::Response<Body> {
    response(200, media_type::PROTOBUF, klient::wire::encode_body(&map(name)).unwrap())
}

/// A body that arrives as the test sends it, and the way to send.
pub(crate) fn fed() -> (mpsc::UnboundedSender<Result<Bytes, BoxError>>, Body) {
    let (sender, chunks) = mpsc::unbounded_channel();
    (sender, Body::new(Fed { chunks }))
}

struct Fed {
    chunks: mpsc::UnboundedReceiver<Result<Bytes, BoxError>>,
}

impl http_body::Body for Fed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

/// A body that never ends, of that text again and again.
pub(crate) fn endless(text: &'static str) -> Body {
    Body::new(Endless { chunk: Bytes::from(text.repeat((1 << 20) / text.len())) })
}

struct Endless {
    chunk: Bytes,
}

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))))
    }
}

/// The messages of an error and of all that it is caused by.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

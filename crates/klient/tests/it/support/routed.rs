//! A transport that responds by the path of a request, in any order, and records the requests.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use klient::{
    Client, Error, ErrorKind,
    client::http::{SendFuture, Transport},
};

use crate::support::scripted::Step;

type Respond = Box<dyn Fn(&http::Request<Bytes>) -> Step + Send + Sync>;

/// A transport whose responses come from a function.
pub(crate) struct Routed {
    respond: Respond,
    seen: Mutex<Vec<http::Request<Bytes>>>,
    /// Held by a test to delay responses.
    pub(crate) gate: tokio::sync::RwLock<()>,
}

impl Routed {
    pub(crate) fn new<S: Into<Step>>(
        respond: impl Fn(&http::Request<Bytes>) -> S + Send + Sync + 'static,
    ) -> Arc<Self> {
        let respond = Box::new(move |request: &http::Request<Bytes>| respond(request).into());
        Arc::new(Self { respond, seen: Mutex::default(), gate: tokio::sync::RwLock::default() })
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        Client::builder(Arc::clone(self)).build()
    }

    /// Waits until so many requests have arrived since the last call of `seen`, and lets other tasks run.
    pub(crate) async fn asked(&self, count: usize) {
        let mut turns = 0;
        while self.seen.lock().unwrap().len() < count {
            turns += 1;
            assert!(turns < 10_000, "no request arrived");
            tokio::task::yield_now().await;
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// The requests since the last call.
    pub(crate) fn seen(&self) -> Vec<http::Request<Bytes>> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// The paths that were asked for since the last call, in alphabetical order.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.seen().iter().map(|request| request.uri().to_string()).collect();
        paths.sort();
        paths
    }
}

impl Transport for Routed {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        Box::pin(async move {
            let step = (self.respond)(&request);
            self.seen.lock().unwrap().push(request);
            drop(self.gate.read().await);
            match step {
                Step::Respond(response) => Ok(response),
                Step::Broken => Err(Error::new(ErrorKind::Transport, "the routed connection broke")),
                Step::Silence => std::future::pending().await,
            }
        })
    }
}

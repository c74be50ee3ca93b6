//! A transport that answers by what is asked for, whatever the order, and keeps what it was asked.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use klient::{
    Client, Error, ErrorKind,
    client::http::{SendFuture, Transport},
};

use crate::support::scripted::Step;

type Answer = Box<dyn Fn(&http::Request<Bytes>) -> Step + Send + Sync>;

/// Answers each request with what a function makes of it.
pub(crate) struct Routed {
    answer: Answer,
    seen: Mutex<Vec<http::Request<Bytes>>>,
    /// Answers wait here while the test holds it.
    pub(crate) gate: tokio::sync::RwLock<()>,
}

impl Routed {
    pub(crate) fn new<S: Into<Step>>(answer: impl Fn(&http::Request<Bytes>) -> S + Send + Sync + 'static) -> Arc<Self> {
        let answer = Box::new(move |request: &http::Request<Bytes>| answer(request).into());
        Arc::new(Self { answer, seen: Mutex::default(), gate: tokio::sync::RwLock::default() })
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
            let step = (self.answer)(&request);
            self.seen.lock().unwrap().push(request);
            drop(self.gate.read().await);
            match step {
                Step::Answer(answer) => Ok(answer),
                Step::Broken => Err(Error::new(ErrorKind::Transport, "the routed connection broke")),
                Step::Silence => std::future::pending().await,
            }
        })
    }
}

//! The connection below a response with status 101, as an extension of the response.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

type Serve = Box<dyn FnOnce(Box<dyn Io>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The connection below a response with status 101, as an extension of the response. It can be taken once.
///
/// A transport that opened a connection inserts it as [`from_io`](Self::from_io). A server in the same process inserts
/// the function that serves it, as [`served_by`](Self::served_by).
#[derive(Clone)]
pub struct Upgraded {
    inner: Arc<Mutex<Option<Inner>>>,
}

enum Inner {
    Io(Box<dyn Io>),
    Serve(Serve),
}

impl Upgraded {
    /// Wraps a connection.
    pub fn from_io(io: impl Io) -> Self {
        Self::new(Inner::Io(Box::new(io)))
    }

    /// Wraps the function that serves the other end of the connection.
    pub fn served_by<F, A>(serve: F) -> Self
    where
        F: FnOnce(Box<dyn Io>) -> A + Send + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        Self::new(Inner::Serve(Box::new(|io| Box::pin(serve(io)))))
    }

    fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(Mutex::new(Some(inner))) }
    }

    fn take(&self) -> Option<Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the connection. A function that serves it starts in a task, which ends with the connection.
    pub fn into_io(self) -> Option<Box<dyn Io>> {
        match self.take()? {
            Inner::Io(io) => Some(io),
            Inner::Serve(serve) => {
                let (ours, theirs) = tokio::io::duplex(PIPE);
                tokio::spawn(serve(Box::new(theirs)));
                Some(Box::new(ours))
            }
        }
    }

    /// Takes the function and calls it for a connection. A wrapped connection is dropped.
    pub async fn serve(self, io: impl Io) {
        if let Some(Inner::Serve(serve)) = self.take() {
            serve(Box::new(io)).await;
        }
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgraded")
    }
}

/// More than any message, so that tests with a paused clock do not depend on the order of reads and writes.
const PIPE: usize = 256 << 10;

//! Response bodies: all bytes at once, or a stream that a task sends.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::{sync::mpsc, task::JoinHandle};

/// The body of a response. Dropping the body ends a watch.
pub struct ResponseBody {
    inner: Inner,
    damage: Option<Damage>,
    /// A value that is dropped with the body.
    guard: Option<Box<dyn Send>>,
}

enum Inner {
    Whole(Option<Bytes>),
    Stream { chunks: mpsc::Receiver<Bytes>, task: JoinHandle<()> },
}

/// The damage that a fault does to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The connection breaks after this number of bytes.
    CutAfter(usize),
    /// The byte at this offset is changed.
    Flip(usize),
    /// The body stalls after this number of bytes, and the connection stays open.
    StallAfter(usize),
}

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { inner: Inner::Whole(Some(bytes.into())), damage: None, guard: None }
    }

    /// Returns a body of the chunks that a task sends. Dropping the body ends the task.
    pub(crate) fn stream(chunks: mpsc::Receiver<Bytes>, task: JoinHandle<()>) -> Self {
        Self { inner: Inner::Stream { chunks, task }, damage: None, guard: None }
    }

    /// Keeps a value until the body is dropped.
    pub(crate) fn guarded(mut self, guard: Box<dyn Send>) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Damages the body.
    pub(crate) fn damaged(mut self, damage: Damage) -> Self {
        self.damage = Some(damage);
        self
    }

    /// Returns the bytes, if the body is not a stream.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match &self.inner {
            Inner::Whole(bytes) if self.damage.is_none() => bytes.as_ref(),
            _ => None,
        }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.inner {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty())),
            Inner::Stream { chunks, .. } => chunks.poll_recv(context),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.damage {
            Some(Damage::CutAfter(0)) => {
                let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut on purpose");
                return Poll::Ready(Some(Err(broken)));
            }
            Some(Damage::StallAfter(0)) => return Poll::Pending,
            _ => {}
        }
        let Some(mut chunk) = ready!(self.poll_chunk(context)) else { return Poll::Ready(None) };
        match &mut self.damage {
            None => {}
            Some(Damage::CutAfter(left) | Damage::StallAfter(left)) => {
                chunk.truncate(*left);
                *left -= chunk.len();
            }
            Some(Damage::Flip(at)) if *at < chunk.len() => {
                let mut changed = chunk.to_vec();
                changed[*at] ^= 0x55;
                chunk = changed.into();
                self.damage = None;
            }
            Some(Damage::Flip(at)) => *at -= chunk.len(),
        }
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.damage.is_none()
            && matches!(&self.inner, Inner::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            // The full size is announced even if the body will be cut, so that clients notice.
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Inner::Stream { .. } => SizeHint::default(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Inner::Stream { task, .. } = &self.inner {
            task.abort();
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.inner {
            Inner::Whole(_) => "ResponseBody(whole)",
            Inner::Stream { .. } => "ResponseBody(stream)",
        })
    }
}

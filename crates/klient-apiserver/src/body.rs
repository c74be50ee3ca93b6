//! The body of an answer: all at once, or a stream of what a task of its own sends.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::{sync::mpsc, task::JoinHandle};

/// The body of an answer.
pub struct ResponseBody {
    inner: Inner,
}

enum Inner {
    Whole(Option<Bytes>),
    Stream { chunks: mpsc::Receiver<Bytes>, task: JoinHandle<()> },
}

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { inner: Inner::Whole(Some(bytes.into())) }
    }

    /// What a task sends; dropping the body ends the task.
    pub(crate) fn stream(chunks: mpsc::Receiver<Bytes>, task: JoinHandle<()>) -> Self {
        Self { inner: Inner::Stream { chunks, task } }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.inner {
            Inner::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            Inner::Stream { chunks, .. } => {
                chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.inner, Inner::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
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

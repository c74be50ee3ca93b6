//! Response bodies that are cut, stalled, delayed, shortened or changed.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use klient::{BoxError, client::http::Body};
use tokio::{
    sync::watch,
    time::{Sleep, sleep},
};

/// The damage of one body.
pub(crate) enum Damage {
    None,
    /// The connection breaks after this number of bytes.
    CutAfter(usize),
    /// The body stalls after this number of bytes.
    StallAfter(usize),
    /// The body ends after this number of bytes.
    EndAfter(usize),
    /// The byte at this offset is changed.
    Flip(usize),
    /// The body arrives in pieces, until the faults of the world end.
    Trickle(Trickle),
}

/// A slow body.
pub(crate) struct Trickle {
    piece: usize,
    every: Duration,
    rest: Bytes,
    pause: Option<Pin<Box<Sleep>>>,
}

/// A body with damage, whose connection can be cut at any time.
pub(crate) struct DamagedBody {
    inner: Body,
    damage: Damage,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    healed: watch::Receiver<bool>,
}

impl Damage {
    pub(crate) fn trickle(piece: u64, every: Duration) -> Self {
        let piece = usize::try_from(piece).unwrap_or(1);
        Self::Trickle(Trickle { piece, every, rest: Bytes::new(), pause: None })
    }
}

impl DamagedBody {
    pub(crate) fn new(
        inner: Body,
        damage: Damage,
        mut cuts: watch::Receiver<u64>,
        healed: watch::Receiver<bool>,
    ) -> Self {
        let cut = Box::pin(async move {
            if cuts.changed().await.is_err() {
                // The world has ended.
                std::future::pending::<()>().await;
            }
        });
        Self { inner, damage, cut, healed }
    }

    fn poll_trickle(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Damage::Trickle(trickle) = &mut self.damage else { return Poll::Ready(None) };
        if let Some(pause) = &mut trickle.pause {
            if !*self.healed.borrow() {
                ready!(pause.as_mut().poll(context));
            }
            trickle.pause = None;
        }
        if trickle.rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)) else { return Poll::Ready(None) };
            trickle.rest = frame?.into_data().unwrap_or_default();
        }
        let size = if *self.healed.borrow() { usize::MAX } else { trickle.piece };
        let piece = trickle.rest.split_to(size.min(trickle.rest.len()));
        trickle.pause = Some(Box::pin(sleep(trickle.every)));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl http_body::Body for DamagedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let is_cut = self.cut.as_mut().poll(context).is_ready();
        if is_cut || matches!(self.damage, Damage::CutAfter(0)) {
            let broken = io::Error::new(io::ErrorKind::ConnectionReset, "connection was cut on purpose");
            self.damage = Damage::CutAfter(0);
            // A completed future must not be polled again.
            self.cut = Box::pin(std::future::pending());
            return Poll::Ready(Some(Err(broken.into())));
        }
        match self.damage {
            Damage::StallAfter(0) => return Poll::Pending,
            Damage::EndAfter(0) => return Poll::Ready(None),
            Damage::Trickle(_) => return self.poll_trickle(context),
            _ => {}
        }
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)) else { return Poll::Ready(None) };
        let mut chunk = frame?.into_data().unwrap_or_default();
        match &mut self.damage {
            Damage::CutAfter(left) | Damage::StallAfter(left) | Damage::EndAfter(left) => {
                chunk.truncate(*left);
                *left -= chunk.len();
            }
            Damage::Flip(at) if *at < chunk.len() => {
                let mut changed = chunk.to_vec();
                changed[*at] ^= 0x55;
                chunk = changed.into();
                self.damage = Damage::None;
            }
            Damage::Flip(at) => *at -= chunk.len(),
            Damage::None | Damage::Trickle(_) => {}
        }
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }
}

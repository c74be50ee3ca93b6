//! Decompression of a body while it is streamed, with any number of gzip members.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use klient_proto::GzipDecoder;

use crate::client::http::body::Body;
use crate::error::BoxError;

pub(in crate::client) struct Gunzip {
    compressed: Body,
    decoder: Option<GzipDecoder>,
    /// The decompressed bytes of one chunk.
    plain: Vec<u8>,
}

impl Gunzip {
    pub(in crate::client) fn new(compressed: Body) -> Self {
        Self { compressed, decoder: Some(GzipDecoder::new()), plain: Vec::new() }
    }
}

impl HttpBody for Gunzip {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        loop {
            let Some(decoder) = &mut this.decoder else { return Poll::Ready(None) };
            let Some(frame) = ready!(Pin::new(&mut this.compressed).poll_frame(context)) else {
                let end = this.decoder.take().map_or(Ok(()), GzipDecoder::finish);
                return Poll::Ready(end.err().map(|error| Err(error.into())));
            };
            let Ok(data) = frame?.into_data() else { continue };
            let plain = &mut this.plain;
            let pushed = decoder.push(&data, |bytes| {
                plain.extend_from_slice(bytes);
                Ok(())
            });
            if let Err(error) = pushed {
                this.decoder = None;
                return Poll::Ready(Some(Err(error.into())));
            }
            if !plain.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(std::mem::take(plain).into()))));
            }
        }
    }
}

//! Decompression of a body while it is streamed, with any number of gzip members.
//!
//! A frame may expand to a thousand times its size. It is expanded piece by piece, as the reader asks for more, so that a
//! reader that limits its input also limits the memory.

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
    /// The part of the last frame that was not decompressed yet.
    rest: Bytes,
}

impl Gunzip {
    pub(in crate::client) fn new(compressed: Body) -> Self {
        Self { compressed, decoder: Some(GzipDecoder::new()), rest: Bytes::new() }
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
            let mut plain = Vec::new();
            while !this.rest.is_empty() && plain.len() < PIECE {
                let compressed = this.rest.split_to(this.rest.len().min(COMPRESSED_PIECE));
                let pushed = decoder.push(&compressed, |bytes| {
                    plain.extend_from_slice(bytes);
                    Ok(())
                });
                if let Err(error) = pushed {
                    this.decoder = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
            if !plain.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(plain.into()))));
            }
            let Some(frame) = ready!(Pin::new(&mut this.compressed).poll_frame(context)) else {
                let end = this.decoder.take().map_or(Ok(()), GzipDecoder::finish);
                return Poll::Ready(end.err().map(|error| Err(error.into())));
            };
            if let Ok(data) = frame?.into_data() {
                this.rest = data;
            }
        }
    }
}

/// The size from which a piece is returned. It may be larger by what one compressed piece expands to.
const PIECE: usize = 64 << 10;
/// The number of compressed bytes that are expanded at once: deflate expands them to half a megabyte at most.
const COMPRESSED_PIECE: usize = 512;

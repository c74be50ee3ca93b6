//! The log of a container, as a stream of chunks or lines.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{Error, client::http::Body};
use bytes::Bytes;
use futures_core::Stream;

/// The log of a container, as it arrives: a stream of chunks, or of lines with [`line`](Self::line).
///
/// Dropping the stream ends the request.
pub struct LogStream {
    body: Body,
    /// The start of a line whose end has not arrived.
    line: Vec<u8>,
    rest: Bytes,
}

impl LogStream {
    pub(in crate::client) fn new(body: Body) -> Self {
        Self { body, line: Vec::new(), rest: Bytes::new() }
    }

    /// Returns the next line without its line end, or `None` at the end of the log.
    ///
    /// Bytes that are not UTF-8 are replaced. A line of more than 1 MiB is returned in pieces.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection breaks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no data.
    pub async fn line(&mut self) -> Result<Option<String>, Error> {
        Ok(self.piece().await?.map(|(line, _)| line))
    }

    /// Returns the next line, and whether its end was read. The last one may have none.
    pub(in crate::client) async fn piece(&mut self) -> Result<Option<(String, bool)>, Error> {
        loop {
            let end = self.rest.iter().position(|byte| *byte == b'\n');
            let room = MAX_LINE - self.line.len();
            match end {
                Some(end) if end <= room => {
                    let piece = self.rest.split_to(end + 1);
                    self.line.extend_from_slice(&piece[..end]);
                    return Ok(Some((self.take_line(), true)));
                }
                _ if self.rest.len() > room => {
                    let piece = self.rest.split_to(room);
                    self.line.extend_from_slice(&piece);
                    return Ok(Some((self.take_line(), true)));
                }
                _ => {
                    self.line.extend_from_slice(&self.rest);
                    self.rest = Bytes::new();
                }
            }
            match self.body.chunk().await? {
                Some(chunk) => self.rest = chunk,
                None if self.line.is_empty() => return Ok(None),
                None => return Ok(Some((self.take_line(), false))),
            }
        }
    }

    fn take_line(&mut self) -> String {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl Stream for LogStream {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.line.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.line).into())));
        }
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.rest))));
        }
        Poll::Ready(ready!(self.body.poll_chunk(context)).transpose())
    }
}

impl fmt::Debug for LogStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogStream")
    }
}

const MAX_LINE: usize = 1 << 20;

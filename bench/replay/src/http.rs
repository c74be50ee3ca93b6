//! The part of HTTP/1.1 that three clients on loopback need: requests with ignored bodies, and responses whole or in chunks.

use std::{
    io::{self, BufRead, Read as _, Write},
    net::TcpStream,
};

use anyhow::{Context as _, Result, ensure};

/// Large enough that system calls are negligible.
const WRITE: usize = 256 * 1024;

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    query: String,
    accept: String,
    closes: bool,
}

impl Request {
    /// Reads the next request. Returns `None` if the client has disconnected.
    pub(crate) fn read(from: &mut impl BufRead) -> Result<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let method = words.next().context("no method")?.to_owned();
        let (path, query) =
            words.next().map(|target| target.split_once('?').unwrap_or((target, ""))).context("no path")?;
        let (path, query) = (path.to_owned(), query.to_owned());
        let mut request = Self { method, path, query, accept: String::new(), closes: false };
        let mut length = 0;
        loop {
            let mut line = String::new();
            ensure!(from.read_line(&mut line)? > 0, "a request does not end");
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "accept" => request.accept = value.trim().to_owned(),
                "content-length" => length = value.trim().parse()?,
                "connection" => request.closes = value.trim().eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        io::copy(&mut from.take(length), &mut io::sink())?;
        Ok(Some(request))
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
            .map(|(_, value)| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.parameter(name).is_some_and(|value| value == "true" || value == "1")
    }

    pub(crate) fn accepts(&self, media_type: &str) -> bool {
        self.accept.contains(media_type)
    }

    /// Returns whether the connection is closed after this response.
    pub(crate) fn closes(&self) -> bool {
        self.closes
    }
}

/// Sends a complete response.
pub(crate) fn whole(to: &mut TcpStream, status: &str, content_type: &str, body: &[u8]) -> Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n");
    to.write_all(&[head.as_bytes(), body].concat())?;
    Ok(())
}

/// A response of unknown length, in chunks, many of which go to the socket in one write.
pub(crate) struct Chunked<'a> {
    to: &'a mut TcpStream,
    buffer: Vec<u8>,
}

impl<'a> Chunked<'a> {
    pub(crate) fn new(to: &'a mut TcpStream, content_type: &str) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut buffer = Vec::with_capacity(2 * WRITE);
        buffer.extend_from_slice(head.as_bytes());
        Self { to, buffer }
    }

    /// Appends one chunk.
    pub(crate) fn chunk(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        // The length precedes the data and is known last, so that it has a fixed number of digits.
        let start = self.buffer.len();
        self.buffer.extend_from_slice(b"00000000\r\n");
        write(&mut self.buffer);
        let length = self.buffer.len() - start - 10;
        if length == 0 {
            self.buffer.truncate(start);
            return Ok(());
        }
        self.buffer[start..start + 8].copy_from_slice(format!("{length:08x}").as_bytes());
        self.buffer.extend_from_slice(b"\r\n");
        if self.buffer.len() >= WRITE { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.to.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    pub(crate) fn end(mut self) -> Result<()> {
        self.buffer.extend_from_slice(b"0\r\n\r\n");
        self.flush()
    }

    /// Returns whether the client has disconnected. It sends nothing until the response ends.
    pub(crate) fn is_abandoned(&self) -> Result<bool> {
        self.to.set_nonblocking(true)?;
        let peeked = self.to.peek(&mut [0]);
        self.to.set_nonblocking(false)?;
        Ok(!peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_requests_one_after_the_other() {
        let text = "GET /pods?limit=5&watch=true HTTP/1.1\r\nAccept: application/json\r\n\r\nPOST /go HTTP/1.1\r\n\
                    Content-Length: 2\r\nConnection: close\r\n\r\n{}";
        let mut from = text.as_bytes();
        let first = Request::read(&mut from).unwrap().unwrap();
        assert_eq!((first.path.as_str(), first.parameter("limit"), first.has("watch")), ("/pods", Some("5"), true));
        assert!(first.accepts("application/json") && !first.closes());
        let second = Request::read(&mut from).unwrap().unwrap();
        assert!(second.method == "POST" && second.closes());
        assert!(Request::read(&mut from).unwrap().is_none());
    }
}

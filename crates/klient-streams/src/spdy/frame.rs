//! Frames: from bytes to frames and back, without sockets.
//!
//! Data is returned as it arrives, so that the length of a data frame bounds no buffer. Control frames are short.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::{
    SpdyError,
    header::{HeaderCompressor, HeaderDecompressor, Headers},
};

/// A frame, or a part of a data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Opens a stream.
    SynStream {
        /// The number of the stream: odd if the client opens it.
        id: u32,
        /// Whether the sender will send no data.
        fin: bool,
        /// The headers.
        headers: Headers,
    },
    /// Accepts a stream.
    SynReply {
        /// The number of the stream.
        id: u32,
        /// Whether the sender will send no data.
        fin: bool,
        /// The headers.
        headers: Headers,
    },
    /// Ends a stream in both directions.
    RstStream {
        /// The number of the stream.
        id: u32,
        /// The reason.
        status: u32,
    },
    /// Requests the same frame in return.
    Ping(u32),
    /// Announces the end of the connection.
    GoAway,
    /// Adds headers to a stream.
    Headers {
        /// The number of the stream.
        id: u32,
        /// Whether the sender will send no more data.
        fin: bool,
    },
    /// Data, or a part of the data of one frame.
    Data {
        /// The number of the stream.
        id: u32,
        /// Whether the sender will send no more data.
        fin: bool,
        /// The data.
        data: Bytes,
    },
}

/// The length of the head of each frame.
pub const HEAD: usize = 8;
/// The status of a stream that its receiver does not accept.
pub const REFUSED_STREAM: u32 = 3;
/// The status of a stream that its opener no longer needs.
pub const CANCEL: u32 = 5;

/// A reader of frames.
#[derive(Default)]
pub struct FrameReader {
    headers: HeaderDecompressor,
    /// The data frame that is being read.
    data: Option<DataFrame>,
}

struct DataFrame {
    id: u32,
    fin: bool,
    left: usize,
}

impl FrameReader {
    /// Takes the next frame from the bytes that have arrived, or returns `None` if more must arrive first.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are no SPDY/3.1. The connection cannot be used afterwards.
    pub fn next(&mut self, arrived: &mut BytesMut) -> Result<Option<Frame>, SpdyError> {
        loop {
            if let Some(data) = &mut self.data {
                let taken = data.left.min(arrived.len());
                if taken == 0 && data.left > 0 {
                    return Ok(None);
                }
                data.left -= taken;
                let (id, is_last) = (data.id, data.left == 0);
                let fin = data.fin && is_last;
                if is_last {
                    self.data = None;
                }
                return Ok(Some(Frame::Data { id, fin, data: arrived.split_to(taken).freeze() }));
            }
            let Some(mut head) = arrived.get(..HEAD) else { return Ok(None) };
            let (word, rest) = (head.get_u32(), head.get_u32());
            let (flags, length) = ((rest >> 24) as u8, (rest & 0x00ff_ffff) as usize);
            let fin = flags & FIN != 0;
            if word & CONTROL == 0 {
                arrived.advance(HEAD);
                if word == 0 {
                    return Err(SpdyError::new("data frame of stream 0"));
                }
                self.data = Some(DataFrame { id: word, fin, left: length });
                continue;
            }
            if (word >> 16) & 0x7fff != VERSION {
                return Err(SpdyError::new("control frame of another version than SPDY/3"));
            }
            if length > MAX_CONTROL {
                return Err(SpdyError::new("control frame is longer than 64 KiB"));
            }
            if arrived.len() < HEAD + length {
                return Ok(None);
            }
            arrived.advance(HEAD);
            let body = arrived.split_to(length).freeze();
            if let Some(frame) = self.control(word & 0xffff, fin, body)? {
                return Ok(Some(frame));
            }
        }
    }

    fn control(&mut self, kind: u32, fin: bool, mut body: Bytes) -> Result<Option<Frame>, SpdyError> {
        let short = |_| SpdyError::new("control frame is too short");
        Ok(Some(match kind {
            SYN_STREAM => {
                let id = stream(body.try_get_u32().map_err(short)?)?;
                // The associated stream, the priority and the slot.
                body.try_get_u32().map_err(short)?;
                body.try_get_u16().map_err(short)?;
                Frame::SynStream { id, fin, headers: self.headers.decompress(&body)? }
            }
            SYN_REPLY => {
                let id = stream(body.try_get_u32().map_err(short)?)?;
                Frame::SynReply { id, fin, headers: self.headers.decompress(&body)? }
            }
            HEADERS => {
                let id = stream(body.try_get_u32().map_err(short)?)?;
                // The contents are unused, but the decompressor must see every block.
                self.headers.decompress(&body)?;
                Frame::Headers { id, fin }
            }
            RST_STREAM => {
                let id = stream(body.try_get_u32().map_err(short)?)?;
                Frame::RstStream { id, status: body.try_get_u32().map_err(short)? }
            }
            PING => Frame::Ping(body.try_get_u32().map_err(short)?),
            GOAWAY => Frame::GoAway,
            // Peers send no windows that they keep to, and unknown frames must be ignored.
            _ => return Ok(None),
        }))
    }
}

/// A writer of control frames, and of the heads of data frames.
#[derive(Default)]
pub struct FrameWriter {
    headers: HeaderCompressor,
}

impl FrameWriter {
    /// Writes the frame that opens a stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the headers cannot be compressed.
    pub fn syn_stream(&mut self, id: u32, headers: &Headers) -> Result<BytesMut, SpdyError> {
        let mut block = Vec::new();
        self.headers.compress(headers, &mut block)?;
        let mut frame = control(SYN_STREAM, 10 + block.len())?;
        frame.put_u32(id);
        frame.put_u32(0);
        frame.put_u16(0);
        frame.put_slice(&block);
        Ok(frame)
    }

    /// Writes the frame that accepts a stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the headers cannot be compressed.
    pub fn syn_reply(&mut self, id: u32) -> Result<BytesMut, SpdyError> {
        let mut block = Vec::new();
        self.headers.compress(&Headers::default(), &mut block)?;
        let mut frame = control(SYN_REPLY, 4 + block.len())?;
        frame.put_u32(id);
        frame.put_slice(&block);
        Ok(frame)
    }

    /// Writes the frame that ends a stream in both directions.
    pub fn rst_stream(id: u32, status: u32) -> BytesMut {
        short(RST_STREAM, &[id, status])
    }

    /// Writes a ping.
    pub fn ping(id: u32) -> BytesMut {
        short(PING, &[id])
    }

    /// Writes the frame that announces the end of the connection.
    pub fn go_away(last_stream: u32) -> BytesMut {
        short(GOAWAY, &[last_stream, 0])
    }

    /// Writes the head of a data frame into the first [`HEAD`] bytes of a buffer; the rest of the buffer is the data.
    ///
    /// Data of 16 MiB and more does not fit into a frame.
    pub fn data_head(buffer: &mut [u8], id: u32, fin: bool) {
        let length = buffer.len().saturating_sub(HEAD).min(0x00ff_ffff) as u32;
        if let Some((head, _)) = buffer.split_first_chunk_mut::<HEAD>() {
            let flags = if fin { u32::from(FIN) << 24 } else { 0 };
            head[..4].copy_from_slice(&(id & !CONTROL).to_be_bytes());
            head[4..].copy_from_slice(&(flags | length).to_be_bytes());
        }
    }
}

fn control(kind: u32, length: usize) -> Result<BytesMut, SpdyError> {
    if length > MAX_CONTROL {
        return Err(SpdyError::new("headers of a stream are longer than 64 KiB"));
    }
    let mut frame = BytesMut::with_capacity(HEAD + length);
    frame.put_u32(CONTROL | (VERSION << 16) | kind);
    frame.put_u32(length as u32);
    Ok(frame)
}

/// Returns a control frame of a few numbers.
fn short(kind: u32, numbers: &[u32]) -> BytesMut {
    let mut frame = BytesMut::with_capacity(HEAD + 8);
    frame.put_u32(CONTROL | (VERSION << 16) | kind);
    frame.put_u32(numbers.len() as u32 * 4);
    for number in numbers {
        frame.put_u32(*number);
    }
    frame
}

fn stream(id: u32) -> Result<u32, SpdyError> {
    match id & !CONTROL {
        0 => Err(SpdyError::new("control frame of stream 0")),
        id => Ok(id),
    }
}

const CONTROL: u32 = 1 << 31;
const VERSION: u32 = 3;
const FIN: u8 = 1;
const SYN_STREAM: u32 = 1;
const SYN_REPLY: u32 = 2;
const RST_STREAM: u32 = 3;
const PING: u32 = 6;
const GOAWAY: u32 = 7;
const HEADERS: u32 = 8;
const MAX_CONTROL: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> Headers {
        Headers::new([("streamtype", "data"), ("port", "80"), ("requestid", "7")])
    }

    fn written() -> (Vec<u8>, Vec<Frame>) {
        let mut writer = FrameWriter::default();
        let mut data = BytesMut::from(&b"........hello"[..]);
        FrameWriter::data_head(&mut data, 5, true);
        let mut empty = BytesMut::from(&b"........"[..]);
        FrameWriter::data_head(&mut empty, 3, false);
        let bytes = [
            &writer.syn_stream(5, &headers()).unwrap()[..],
            &writer.syn_reply(5).unwrap(),
            &FrameWriter::ping(9),
            &data,
            &empty,
            &FrameWriter::rst_stream(5, CANCEL),
            // SETTINGS and WINDOW_UPDATE are skipped.
            &[0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0],
            &[0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 1, 0],
            &writer.syn_stream(7, &headers()).unwrap(),
            &FrameWriter::go_away(7),
        ]
        .concat();
        let frames = vec![
            Frame::SynStream { id: 5, fin: false, headers: headers() },
            Frame::SynReply { id: 5, fin: false, headers: Headers::default() },
            Frame::Ping(9),
            Frame::Data { id: 5, fin: true, data: Bytes::from_static(b"hello") },
            Frame::Data { id: 3, fin: false, data: Bytes::new() },
            Frame::RstStream { id: 5, status: CANCEL },
            Frame::SynStream { id: 7, fin: false, headers: headers() },
            Frame::GoAway,
        ];
        (bytes, frames)
    }

    #[test]
    fn reader_reads_what_the_writer_wrote() {
        let (bytes, expected) = written();
        let mut arrived = BytesMut::from(&bytes[..]);
        let mut reader = FrameReader::default();
        let mut frames = Vec::new();
        while let Some(frame) = reader.next(&mut arrived).unwrap() {
            frames.push(frame);
        }
        assert_eq!(frames, expected);
        assert!(arrived.is_empty());
    }

    #[test]
    fn frames_do_not_depend_on_the_boundaries_of_reads() {
        let (bytes, expected) = written();
        for step in [1, 2, 3, 5, 7, 9, 30] {
            let mut arrived = BytesMut::new();
            let mut reader = FrameReader::default();
            let mut frames: Vec<Frame> = Vec::new();
            for piece in bytes.chunks(step) {
                arrived.extend_from_slice(piece);
                while let Some(frame) = reader.next(&mut arrived).unwrap() {
                    match (frames.last_mut(), frame) {
                        // Parts of one data frame are joined.
                        (
                            Some(Frame::Data { id, data, fin: fin @ false }),
                            Frame::Data { id: next, data: more, fin: end },
                        ) if *id == next => {
                            *data = [&data[..], &more[..]].concat().into();
                            *fin = end;
                        }
                        (_, frame) => frames.push(frame),
                    }
                }
            }
            assert_eq!(frames, expected, "{step}");
        }
    }

    #[test]
    fn malformed_frames_are_errors() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request"[..8],
            &[0, 0, 0, 0, 0, 0, 0, 0],
            &[0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1],
            &[0x80, 3, 0, 6, 0, 0, 0, 2, 0, 1],
            &[0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0x80, 3, 0, 1, 0, 1, 0, 1],
            &[0x80, 3, 0, 1, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2],
        ] {
            let outcome = FrameReader::default().next(&mut BytesMut::from(bytes));
            // "HTTP" is the head of a data frame of a very high stream, which only the session refuses.
            assert!(outcome.is_err() || bytes.starts_with(b"HTTP"), "{bytes:?}: {outcome:?}");
        }
    }
}

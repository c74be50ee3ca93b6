//! Header blocks: names and values, compressed by one zlib stream per direction of a connection.
//!
//! Blocks must be compressed and decompressed in the order in which they are sent.

use bytes::{Buf as _, Bytes};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::{SpdyError, dictionary::dictionary};

/// The headers of a stream, in the order in which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    pairs: Vec<(String, String)>,
}

impl Headers {
    /// Returns headers from pairs of names and values. Names are sent in lower case.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Self { pairs: pairs.collect() }
    }

    /// Returns the value of a header. The name must be in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    fn to_block(&self) -> Vec<u8> {
        let mut block = Vec::new();
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        block.extend_from_slice(&length(self.pairs.len()));
        for text in self.pairs.iter().flat_map(|(name, value)| [name, value]) {
            block.extend_from_slice(&length(text.len()));
            block.extend_from_slice(text.as_bytes());
        }
        block
    }

    fn from_block(block: &[u8]) -> Result<Self, SpdyError> {
        const MALFORMED: SpdyError = SpdyError::new("malformed header block");
        let mut rest = block;
        let count = rest.try_get_u32().map_err(|_| MALFORMED)?;
        let mut pairs: Vec<(String, String)> = Vec::new();
        for _ in 0..count {
            let [name, value] = [text(&mut rest).ok_or(MALFORMED)?, text(&mut rest).ok_or(MALFORMED)?];
            let name = name.to_ascii_lowercase();
            if name.is_empty() || pairs.iter().any(|(known, _)| *known == name) {
                return Err(SpdyError::new("header block has an empty or a repeated name"));
            }
            pairs.push((name, value));
        }
        if rest.is_empty() { Ok(Self { pairs }) } else { Err(MALFORMED) }
    }
}

/// Reads a text after its length.
fn text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(rest.try_get_u32().ok()?).ok()?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

/// The compressor of the header blocks of one direction.
pub struct HeaderCompressor {
    zlib: Compress,
    has_dictionary: bool,
}

impl HeaderCompressor {
    /// Creates the compressor of a new connection.
    pub fn new() -> Self {
        Self { zlib: Compress::new(Compression::new(6), true), has_dictionary: false }
    }

    /// Appends a compressed block.
    ///
    /// # Errors
    ///
    /// Returns an error if zlib fails.
    pub fn compress(&mut self, headers: &Headers, out: &mut Vec<u8>) -> Result<(), SpdyError> {
        const FAILED: SpdyError = SpdyError::new("cannot compress header block");
        if !self.has_dictionary {
            self.zlib.set_dictionary(dictionary()).map_err(|_| FAILED)?;
            self.has_dictionary = true;
        }
        let block = headers.to_block();
        let mut rest = &block[..];
        loop {
            out.reserve(rest.len() + 64);
            let (before, room) = (self.zlib.total_in(), out.capacity());
            self.zlib.compress_vec(rest, out, FlushCompress::Sync).map_err(|_| FAILED)?;
            rest = &rest[usize::try_from(self.zlib.total_in() - before).map_err(|_| FAILED)?..];
            // Free room after a flush means that zlib has nothing left to write.
            if rest.is_empty() && out.len() < room {
                return Ok(());
            }
        }
    }
}

impl Default for HeaderCompressor {
    fn default() -> Self {
        Self::new()
    }
}

/// The decompressor of the header blocks of one direction.
pub struct HeaderDecompressor {
    zlib: Decompress,
}

impl HeaderDecompressor {
    /// Creates the decompressor of a new connection.
    pub fn new() -> Self {
        Self { zlib: Decompress::new(true) }
    }

    /// Reads a compressed block.
    ///
    /// # Errors
    ///
    /// Returns an error if the block is malformed, or longer than 64 KiB. The connection cannot be used afterwards.
    pub fn decompress(&mut self, compressed: &Bytes) -> Result<Headers, SpdyError> {
        const MALFORMED: SpdyError = SpdyError::new("header block is not compressed with the dictionary of SPDY/3");
        let mut block = Vec::with_capacity(1024);
        let mut rest = &compressed[..];
        loop {
            if block.len() >= MAX_BLOCK {
                return Err(SpdyError::new("header block is longer than 64 KiB"));
            }
            block.reserve(1024);
            let (read, written) = (self.zlib.total_in(), block.len());
            let outcome = self.zlib.decompress_vec(rest, &mut block, FlushDecompress::Sync);
            rest = rest.get(usize::try_from(self.zlib.total_in() - read).map_err(|_| MALFORMED)?..).ok_or(MALFORMED)?;
            match outcome {
                Err(error) if error.needs_dictionary().is_some() => {
                    self.zlib.set_dictionary(dictionary()).map_err(|_| MALFORMED)?;
                }
                Err(_) | Ok(Status::StreamEnd) => return Err(MALFORMED),
                Ok(_) if rest.is_empty() && block.len() < block.capacity() => return Headers::from_block(&block),
                Ok(_) if block.len() == written && self.zlib.total_in() == read => return Err(MALFORMED),
                Ok(_) => {}
            }
        }
    }
}

impl Default for HeaderDecompressor {
    fn default() -> Self {
        Self::new()
    }
}

const MAX_BLOCK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn decompressor_reads_the_block_of_another_implementation() {
        let block =
            hex("78f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45a024cc64610024398b209198094adc8c0600000000ffff");
        let headers = HeaderDecompressor::new().decompress(&block.into()).unwrap();
        assert_eq!(headers, Headers::new([("streamtype", "error"), ("port", "80"), ("requestid", "0")]));
    }

    #[test]
    fn blocks_of_a_connection_are_read_in_order() {
        let (mut compressor, mut decompressor) = (HeaderCompressor::new(), HeaderDecompressor::new());
        for number in 0..500 {
            let number = number.to_string();
            let long = number.repeat(300);
            let headers = Headers::new([("streamType", "data"), ("port", number.as_str()), ("x", long.as_str())]);
            let mut block = Vec::new();
            compressor.compress(&headers, &mut block).unwrap();
            assert_eq!(decompressor.decompress(&block.into()).unwrap(), headers);
        }
    }

    #[test]
    fn malformed_blocks_are_errors() {
        let compressed = |plain: &[u8]| {
            let mut zlib = Compress::new(Compression::new(6), true);
            zlib.set_dictionary(dictionary()).unwrap();
            let mut out = Vec::with_capacity(4096);
            zlib.compress_vec(plain, &mut out, FlushCompress::Sync).unwrap();
            Bytes::from(out)
        };
        let read = |block: Bytes| HeaderDecompressor::new().decompress(&block);
        assert!(read(compressed(&[0, 0, 0, 0])).is_ok());
        for plain in [
            &[][..],
            &[0, 0, 0, 1],
            &[0, 0, 0, 0, 9],
            &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 1, 255, 255, 255, 255, 1],
            b"\0\0\0\x02\0\0\0\x01a\0\0\0\0\0\0\0\x01A\0\0\0\0",
            b"\0\0\0\x01\0\0\0\x01\xff\0\0\0\0",
        ] {
            assert!(read(compressed(plain)).is_err(), "{plain:?}");
        }
        assert!(read(Bytes::from_static(b"GET / HTTP/1.1")).is_err());
        assert!(read(Bytes::new()).is_err());
        // 16 MiB of zeros are a few KiB when they are compressed.
        let mut zlib = Compress::new(Compression::new(6), true);
        zlib.set_dictionary(dictionary()).unwrap();
        let mut bomb = Vec::with_capacity(1 << 20);
        zlib.compress_vec(&vec![0; 16 << 20], &mut bomb, FlushCompress::Sync).unwrap();
        assert!(read(bomb.into()).unwrap_err().to_string().contains("64 KiB"));
    }
}

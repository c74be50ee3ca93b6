//! Decompression of gzip bodies, also those with many members.
//!
//! Since 1.37, a server compresses a watch with one gzip member per event. A decoder that stops after the first member
//! returns one event and then none.

use flate2::{Decompress, FlushDecompress, Status};

use crate::{DecodeError, Problem, runtime::Result};

/// A streaming gzip decoder.
///
/// ```
/// use klient_proto::GzipDecoder;
/// # use std::io::Write;
/// # let compress = |text: &[u8]| {
/// #     let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
/// #     gzip.write_all(text).unwrap();
/// #     gzip.finish().unwrap()
/// # };
/// let body = [compress(b"first event\n"), compress(b"second event\n")].concat();
/// let mut decoder = GzipDecoder::new();
/// let mut text = Vec::new();
/// for chunk in body.chunks(5) {
///     decoder.push(chunk, |bytes| Ok(text.extend_from_slice(bytes)))?;
/// }
/// decoder.finish()?;
/// assert_eq!(text, b"first event\nsecond event\n");
/// # Ok::<(), klient_proto::DecodeError>(())
/// ```
pub struct GzipDecoder {
    /// The current member.
    member: Option<Decompress>,
    output: Box<[u8]>,
    offset: usize,
}

impl GzipDecoder {
    /// Creates a decoder for one body.
    pub fn new() -> Self {
        Self { member: None, output: vec![0; OUTPUT_LEN].into(), offset: 0 }
    }

    /// Decompresses a chunk and calls `sink` with the result, in pieces of bounded size.
    ///
    /// The whole result is passed on at once, so that no event waits for the next one.
    ///
    /// # Errors
    ///
    /// Returns an error if the chunk is not gzip, or `sink` fails.
    pub fn push(&mut self, mut chunk: &[u8], mut sink: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        loop {
            let member = match &mut self.member {
                Some(member) => member,
                None if chunk.is_empty() => return Ok(()),
                None => self.member.insert(Decompress::new_gzip(WINDOW_BITS)),
            };
            let (read_before, written_before) = (member.total_in(), member.total_out());
            let status = member
                .decompress(chunk, &mut self.output, FlushDecompress::None)
                .map_err(|error| DecodeError::new(Problem::Gzip(error.to_string()), self.offset))?;
            let read = usize::try_from(member.total_in() - read_before).unwrap_or(usize::MAX).min(chunk.len());
            let written = usize::try_from(member.total_out() - written_before).unwrap_or(usize::MAX);
            chunk = &chunk[read..];
            self.offset += read;
            if written > 0 {
                sink(self.output.get(..written).unwrap_or_default())?;
            }
            match status {
                // A decoder cannot be reset to expect gzip again, so each member has its own.
                Status::StreamEnd => self.member = None,
                Status::Ok | Status::BufError if read == 0 && written == 0 => {
                    if chunk.is_empty() {
                        return Ok(());
                    }
                    let reason = "no progress".to_owned();
                    return Err(DecodeError::new(Problem::Gzip(reason), self.offset));
                }
                Status::Ok | Status::BufError => {}
            }
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the body ends inside a member.
    pub fn finish(self) -> Result<()> {
        if self.member.is_some() {
            return Err(DecodeError::new(Problem::Gzip("body ends inside a member".to_owned()), self.offset));
        }
        Ok(())
    }
}

impl Default for GzipDecoder {
    fn default() -> Self {
        Self::new()
    }
}

const OUTPUT_LEN: usize = 64 << 10;
/// The largest window that gzip allows.
const WINDOW_BITS: u8 = 15;

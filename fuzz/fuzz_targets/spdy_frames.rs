//! SPDY frames: the same in any chunks; headers that are compressed are the same after decompression.

#![no_main]

use bytes::BytesMut;
use klient_fuzz::chunks;
use klient_streams::spdy::{
    SpdyError,
    frame::{Frame, FrameReader},
    header::{HeaderCompressor, HeaderDecompressor, Headers},
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (parts, body) = chunks(data);
    assert_eq!(frames(&parts), frames(&[body]));

    // Pairs of names and values, in blocks of one connection.
    let (mut compressor, mut decompressor) = (HeaderCompressor::new(), HeaderDecompressor::new());
    let texts: Vec<String> = parts.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    for (number, pair) in texts.chunks(2).enumerate() {
        let name = format!("{number}{}", pair[0]);
        let headers = Headers::new([(name.as_str(), pair.last().map_or("", String::as_str)), ("port", "80")]);
        let mut block = Vec::new();
        compressor.compress(&headers, &mut block).expect("compressed");
        assert_eq!(decompressor.decompress(&block.into()).expect("decompressed"), headers);
    }
});

/// Returns the frames, with the parts of each data frame joined.
fn frames(parts: &[&[u8]]) -> (Vec<Frame>, Result<(), SpdyError>) {
    let mut reader = FrameReader::default();
    let mut arrived = BytesMut::new();
    let mut frames = Vec::new();
    for part in parts {
        arrived.extend_from_slice(part);
        loop {
            match reader.next(&mut arrived) {
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
                Ok(Some(Frame::Data { id, fin, data })) => match frames.last_mut() {
                    Some(Frame::Data { id: last, fin: end @ false, data: before }) if *last == id => {
                        *before = [&before[..], &data[..]].concat().into();
                        *end = fin;
                    }
                    _ => frames.push(Frame::Data { id, fin, data }),
                },
                Ok(Some(frame)) => frames.push(frame),
            }
        }
    }
    (frames, Ok(()))
}

//! Bytes as gzip: the same result in any chunks, in bounded pieces; compressed bytes expand to the original.

#![no_main]

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use klient_fuzz::chunks;
use klient_proto::{DecodeError, GzipDecoder};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (parts, body) = chunks(data);
    let whole = decompress(&[body]);
    assert_eq!(decompress(&parts).map_err(drop), whole.map_err(drop));

    // One member per chunk.
    let members: Vec<Vec<u8>> = parts.iter().map(|part| compress(part)).collect();
    let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
    assert_eq!(decompress(&members).expect("gzip"), body);
});

fn decompress(chunks: &[&[u8]]) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = GzipDecoder::new();
    let mut out = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, |bytes| {
            assert!(bytes.len() <= 64 << 10);
            // Enough to compare: the output of a bomb does not end.
            if out.len() < 1 << 20 {
                out.extend_from_slice(bytes);
            }
            Ok(())
        })?;
    }
    decoder.finish()?;
    Ok(out)
}

fn compress(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

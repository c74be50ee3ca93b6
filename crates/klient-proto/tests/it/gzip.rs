//! Gzip bodies of one or many members are decompressed completely, in bounded pieces, and without delay.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use klient_core::WatchEvent;
use klient_proto::{DecodeError, GzipDecoder, Problem, SplitOptions, WatchSplitter};

/// Returns one gzip member.
fn member(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Decompresses the chunks to the end.
fn decompress<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = GzipDecoder::new();
    let mut out = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        })?;
    }
    decoder.finish()?;
    Ok(out)
}

/// Checks that the members decompress to their contents at every chunk boundary and byte by byte.
fn check(contents: &[&[u8]]) {
    let body: Vec<u8> = contents.iter().flat_map(|content| member(content)).collect();
    let expected = contents.concat();
    for at in 0..=body.len() {
        let (left, right) = body.split_at(at);
        assert_eq!(decompress([left, right]).unwrap(), expected, "split at {at}");
    }
    assert_eq!(decompress(body.chunks(1)).unwrap(), expected, "byte by byte");
    assert_eq!(decompress([body.as_slice(), b"", b""]).unwrap(), expected, "empty chunks");
}

#[test]
fn members_are_joined_at_any_chunk_boundary() {
    check(&[b"one member"]);
    check(&[b"first\n", b"second\n", b"third\n"]);
    check(&[b""]);
    check(&[b"", b"between empty ones", b"", b""]);
    check(&[&[0; 5000], b"", &[7; 3]]);
    check(&[]);
}

#[test]
fn body_truncated_inside_a_member_is_an_error() {
    let (first, second) = (member(b"first event\n"), member(b"second event\n"));
    let body = [first.clone(), second].concat();
    for len in 0..body.len() {
        let outcome = decompress([&body[..len]]);
        // Between members, gzip detects nothing missing; the splitter does.
        if len == 0 || len == first.len() {
            assert!(outcome.is_ok(), "at {len}");
        } else {
            let error = outcome.unwrap_err();
            assert!(matches!(error.problem(), Problem::Gzip(_)), "at {len}: {error}");
        }
    }
}

#[test]
fn invalid_gzip_is_an_error() {
    let mut corrupt = member(b"content that is long enough to be compressed, compressed, compressed");
    let checksum_at = corrupt.len() - 6;
    corrupt[checksum_at] ^= 1;
    let trailing = [member(b"fine"), b"garbage".to_vec()].concat();
    for body in [b"garbage".to_vec(), b"{\"kind\":\"PodList\"}".to_vec(), vec![0; 64], corrupt, trailing] {
        for chunk in [1, 7, body.len()] {
            let error = decompress(body.chunks(chunk)).unwrap_err();
            assert!(matches!(error.problem(), Problem::Gzip(_)), "{error}");
        }
    }
}

#[test]
fn gzip_bomb_is_streamed_in_bounded_pieces() {
    // As much as an unoptimized build decompresses in a few seconds, a thousand times the compressed size.
    const LEN: usize = 16 << 20;
    let bomb = member(&vec![0; 1 << 20]).repeat(LEN >> 20);
    assert!(bomb.len() < 1 << 20, "it is a bomb: {} bytes", bomb.len());
    let (mut total, mut largest) = (0, 0);
    let mut decoder = GzipDecoder::new();
    let count = |bytes: &[u8]| {
        total += bytes.len();
        largest = largest.max(bytes.len());
        Ok(())
    };
    decoder.push(&bomb, count).unwrap();
    decoder.finish().unwrap();
    assert_eq!(total, LEN);
    assert!(largest <= 64 << 10, "pieces of up to {largest} bytes");
}

#[test]
fn failing_sink_stops_a_gzip_bomb() {
    let bomb = member(&vec![0; 10 << 20]);
    let mut pieces = 0;
    let too_large =
        Err(WatchSplitter::protobuf(SplitOptions::default().max_object(1)).push(&[9; 4], |_| ()).unwrap_err());
    let outcome = GzipDecoder::new().push(&bomb, |_| {
        pieces += 1;
        if pieces == 3 { too_large.clone() } else { Ok(()) }
    });
    assert_eq!(*outcome.unwrap_err().problem(), Problem::TooLarge);
    assert_eq!(pieces, 3);
}

#[test]
fn watch_event_arrives_with_the_last_byte_of_its_member() {
    let members: Vec<Vec<u8>> = (0..5)
        .map(|number| {
            member(
                format!("{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"pod-{number}\"}}}}}}\n")
                    .as_bytes(),
            )
        })
        .collect();
    let mut decoder = GzipDecoder::new();
    let mut splitter = WatchSplitter::json(SplitOptions::default());
    let mut names = Vec::new();
    for (number, member) in members.iter().enumerate() {
        for byte in member {
            let sink = |bytes: &[u8]| {
                splitter.push(bytes, |event| match event.unwrap() {
                    WatchEvent::Added(object) => names.push(object.name().into_owned()),
                    other => panic!("{other:?}"),
                })
            };
            decoder.push(std::slice::from_ref(byte), sink).unwrap();
        }
        assert_eq!(names.len(), number + 1, "the event is there before the next member begins");
        assert_eq!(names[number], format!("pod-{number}"));
    }
    decoder.finish().unwrap();
    splitter.finish().unwrap();
}

#[test]
fn flushed_event_arrives_before_its_member_ends() {
    // A server may flush one long member instead of ending one per event.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut decoder = GzipDecoder::new();
    let mut out = Vec::new();
    for number in 0..3 {
        encoder.write_all(format!("event {number}\n").as_bytes()).unwrap();
        encoder.flush().unwrap();
        let chunk = std::mem::take(encoder.get_mut());
        let keep = |bytes: &[u8]| {
            out.extend_from_slice(bytes);
            Ok(())
        };
        decoder.push(&chunk, keep).unwrap();
        assert!(out.ends_with(format!("event {number}\n").as_bytes()));
    }
}

//! Bytes of a server to a session of exec: the session ends when the server does, and its channels hold what the messages hold.

#![no_main]

use bytes::Bytes;
use klient_fuzz::chunks;
use klient_streams::{
    channels::{self, Message, Version, session},
    spdy::Role,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (parts, body) = chunks(data);
    let version = if body.first().is_some_and(|first| first % 2 == 1) { Version::V4 } else { Version::V5 };
    if let Ok(Message::Data { data, .. }) = Message::decode(version, Bytes::copy_from_slice(body)) {
        assert_eq!(data, body[1..]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
    runtime.block_on(async {
        // The chunks as the messages of a server, and the bytes as frames.
        let messages: Vec<u8> = parts.iter().flat_map(|part| frame(part)).collect();
        for bytes in [&messages[..], body] {
            let (ours, mut theirs) = tokio::io::duplex(1 << 20);
            let channels = [channels::STDOUT, channels::STATUS];
            let (handle, [stdout, status], driver) = session(ours, Role::Client, version, None, channels);
            let (mut stdout, mut status) = (stdout.into_reader(), status.into_reader());
            let peer = async move {
                let _ = theirs.write_all(bytes).await;
                let _ = theirs.shutdown().await;
                let mut responses = Vec::new();
                let _ = theirs.read_to_end(&mut responses).await;
            };
            let reading = async {
                let (mut output, mut end) = (Vec::new(), Vec::new());
                let _ = tokio::join!(stdout.read_to_end(&mut output), status.read_to_end(&mut end));
                assert!(output.len() + end.len() <= bytes.len());
                let _ = handle.ended().await;
            };
            tokio::join!(driver, peer, reading);
        }
    });
});

/// Returns a binary frame.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x82, 126];
    frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

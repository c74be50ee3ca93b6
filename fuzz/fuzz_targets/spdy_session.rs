//! Bytes of a peer to a SPDY session: the session ends when the peer does, and every stream of it ends.

#![no_main]

use klient_fuzz::chunks;
use klient_streams::spdy::{Role, connection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let role = if data.first().is_some_and(|first| first % 2 == 1) { Role::Client } else { Role::Server };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (session, driver) = connection(ours, role, None);
        let reading = async {
            while let Some(accepted) = session.accept().await {
                let mut stream = accepted.stream;
                let mut all = Vec::new();
                // The peer may never end the stream, but its connection ends.
                let _ = stream.read_to_end(&mut all).await;
            }
            assert!(session.has_ended());
        };
        let (parts, _) = chunks(data);
        let peer = async {
            let (mut reader, mut writer) = tokio::io::split(theirs);
            for part in parts {
                let _ = writer.write_all(part).await;
            }
            let _ = writer.shutdown().await;
            let mut responses = Vec::new();
            let _ = reader.read_to_end(&mut responses).await;
        };
        tokio::join!(driver, reading, peer);
    });
});

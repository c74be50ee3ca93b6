//! Sessions of channels: data, closes, and ends.

use std::{io, time::Duration};

use klient_streams::{
    KeepAlive, Stream,
    channels::{STATUS, STDIN, STDOUT, Session, Version, session},
    spdy::Role,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Starts both ends of a session, and returns input, output and status of each.
fn pair(version: Version, size: usize) -> [(Session, [Stream; 3]); 2] {
    let (client, server) = tokio::io::duplex(size);
    let channels = [STDIN, STDOUT, STATUS];
    let (client, client_streams, driver) = session(client, Role::Client, version, Some(KeepAlive::default()), channels);
    tokio::spawn(driver);
    let (server, server_streams, driver) = session(server, Role::Server, version, None, channels);
    tokio::spawn(driver);
    [(client, client_streams), (server, server_streams)]
}

#[tokio::test]
async fn input_ends_while_output_goes_on() {
    let [(_client, [stdin, stdout, status]), (server, [input, output, end])] = pair(Version::V5, 100);
    let (mut stdin, mut stdout, mut status) = (stdin.into_writer(), stdout.into_reader(), status.into_reader());
    let (mut input, mut output, mut end) = (input.into_reader(), output.into_writer(), end.into_writer());
    let process = tokio::spawn(async move {
        let mut text = String::new();
        input.read_to_string(&mut text).await.unwrap();
        output.write_all(text.to_uppercase().as_bytes()).await.unwrap();
        end.write_all(b"done").await.unwrap();
        server.close();
        server.ended().await.unwrap();
    });
    stdin.write_all(&b"shout ".repeat(10_000)).await.unwrap();
    stdin.shutdown().await.unwrap();
    let (mut text, mut last) = (String::new(), String::new());
    stdout.read_to_string(&mut text).await.unwrap();
    status.read_to_string(&mut last).await.unwrap();
    assert!(text == "SHOUT ".repeat(10_000));
    assert_eq!(last, "done");
    process.await.unwrap();
}

#[tokio::test]
async fn version_4_cannot_close_the_input() {
    let [(_client, [stdin, ..]), _server] = pair(Version::V4, 1000);
    let mut stdin = stdin.into_writer();
    stdin.write_all(b"data").await.unwrap();
    assert_eq!(stdin.shutdown().await.unwrap_err().kind(), io::ErrorKind::Unsupported);
}

#[tokio::test]
async fn session_that_is_dropped_closes_the_other_end() {
    let [(client, streams), (server, [_, output, _])] = pair(Version::V5, 1000);
    drop((client, streams));
    server.ended().await.unwrap();
    let mut output = output.into_writer();
    assert_eq!(output.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_considered_dead_after_its_limit() {
    let (ours, _theirs) = tokio::io::duplex(1 << 20);
    let (client, _streams, driver) = session(ours, Role::Client, Version::V5, Some(KeepAlive::default()), [STDOUT]);
    tokio::spawn(driver);
    let start = tokio::time::Instant::now();
    let error = client.ended().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!((Duration::from_secs(61)..Duration::from_secs(70)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn server_that_does_not_read_input_has_more_time() {
    let (ours, _theirs) = tokio::io::duplex(100);
    let (client, [stdin], driver) = session(ours, Role::Client, Version::V5, Some(KeepAlive::default()), [STDIN]);
    tokio::spawn(driver);
    let mut stdin = stdin.into_writer();
    let start = tokio::time::Instant::now();
    stdin.write_all(&[0; 1000]).await.unwrap();
    assert!(client.ended().await.is_err());
    assert!(start.elapsed() > Duration::from_secs(600), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn deadline_ends_a_session_that_works() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(100);
    let keep_alive = KeepAlive::default().deadline(Some(deadline));
    let (client, _streams, driver) = session(ours, Role::Client, Version::V5, Some(keep_alive), [STDOUT]);
    tokio::spawn(driver);
    let (_server, _their_streams, driver) = session(theirs, Role::Server, Version::V5, None, [STDOUT]);
    tokio::spawn(driver);
    let error = client.ended().await.unwrap_err();
    assert!(error.to_string().contains("time limit"), "{error}");
    assert_eq!(tokio::time::Instant::now(), deadline);
}

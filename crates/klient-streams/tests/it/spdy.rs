//! SPDY connections: streams in any order, half-closes, resets, and full buffers.

use std::{io, task::Poll, time::Duration};

use klient_streams::{
    KeepAlive, Stream,
    spdy::{Connection, Role, connection, header::Headers},
    tunnel::Tunnel,
};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Starts both ends of a connection.
fn pair<T>(client: T, server: T) -> (Connection, Connection)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (client, driver) = connection(client, Role::Client, Some(KeepAlive::default()));
    tokio::spawn(driver);
    let (server, driver) = connection(server, Role::Server, None);
    tokio::spawn(driver);
    (client, server)
}

fn pipe(size: usize) -> (Connection, Connection) {
    let (client, server) = tokio::io::duplex(size);
    pair(client, server)
}

fn headers(number: usize) -> Headers {
    Headers::new([("streamtype", "data"), ("requestid", number.to_string().as_str())])
}

/// Opens a stream, and returns both ends of it.
async fn stream(client: &Connection, server: &Connection) -> (Stream, Stream) {
    let (opened, accepted) = tokio::join!(client.open(headers(1)), server.accept());
    (opened.unwrap(), accepted.unwrap().stream)
}

async fn text(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test]
async fn each_direction_is_closed_alone() {
    let (client, server) = pipe(64);
    let (mut ours, mut theirs) = stream(&client, &server).await;
    ours.write_all(b"request").await.unwrap();
    ours.shutdown().await.unwrap();
    assert_eq!(text(&mut theirs).await.unwrap(), "request");
    theirs.write_all(b"response").await.unwrap();
    theirs.shutdown().await.unwrap();
    assert_eq!(text(&mut ours).await.unwrap(), "response");
    assert_eq!(ours.write(b"more").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn stream_of_a_connection_that_ends_at_once_is_read() {
    let (client, server) = pipe(4096);
    let mut opening = std::pin::pin!(client.open(headers(1)));
    let is_pending = std::future::poll_fn(|context| Poll::Ready(opening.as_mut().poll(context).is_pending())).await;
    assert!(is_pending);
    let mut theirs = server.accept().await.unwrap().stream;
    theirs.write_all(b"response").await.unwrap();
    theirs.shutdown().await.unwrap();
    server.close();
    // The caller learns that the stream was accepted only after all of this.
    assert!(client.ended().await.is_err());
    let ours = opening.await;
    assert_eq!(text(&mut ours.unwrap()).await.unwrap(), "response");
}

#[tokio::test]
async fn dropped_stream_is_reset_and_a_dropped_half_is_closed() {
    let (client, server) = pipe(1 << 20);
    let (ours, mut theirs) = stream(&client, &server).await;
    drop(ours);
    assert_eq!(theirs.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(theirs.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);

    let (ours, mut theirs) = stream(&client, &server).await;
    let (mut reader, writer) = ours.into_split();
    drop(writer);
    assert_eq!(text(&mut theirs).await.unwrap(), "");
    theirs.write_all(b"still here").await.unwrap();
    theirs.shutdown().await.unwrap();
    assert_eq!(text(&mut reader).await.unwrap(), "still here");
}

#[tokio::test]
async fn closed_connection_ends_streams_after_their_data() {
    let (client, server) = pipe(1 << 20);
    let (mut ours, mut theirs) = stream(&client, &server).await;
    theirs.write_all(b"last words").await.unwrap();
    server.close();
    server.ended().await.unwrap();
    let mut words = [0; 10];
    ours.read_exact(&mut words).await.unwrap();
    assert_eq!(&words, b"last words");
    assert!(ours.read_u8().await.is_err());
    assert!(client.ended().await.is_err());
    assert!(client.has_ended());
    assert!(client.open(headers(1)).await.is_err());
    assert!(server.accept().await.is_none());
}

#[tokio::test]
async fn unread_stream_stops_its_peer_and_goes_on_when_read() {
    let (client, server) = pipe(4096);
    let (mut ours, mut theirs) = stream(&client, &server).await;
    let sending = tokio::spawn(async move {
        theirs.write_all(&vec![7; 2 << 20]).await.unwrap();
        theirs.shutdown().await.unwrap();
    });
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!sending.is_finished());
    let mut all = Vec::new();
    ours.read_to_end(&mut all).await.unwrap();
    assert_eq!(all.len(), 2 << 20);
    sending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stream_that_is_never_accepted_times_out() {
    let (ours, _theirs) = tokio::io::duplex(1 << 20);
    let keep_alive = KeepAlive::default().limit(Duration::from_secs(1000));
    let (client, driver) = connection(ours, Role::Client, Some(keep_alive));
    tokio::spawn(driver);
    let error = client.open(headers(1)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("within 30 s"), "{error}");
}

/// An action on one of the streams, as far as it is possible.
#[derive(Clone, Debug)]
enum Action {
    Send { stream: usize, length: usize, by_client: bool },
    Finish { stream: usize, by_client: bool },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let sent = (0..5usize, 1..100_000usize, any::<bool>()).prop_map(|(stream, length, by_client)| Action::Send {
        stream,
        length,
        by_client,
    });
    let finished = (0..5usize, any::<bool>()).prop_map(|(stream, by_client)| Action::Finish { stream, by_client });
    vec(prop_oneof![4 => sent, 1 => finished], 1..30)
}

/// Runs the actions on five streams, and checks that each end receives what the other one sent before it finished.
async fn check(actions: &[Action], client: Connection, server: Connection) -> Result<(), TestCaseError> {
    let (mut writers, mut readings) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (ours, theirs) = stream(&client, &server).await;
        for (by_client, stream) in [(true, ours), (false, theirs)] {
            let (mut reader, writer) = stream.into_split();
            writers.push((by_client, Some(writer), Vec::new()));
            readings.push((
                !by_client,
                tokio::spawn(async move {
                    let mut all = Vec::new();
                    reader.read_to_end(&mut all).await.map(|_| all)
                }),
            ));
        }
    }
    let place = |stream: usize, by_client: bool| stream * 2 + usize::from(!by_client);
    for (number, action) in actions.iter().enumerate() {
        match *action {
            Action::Send { stream, length, by_client } => {
                let (_, writer, sent) = &mut writers[place(stream, by_client)];
                if let Some(writer) = writer {
                    let data = vec![number as u8; length];
                    writer.write_all(&data).await.unwrap();
                    sent.extend_from_slice(&data);
                }
            }
            Action::Finish { stream, by_client } => writers[place(stream, by_client)].1 = None,
        }
    }
    let sent: Vec<Vec<u8>> = writers
        .into_iter()
        .map(|(_, writer, sent)| {
            drop(writer);
            sent
        })
        .collect();
    for (at, (sent_by_client, reading)) in readings.into_iter().enumerate() {
        let received = reading.await.unwrap().unwrap();
        prop_assert!(received == sent[place(at / 2, sent_by_client)], "stream {}", at / 2);
    }
    Ok(())
}

proptest! {
    #[test]
    fn streams_carry_their_data_in_any_order(actions in actions(), size in 1..5000usize, in_tunnel: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (client, server) = tokio::io::duplex(size);
            let (client, server) = match in_tunnel {
                true => pair(Tunnel::new(client, Role::Client), Tunnel::new(server, Role::Server)),
                false => pair(client, server),
            };
            tokio::time::timeout(Duration::from_secs(60), check(&actions, client, server)).await.unwrap()
        })?;
    }
}

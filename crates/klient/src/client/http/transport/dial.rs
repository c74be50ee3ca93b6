//! TCP connections: from a name or an address to an open socket.
//!
//! If a name has several addresses, an unresponsive one does not block the others: after a short delay, the next one is
//! tried in parallel, and the first connection is used.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{net::TcpStream, task::JoinSet};

/// The keep-alive settings that detect a dead peer, also without HTTP pings.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAlive {
    pub(super) idle: Duration,
    pub(super) patience: Duration,
}

pub(super) async fn dial(host: &str, port: u16, keep_alive: KeepAlive) -> io::Result<TcpStream> {
    let stream = race(tokio::net::lookup_host((host, port)).await?).await?;
    stream.set_nodelay(true)?;
    keep_alive.apply(&stream)?;
    Ok(stream)
}

async fn race(mut addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "name has no address");
    // Dropping the set cancels the remaining attempts.
    let mut attempts = JoinSet::new();
    let mut all_tried = false;
    loop {
        match addresses.next() {
            Some(address) => drop(attempts.spawn(TcpStream::connect(address))),
            None => all_tried = true,
        }
        let ended = match all_tried {
            true => attempts.join_next().await,
            false => match tokio::time::timeout(HEAD_START, attempts.join_next()).await {
                Ok(ended) => ended,
                Err(_) => continue,
            },
        };
        match ended {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(error))) => last = error,
            Some(Err(error)) => last = io::Error::other(error),
            None if all_tried => return Err(last),
            None => {}
        }
    }
}

impl KeepAlive {
    fn apply(self, stream: &TcpStream) -> io::Result<()> {
        let socket = socket2::SockRef::from(stream);
        // The kernel counts in seconds and rejects zero.
        let [idle, interval] = [self.idle, self.patience / PROBES].map(|time| time.max(Duration::from_secs(1)));
        let settings = socket2::TcpKeepalive::new().with_time(idle).with_interval(interval);
        socket.set_tcp_keepalive(&settings.with_retries(PROBES))?;
        // Unacknowledged data counts as well, not only unacknowledged probes.
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(Some(self.idle + self.patience))?;
        Ok(())
    }
}

const PROBES: u32 = 3;
/// The delay before the next address is tried in parallel.
const HEAD_START: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Returns an address that refuses connections as long as the socket is held.
    fn refusing() -> (SocketAddr, tokio::net::TcpSocket) {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        (socket.local_addr().unwrap(), socket)
    }

    /// Returns an address that never responds because its queue is full, with the connections that fill the queue.
    async fn silent() -> (SocketAddr, Vec<TcpStream>, TcpListener) {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queue = Vec::new();
        while let Ok(stream) = tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(address)).await {
            queue.push(stream.unwrap());
        }
        (address, queue, listener)
    }

    #[tokio::test]
    async fn dial_tries_the_next_address_after_a_refusal() {
        let (refusing, _socket) = refusing();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let stream = race([refusing, open].into_iter()).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        assert_eq!(race([refusing].into_iter()).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(race(std::iter::empty()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn dial_tries_the_next_address_beside_a_silent_one() {
        let (silent, _queue, _listener) = silent().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        // Without the race, this would take minutes, until the kernel gives up.
        let raced = tokio::time::timeout(Duration::from_secs(20), race([silent, open].into_iter())).await;
        assert_eq!(raced.unwrap().unwrap().peer_addr().unwrap(), open);
    }
}

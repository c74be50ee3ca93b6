//! TCP connections: from a name or an address to an open socket.
//!
//! Where a name has several addresses, a silent one does not hold up the others: after a moment the next is tried
//! beside it, and the first that answers is used.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{net::TcpStream, task::JoinSet};

/// How a socket notices that its peer is gone, also where HTTP has no pings.
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
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    // Dropping the set ends the attempts that are left.
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
        // The kernel counts in seconds, and takes none for a mistake.
        let [idle, interval] = [self.idle, self.patience / PROBES].map(|time| time.max(Duration::from_secs(1)));
        let settings = socket2::TcpKeepalive::new().with_time(idle).with_interval(interval);
        socket.set_tcp_keepalive(&settings.with_retries(PROBES))?;
        // Unanswered data counts too, not only unanswered probes.
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(Some(self.idle + self.patience))?;
        Ok(())
    }
}

const PROBES: u32 = 3;
/// What an address gets before the next one is tried, too.
const HEAD_START: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// An address that nobody listens on, as long as the socket is held.
    fn refusing() -> (SocketAddr, tokio::net::TcpSocket) {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        (socket.local_addr().unwrap(), socket)
    }

    /// An address that answers to nothing, as its queue is full, and what fills it.
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
    async fn an_address_that_refuses_leaves_the_next() {
        let (refusing, _socket) = refusing();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let stream = race([refusing, open].into_iter()).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        assert_eq!(race([refusing].into_iter()).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(race(std::iter::empty()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn an_address_that_says_nothing_does_not_hold_up_the_next() {
        let (silent, _queue, _listener) = silent().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        // Without the race, this would take as long as the kernel tries: minutes.
        let raced = tokio::time::timeout(Duration::from_secs(20), race([silent, open].into_iter())).await;
        assert_eq!(raced.unwrap().unwrap().peer_addr().unwrap(), open);
    }
}

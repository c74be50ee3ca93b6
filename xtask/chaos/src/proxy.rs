//! A TCP proxy on loopback that cuts, stalls and slows the bytes between clients and the real server, below TLS.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use crate::rng::Rng;

/// A running proxy. Dropping it ends all connections.
pub(crate) struct Proxy {
    address: SocketAddr,
    orders: watch::Sender<Orders>,
    task: JoinHandle<()>,
}

/// The effect of the proxy on connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Orders {
    /// Each increment closes the connections that are open.
    cuts: u64,
    /// Each increment stops the bytes of the connections that are open, for ever.
    stalls: u64,
    /// Whether bytes arrive a few at a time.
    is_slow: bool,
    /// Whether new connections are closed at once.
    refuses: bool,
}

impl Proxy {
    /// Starts a proxy to a port on loopback.
    pub(crate) async fn start(to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let orders = watch::Sender::new(Orders::default());
        let task = tokio::spawn(accept(listener, to, orders.subscribe()));
        Ok(Self { address, orders, task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does one random thing to the connections.
    pub(crate) fn disturb(&self, rng: &mut Rng) {
        self.orders.send_modify(|orders| match rng.range(0, 6) {
            0 | 1 => orders.cuts += 1,
            2 => orders.stalls += 1,
            3 => orders.is_slow = !orders.is_slow,
            4 => orders.refuses = !orders.refuses,
            _ => {}
        });
    }

    /// Passes all bytes again. Connections that were stalled stay stalled.
    pub(crate) fn calm(&self) {
        self.orders.send_modify(|orders| (orders.is_slow, orders.refuses) = (false, false));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, to: SocketAddr, orders: watch::Receiver<Orders>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                if !orders.borrow().refuses {
                    connections.spawn(connect(client, to, orders.clone()));
                }
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn connect(client: TcpStream, to: SocketAddr, orders: watch::Receiver<Orders>) {
    // A server that is down refuses the connection, and so does the proxy.
    let Ok(server) = TcpStream::connect(to).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let mut cuts = orders.clone();
    let before = cuts.borrow().cuts;
    tokio::select! {
        _ = cuts.wait_for(|orders| orders.cuts != before) => {}
        () = pump(from_client, to_server, orders.clone()) => {}
        () = pump(from_server, to_client, orders) => {}
    }
}

/// Copies bytes until one side ends.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut orders: watch::Receiver<Orders>) {
    let stalls = orders.borrow().stalls;
    let mut buffer = vec![0; 16 << 10];
    loop {
        let count = tokio::select! {
            () = stalled(&mut orders, stalls) => return std::future::pending().await,
            count = from.read(&mut buffer) => count.unwrap_or(0),
        };
        if count == 0 {
            return;
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let is_slow = orders.borrow().is_slow;
            let (piece, after) = rest.split_at(if is_slow { rest.len().min(200) } else { rest.len() });
            if is_slow {
                sleep(Duration::from_millis(10)).await;
            }
            if to.write_all(piece).await.is_err() {
                return;
            }
            rest = after;
        }
    }
}

/// Waits until the open connections are to be stalled.
async fn stalled(orders: &mut watch::Receiver<Orders>, before: u64) {
    // Without orders, the proxy has ended, and this connection with it.
    let _ = orders.wait_for(|orders| orders.stalls != before).await;
}

//! A local socket whose connections are forwarded.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream, ToSocketAddrs},
    task::{AbortHandle, JoinSet},
};

use super::session::PortForward;
use crate::{Error, ErrorKind};

/// A local socket whose connections are forwarded to a port of a pod. Dropping it closes the socket and its connections.
#[derive(Debug)]
pub struct ForwardListener {
    address: SocketAddr,
    forward: PortForward,
    last_error: Arc<Mutex<Option<String>>>,
    task: AbortHandle,
}

impl ForwardListener {
    pub(super) async fn bind(forward: PortForward, address: impl ToSocketAddrs) -> Result<Self, Error> {
        let failed =
            |error: io::Error| Error::new(ErrorKind::Config, "cannot listen for connections").with_source(error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let last_error = Arc::<Mutex<Option<String>>>::default();
        let accepting = accept(listener, forward.clone(), Arc::clone(&last_error));
        let task = tokio::spawn(accepting).abort_handle();
        Ok(Self { address, forward, last_error, task })
    }

    /// Returns the address of the socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the handle of the port-forward.
    pub fn forward(&self) -> &PortForward {
        &self.forward
    }

    /// Returns the message of the last connection that failed, if any.
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ForwardListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections until it is dropped, which closes all of them.
async fn accept(listener: TcpListener, forward: PortForward, last_error: Arc<Mutex<Option<String>>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    let (forward, last_error) = (forward.clone(), Arc::clone(&last_error));
                    connections.spawn(async move {
                        if let Err(message) = carry(socket, &forward).await {
                            tracing::warn!(message, "forwarded connection failed");
                            *last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
                        }
                    });
                }
                // The process may be out of file descriptors for a moment.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// Copies both ways until both have ended, or one has failed.
async fn carry(mut socket: TcpStream, forward: &PortForward) -> Result<(), String> {
    // Small messages must not wait for more data.
    let _ = socket.set_nodelay(true);
    let mut remote = forward.connect().await.map_err(|error| format!("{error:#}"))?;
    match tokio::io::copy_bidirectional_with_sizes(&mut socket, &mut remote, BUFFER, BUFFER).await {
        Ok(_) => Ok(()),
        // The local program has closed its socket, which is no failure of the pod.
        Err(error) if is_local(&error) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns whether an error is that of a socket. The errors of forwarded connections have messages.
fn is_local(error: &io::Error) -> bool {
    error.raw_os_error().is_some()
}

const BUFFER: usize = 32 << 10;

//! The program behind the forwarded port. It runs outside of the programs that are measured.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use anyhow::Result;

/// Listens on a loopback port until the process ends, and returns the address.
///
/// A connection begins with a byte that says what to do, and the number of bytes to do it with: `r` sends them and closes, `w` receives
/// them and sends the byte 1, and `e` sends back whatever it receives.
pub(super) fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // A connection that the client breaks off is reported by the client.
            thread::spawn(|| drop(respond(socket)));
        }
    });
    Ok(address)
}

fn respond(mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut first = [0; 9];
    socket.read_exact(&mut first)?;
    let [what, length @ ..] = first;
    let mut length = usize::try_from(u64::from_be_bytes(length)).map_err(io::Error::other)?;
    let mut buffer = vec![0; 256 << 10];
    match what {
        b'r' => {
            while length > 0 {
                let part = length.min(buffer.len());
                socket.write_all(&buffer[..part])?;
                length -= part;
            }
            Ok(())
        }
        b'w' => {
            while length > 0 {
                let most = length.min(buffer.len());
                let read = socket.read(&mut buffer[..most])?;
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                length -= read;
            }
            socket.write_all(&[1])?;
            // The client closes first, so that the byte is not lost.
            socket.read(&mut buffer).map(drop)
        }
        _ => loop {
            match socket.read(&mut buffer)? {
                0 => return Ok(()),
                read => socket.write_all(&buffer[..read])?,
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(what: u8, length: u64) -> TcpStream {
        let mut socket = TcpStream::connect(serve().unwrap()).unwrap();
        socket.write_all(&[&[what][..], &length.to_be_bytes()].concat()).unwrap();
        socket
    }

    #[test]
    fn program_sends_receives_and_echoes() {
        let mut bytes = Vec::new();
        connect(b'r', 300_000).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 300_000);
        let mut socket = connect(b'w', 300_000);
        socket.write_all(&bytes).unwrap();
        let mut one = [0];
        socket.read_exact(&mut one).unwrap();
        assert_eq!(one, [1]);
        let mut socket = connect(b'e', 0);
        socket.write_all(b"hello").unwrap();
        let mut back = [0; 5];
        socket.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"hello");
    }
}

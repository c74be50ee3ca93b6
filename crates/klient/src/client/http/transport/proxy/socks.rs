//! SOCKS 5 (RFC 1928), with user and password (RFC 1929) where the proxy wants them. The proxy looks up names.

use std::net::IpAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Closed;
use crate::client::http::transport::stream::BoxStream;

/// Opens a tunnel; afterwards the stream leads to the server.
pub(super) async fn open(
    stream: &mut BoxStream,
    host: &str,
    port: u16,
    login: Option<(&str, &str)>,
) -> Result<(), Closed> {
    let methods: &[u8] = if login.is_some() { &[NO_LOGIN, PASSWORD] } else { &[NO_LOGIN] };
    let mut greeting = vec![VERSION, methods.len() as u8];
    greeting.extend_from_slice(methods);
    stream.write_all(&greeting).await?;
    stream.flush().await?;
    let mut choice = [0; 2];
    stream.read_exact(&mut choice).await?;
    match (choice, login) {
        ([VERSION, NO_LOGIN], _) => {}
        ([VERSION, PASSWORD], Some((user, password))) => log_in(stream, user, password).await?,
        ([VERSION, _], Some(_)) => return said("it wants to know who asks in a way that is not supported"),
        ([VERSION, _], None) => return said("it wants a user and a password"),
        _ => return said("it does not speak SOCKS 5"),
    }
    stream.write_all(&request(host, port)?).await?;
    stream.flush().await?;
    answer(stream).await
}

async fn log_in(stream: &mut BoxStream, user: &str, password: &str) -> Result<(), Closed> {
    let mut message = vec![LOGIN_VERSION];
    for text in [user, password] {
        let Ok(length) = u8::try_from(text.len()) else { return said("user and password may have 255 bytes each") };
        message.push(length);
        message.extend_from_slice(text.as_bytes());
    }
    stream.write_all(&message).await?;
    stream.flush().await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    if answer[1] == 0 { Ok(()) } else { said("it wants another user or password") }
}

fn request(host: &str, port: u16) -> Result<Vec<u8>, Closed> {
    let mut message = vec![VERSION, CONNECT, 0];
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            message.push(IPV4);
            message.extend_from_slice(&address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            message.push(IPV6);
            message.extend_from_slice(&address.octets());
        }
        Err(_) => {
            let Ok(length) = u8::try_from(host.len()) else { return said("the server's name is too long") };
            message.extend_from_slice(&[NAME, length]);
            message.extend_from_slice(host.as_bytes());
        }
    }
    message.extend_from_slice(&port.to_be_bytes());
    Ok(message)
}

/// Reads the answer, and not a byte more: what follows is the server's.
async fn answer(stream: &mut BoxStream) -> Result<(), Closed> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, code, _, kind] = head;
    if version != VERSION {
        return said("it does not speak SOCKS 5");
    }
    let why = match code {
        0 => "",
        1 => "it failed",
        2 => "its rules do not allow it",
        3 => "it cannot reach the network",
        4 => "it cannot reach the host",
        5 => "the connection was refused",
        6 => "it took too long",
        7 => "it does not open tunnels",
        8 => "it does not know that sort of address",
        _ => "it failed for a reason of its own",
    };
    if code != 0 {
        return said(why);
    }
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(stream.read_u8().await?),
        _ => return said("it does not speak SOCKS 5"),
    };
    // An address of the proxy's own, which nobody needs.
    let mut bound = vec![0; length + 2];
    stream.read_exact(&mut bound).await?;
    Ok(())
}

fn said<T>(why: &str) -> Result<T, Closed> {
    Err(Closed::Said(why.to_owned()))
}

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_address_or_by_name() {
        let bytes = |host: &str| request(host, 443).ok();
        assert_eq!(bytes("10.0.0.1").unwrap(), [5, 1, 0, 1, 10, 0, 0, 1, 1, 187]);
        assert_eq!(bytes("::1").unwrap(), [&[5, 1, 0, 4][..], &[0; 15], &[1, 1, 187]].concat());
        assert_eq!(bytes("host").unwrap(), *b"\x05\x01\x00\x03\x04host\x01\xbb");
        assert_eq!(bytes(&"x".repeat(256)), None);
    }
}

//! SOCKS 5 (RFC 1928), with user and password (RFC 1929) if the proxy requires them. The proxy resolves names.

use std::net::IpAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Closed;
use crate::client::http::transport::stream::BoxStream;

/// Opens a tunnel. Afterwards, the stream is connected to the server.
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
        ([VERSION, _], Some(_)) => return refused("it requires an authentication method that is not supported"),
        ([VERSION, _], None) => return refused("a user and a password are required"),
        _ => return refused("the response is not SOCKS 5"),
    }
    stream.write_all(&request(host, port)?).await?;
    stream.flush().await?;
    read_response(stream).await
}

async fn log_in(stream: &mut BoxStream, user: &str, password: &str) -> Result<(), Closed> {
    let mut message = vec![LOGIN_VERSION];
    for text in [user, password] {
        let Ok(length) = u8::try_from(text.len()) else {
            return refused("user and password must not exceed 255 bytes each");
        };
        message.push(length);
        message.extend_from_slice(text.as_bytes());
    }
    stream.write_all(&message).await?;
    stream.flush().await?;
    let mut response = [0; 2];
    stream.read_exact(&mut response).await?;
    if response[1] == 0 { Ok(()) } else { refused("another user or password is required") }
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
            let Ok(length) = u8::try_from(host.len()) else { return refused("the server's name is too long") };
            message.extend_from_slice(&[NAME, length]);
            message.extend_from_slice(host.as_bytes());
        }
    }
    message.extend_from_slice(&port.to_be_bytes());
    Ok(message)
}

/// Reads the response and no further, because the following bytes are the server's.
async fn read_response(stream: &mut BoxStream) -> Result<(), Closed> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, code, _, kind] = head;
    if version != VERSION {
        return refused("the response is not SOCKS 5");
    }
    let why = match code {
        0 => "",
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "timed out",
        7 => "command not supported",
        8 => "address type not supported",
        _ => "unknown failure",
    };
    if code != 0 {
        return refused(why);
    }
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(stream.read_u8().await?),
        _ => return refused("the response is not SOCKS 5"),
    };
    // The bound address of the proxy, which is not needed.
    let mut bound = vec![0; length + 2];
    stream.read_exact(&mut bound).await?;
    Ok(())
}

fn refused<T>(why: &str) -> Result<T, Closed> {
    Err(Closed::Refused(why.to_owned()))
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
    fn connect_request_has_an_address_or_a_name() {
        let bytes = |host: &str| request(host, 443).ok();
        assert_eq!(bytes("10.0.0.1").unwrap(), [5, 1, 0, 1, 10, 0, 0, 1, 1, 187]);
        assert_eq!(bytes("::1").unwrap(), [&[5, 1, 0, 4][..], &[0; 15], &[1, 1, 187]].concat());
        assert_eq!(bytes("host").unwrap(), *b"\x05\x01\x00\x03\x04host\x01\xbb");
        assert_eq!(bytes(&"x".repeat(256)), None);
    }
}

//! `CONNECT`: the request for a tunnel through an HTTP proxy.

use http::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Closed, host_and_port};
use crate::client::http::transport::stream::BoxStream;

/// Opens a tunnel. Afterwards, the stream is connected to the server.
pub(super) async fn open(
    stream: &mut BoxStream,
    host: &str,
    port: u16,
    authorization: Option<&HeaderValue>,
) -> Result<(), Closed> {
    let target = host_and_port(host, port);
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(value) = authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(value.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    stream.flush().await?;
    let head = head(stream).await?;
    match status(&head) {
        Some((code, _)) if (200..300).contains(&code) => Ok(()),
        Some((407, reason)) => {
            let wanted = if authorization.is_some() {
                "another user or password is required"
            } else {
                "a user and a password are required"
            };
            Err(Closed::Refused(format!("{wanted} (status {reason})")))
        }
        Some((_, reason)) => Err(Closed::Refused(format!("status {reason}"))),
        None => Err(Closed::Refused("the response is not HTTP".to_owned())),
    }
}

/// Reads up to the empty line and no further, because the following bytes are the server's.
async fn head(stream: &mut BoxStream) -> Result<Vec<u8>, Closed> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        if head.len() == MAX_HEAD {
            return Err(Closed::Refused("the head of the response is too long".to_owned()));
        }
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && !head.is_empty() => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(head)
}

/// Returns the status code, and the code with its reason for a message.
fn status(head: &[u8]) -> Option<(u16, String)> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = str::from_utf8(line).ok()?.trim_end();
    let (version, status) = line.split_once(' ')?;
    let code = status.get(..3)?.parse().ok().filter(|_| version.starts_with("HTTP/1."))?;
    Some((code, status.chars().filter(|c| !c.is_control()).take(MAX_REASON).collect()))
}

const MAX_HEAD: usize = 16 << 10;
const MAX_REASON: usize = 100;

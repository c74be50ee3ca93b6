//! One GET request over plain HTTP to a manager on this machine or at the end of a port-forward.

use std::{error::Error, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Returns the body of the response to a GET request.
pub(crate) async fn get(address: &str, path: &str, token: Option<&str>) -> Result<Vec<u8>, Box<dyn Error>> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let authorization = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        // HTTP/1.0: the body ends with the connection, and is never sent in chunks.
        let request = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut response = Vec::new();
        stream.take(MAX_RESPONSE).read_to_end(&mut response).await?;
        Ok::<_, std::io::Error>(response)
    };
    let response = match tokio::time::timeout(TIMEOUT, exchange).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            let hint = "is a manager with a debug page running there? Use --address, or --pod to forward a port";
            return Err(format!("cannot read from {address}: {error}; {hint}").into());
        }
        Err(_) => return Err(format!("no response from {address} within {} s", TIMEOUT.as_secs()).into()),
    };
    let end = response.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| format!("{address} does not respond in HTTP"))?;
    let head = String::from_utf8_lossy(&response[..end]);
    let code = head.split(' ').nth(1).unwrap_or_default();
    let body = &response[end + 4..];
    match code {
        "200" => Ok(body.to_vec()),
        "404" => Err(format!("{address} has no debug page: call `debug` on the manager's builder").into()),
        _ => Err(format!("{address} refused the request with {code}: {}", String::from_utf8_lossy(body).trim()).into()),
    }
}

const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest response that is read.
const MAX_RESPONSE: u64 = 64 << 20;
